//! Events for nothing, and twice (N5, N7).

use cq_testing::fault::When;

use super::*;

#[test]
fn n05_an_event_comes_for_nothing() {
    let script = Script::new(KEY);
    let mut channel = injector(&script, &faults().spurious(When::nth(2), KEY));
    let events = [(); 3].map(|()| channel.take_event());
    assert_eq!(events, [Ok(None), Ok(Some(KEY)), Ok(None)]);
    assert_eq!(channel.injected().to_string(), "seed 1, 1 spurious");
}

#[test]
fn n07_an_event_comes_twice_and_is_taken_once() {
    let script = Script::new(KEY).on_event(Ok(KEY));
    let mut channel = injector(&script, &faults().duplicate(When::nth(1)));
    assert_eq!(channel.take_event(), Ok(Some(KEY)));
    assert_eq!(channel.block(None), Ok(Woken::Event), "there is one more");
    assert_eq!([channel.take_event(), channel.take_event()], [Ok(Some(KEY)), Ok(None)]);
    assert_eq!(script.calls(), [Call::Event, Call::Event]);
    assert_eq!(channel.injected().to_string(), "seed 1, 1 duplicated");
}

#[test]
fn n07_an_event_of_a_queue_that_is_destroyed_does_not_come_twice() {
    let other = CqKey { index: KEY.index + 1, ..KEY };
    for (forgotten, again) in [(other, Some(KEY)), (KEY, None)] {
        let script = Script::new(KEY).on_event(Ok(KEY));
        let mut channel = injector(&script, &faults().duplicate(When::chance(1.0)));
        assert_eq!(channel.take_event(), Ok(Some(KEY)));
        let mut lent = &mut channel;
        Events::forget(&mut lent, forgotten);
        assert_eq!(channel.take_event(), Ok(again), "another queue's stays");
    }
}

#[test]
fn n05_a_wait_goes_on_after_an_event_for_nothing() {
    let script = Script::new(KEY).on_event(Ok(KEY)).on_poll(Ok(&[wc(1, 5)]));
    let plan = faults().spurious(When::nth(1), KEY).duplicate(When::nth(1));
    let (mut cq, mut channel) = (CompletionQueue::new(&script), injector(&script, &plan));
    let (mut buffer, second) = ([Wc::default(); 4], Some(Duration::from_secs(1)));
    assert_eq!(cq.wait(&mut buffer, &mut channel, second), Ok(&[wc(1, 5)][..]));
    assert_eq!(cq.wait(&mut buffer, &mut channel, second), Ok(&[][..]));
}

#[test]
fn n10_a_failure_of_the_channel_is_passed_on() {
    let broken = EventError::Device(5);
    let script = Script::new(KEY).on_event(Err(broken)).on_block(Err(broken));
    let mut channel = injector(&script, &faults().spurious(When::always(), KEY));
    assert_eq!(channel.take_event(), Err(broken));
    assert_eq!(channel.block(None), Err(broken));
}

#[test]
fn asynchronous_events_come_for_nothing_and_twice() {
    let report = |event_type, port| AsyncEvent { event_type, element: Element::Port(port) };
    let (up, down) = (report(AsyncEventType::PORT_ACTIVE, 1), report(AsyncEventType::PORT_ERR, 1));
    let script = Script::new(KEY).on_async(Ok(up));
    let plan = faults().duplicate_async(When::nth(1)).spurious_async(When::nth(1), down);
    let mut device = injector(&script, &plan);
    assert_eq!(device.take_async_event(), Ok(Some(up)));
    assert_eq!(device.block_async(None), Ok(Woken::Event), "there is one more");
    let events = [(); 4].map(|()| device.take_async_event());
    assert_eq!(events, [Ok(Some(up)), Ok(Some(down)), Ok(None), Ok(None)]);
    assert_eq!(device.block_async(Some(Duration::ZERO)), Ok(Woken::DeadlinePassed));
    assert_eq!(device.injected().to_string(), "seed 1, 1 spurious, 1 duplicated");
}
