//! Arms, events and spurious events.

use cq_core::channel::waker;
use cq_core::shared_cq::SharedCq;

use super::*;

#[test]
fn arms_are_counted_if_they_succeed() {
    let script = script().on_arm(Err(ArmError::NoChannel)).on_arm(Ok(Armed::MayHaveMissed));
    let (mut queue, counters) = counted(&script);
    assert_eq!(queue.arm(Notify::Next), Err(ArmError::NoChannel));
    assert_eq!(events(&counters), (0, 0, 0));
    assert_eq!(queue.arm(Notify::Next), Ok(Armed::MayHaveMissed));
    assert_eq!(queue.arm(Notify::Solicited), Ok(Armed::Armed));
    assert_eq!(events(&counters), (2, 0, 0));
}

/// What becomes of events whose queue is looked at by these calls: how many are spurious.
#[track_caller]
fn spurious(script: Script<32>, calls: impl FnOnce(&mut Counted<&Script<32>>), expected: u64) {
    let (mut queue, counters) = counted(&script);
    calls(&mut queue);
    script.done().unwrap();
    assert_eq!(counters.snapshot().spurious_events, expected);
}

#[test]
fn n05_an_event_is_spurious_if_the_queue_is_then_found_empty_and_no_completion_explains_it() {
    let mut buffer = [wc(0); 2];
    let (empty, one) = (|| script().on_poll(Ok(&[])), || script().on_poll(Ok(&[wc(1)])));
    spurious(empty(), |queue| assert_eq!(queue.poll_into(&mut [wc(0)]), Ok(0)), 0);
    let poll_after = |events: u32| {
        move |queue: &mut Counted<&Script<32>>| {
            queue.took_events(events);
            queue.poll_into(&mut [wc(0)]).unwrap();
        }
    };
    spurious(empty(), poll_after(1), 1);
    spurious(empty(), poll_after(3), 3);
    spurious(one(), poll_after(3), 0);
    // Each is judged once.
    spurious(
        empty().on_poll(Ok(&[])),
        |queue| {
            queue.took_events(1);
            queue.poll_into(&mut buffer).unwrap();
            queue.poll_into(&mut buffer).unwrap();
        },
        1,
    );
    // The completion was polled before the event was taken.
    let twice = || one().on_poll(Ok(&[]));
    spurious(
        twice(),
        |queue| {
            queue.poll_into(&mut buffer).unwrap();
            queue.took_events(1);
            queue.poll_into(&mut buffer).unwrap();
        },
        0,
    );
    // It explains no event of a later arm.
    for armed in [Armed::Armed, Armed::MayHaveMissed] {
        spurious(
            one().on_arm(Ok(armed)).on_poll(Ok(&[])),
            |queue| {
                queue.poll_into(&mut buffer).unwrap();
                let _ = queue.arm(Notify::Next);
                queue.took_events(1);
                queue.poll_into(&mut buffer).unwrap();
            },
            1,
        );
    }
    // An arm that says that the queue is empty is as good as a poll.
    for (armed, is_spurious) in [(Armed::Armed, 1), (Armed::MayHaveMissed, 0)] {
        let script = script().on_arm(Ok(armed)).on_poll(Ok(&[wc(1)]));
        spurious(
            script,
            |queue| {
                queue.took_events(1);
                let _ = queue.arm(Notify::Next);
                queue.poll_into(&mut buffer).unwrap();
            },
            is_spurious,
        );
    }
    // A poll into an empty buffer says nothing.
    spurious(
        one(),
        |queue| {
            queue.took_events(1);
            queue.poll_into(&mut []).unwrap();
            queue.poll_into(&mut buffer).unwrap();
        },
        0,
    );
    // No number of events wraps.
    spurious(
        empty(),
        |queue| {
            queue.took_events(u32::MAX);
            queue.took_events(2);
            queue.poll_into(&mut buffer).unwrap();
        },
        u32::MAX.into(),
    );
}

/// A wait that sleeps, is woken for nothing, and then for a completion.
fn woken_twice() -> Script<32> {
    let script = script().on_arm(Ok(Armed::Armed)).on_event(Ok(KEY)).on_poll(Ok(&[]));
    script.on_block(Ok(Duration::ZERO)).on_event(Ok(KEY)).on_poll(Ok(&[wc(1)]))
}

#[test]
fn n05_a_wait_counts_the_events_that_it_takes() {
    let script = woken_twice();
    let (mut cq, counters) = counted_cq(&script);
    assert_eq!(cq.wait(&mut [wc(0)], &mut &script, None), Ok(&[wc(1)][..]));
    assert_eq!(events(&counters), (2, 2, 1));
    assert_eq!(polls(&counters.snapshot()), (3, 2, 0));

    let script = woken_twice();
    let (cq, counters) = counted_cq(&script);
    let cq = SharedCq::new(cq);
    assert_eq!(cq.wait(&mut [wc(0)], &mut &script, None), Ok(&[wc(1)][..]));
    assert_eq!(events(&counters), (2, 2, 1));
}

#[test]
fn n09_events_of_completions_that_were_polled_are_not_spurious() {
    let script = script().on_arm(Ok(Armed::Armed)).on_poll(Ok(&[wc(1)])).on_poll(Ok(&[]));
    let script = script.on_event(Ok(KEY)).on_event(Ok(KEY)).on_arm(Ok(Armed::MayHaveMissed));
    let script = script.on_poll(Ok(&[])).on_block(Ok(Duration::ZERO)).on_poll(Ok(&[]));
    let (mut cq, counters) = counted_cq(&script);
    let mut buffer = [wc(0); 2];
    assert_eq!(cq.poll_or_arm(&mut buffer, Notify::Next), Ok(&[][..]));
    assert_eq!(cq.wait(&mut buffer, &mut &script, None), Ok(&[wc(1)][..]));
    assert_eq!(events(&counters), (1, 0, 0), "found without a look at the channel");
    let end = Some(Duration::from_secs(1));
    assert_eq!(cq.wait(&mut buffer, &mut &script, end), Ok(&[][..]));
    script.done().unwrap();
    assert_eq!(counters.snapshot().events, 2);
    assert_eq!(counters.snapshot().spurious_events, 0);
}

#[test]
fn n06_a_task_counts_the_events_that_woke_it() {
    const WORK: u64 = 1000;
    let (raiser, mut channel) = waker::channel();
    let (mut device, consumer) = HeapCq::new(16).unwrap().split_with(raiser);
    let (mut cq, counters) = counted_cq(consumer);
    let device = thread::spawn(move || {
        (0..WORK).for_each(|wr_id| device.push_or_wait(&wc(wr_id), thread::yield_now).unwrap());
    });
    let mut buffer = [wc(0); 4];
    let error = pollster::block_on(async {
        loop {
            if let Err(error) = cq.next_batch(&mut buffer, &mut channel).await {
                return error;
            }
        }
    });
    device.join().unwrap();
    assert_eq!(error, WaitError::Poll(PollError::Closed));
    let counts = counters.snapshot();
    assert_eq!(counts.completions.count(WcStatus::SUCCESS), WORK);
    assert!(counts.events <= counts.arms, "one for an arm at most: {counts}");
    assert!(counts.spurious_events <= counts.events, "{counts}");
}
