//! The channels that come with the engine (N5, N8, N9, N10).

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use cq_core::channel::flag::Flag;
use cq_core::channel::route::Router;
use cq_core::channel::thread::channel;
use cq_core::channel::waker::{self, WakerChannel};
use cq_core::shared_cq::SharedCq;
use futures_util::StreamExt;

use super::send as wc;
use super::*;

#[test]
fn n09_a_flag_merges_events_and_split_discards_them() {
    let mut flag = Flag::new();
    {
        let (raiser, mut events) = flag.split();
        assert_eq!(events.take_event(), Ok(None));
        (0..3).for_each(|_| raiser.raise());
        assert_eq!(events.take_event(), Ok(Some(raiser.key())));
        assert_eq!(events.take_event(), Ok(None));
        raiser.raise();
    }
    assert_eq!(flag.split().1.take_event(), Ok(None), "an event of earlier sides");
}

#[test]
fn n10_a_core_sleeps_until_the_flag_is_raised_and_not_at_all_if_it_was() {
    let mut flag = Flag::new();
    let (raiser, events) = flag.split();
    assert!(!events.is_pending());
    let mut sleeps = 0;
    let mut channel = events.sleeping(|events| {
        sleeps += 1;
        // The first interrupt is that of another device.
        if sleeps == 2 {
            raiser.raise();
        }
        assert_eq!(events.is_pending(), sleeps == 2);
    });
    for _ in 0..2 {
        assert_eq!(channel.block(None), Ok(Woken::Event));
    }
    assert_eq!([(); 2].map(|()| channel.take_event()), [Ok(Some(raiser.key())), Ok(None)]);
    assert_eq!(sleeps, 2);
}

#[test]
fn n10_a_core_with_a_clock_sleeps_until_its_deadline_and_an_event_comes_first() {
    let mut flag = Flag::new();
    let (raiser, events) = flag.split();
    let (now, slept) = (Cell::new(10), RefCell::new(Vec::new()));
    let mut channel = events.sleeping_until(
        || now.get(),
        |events, deadline| {
            assert!(!events.is_pending());
            slept.borrow_mut().push((now.get(), deadline));
            now.set(now.get() + 2);
            if now.get() >= 20 {
                raiser.raise();
            }
        },
    );
    assert_eq!(channel.block(Some(10)), Ok(Woken::DeadlinePassed), "no sleep for what has passed");
    assert_eq!(channel.block(Some(13)), Ok(Woken::DeadlinePassed), "and late by a sleep at most");
    assert_eq!(slept.take(), [(10, Some(13)), (12, Some(13))]);
    assert_eq!(channel.block(None), Ok(Woken::Event));
    assert_eq!(slept.take(), [(14, None), (16, None), (18, None)]);
    assert_eq!(channel.block(Some(0)), Ok(Woken::Event), "pending, though the deadline has passed");
    assert!(channel.serves(raiser.key()));
    assert_eq!(channel.take_event(), Ok(Some(raiser.key())));
    assert_eq!(channel.block(Some(0)), Ok(Woken::DeadlinePassed));
}

#[test]
fn n06_a_core_that_waits_for_a_queue_arms_it_before_it_sleeps() {
    let (mut flag, mut storage) = (Flag::new(), SoftCq::<2>::new());
    let (raiser, events) = flag.split();
    let (mut producer, consumer) = storage.split_with(raiser);
    let (mut cq, mut batch) = (CompletionQueue::new(consumer), [Wc::default(); 4]);
    let mut channel = events.sleeping(|_| producer.push(&wc(7)).unwrap());
    for _ in 0..3 {
        assert_eq!(cq.wait(&mut batch, &mut channel, None).map(<[Wc]>::len), Ok(1));
    }
}

#[test]
fn n08_n09_each_queue_s_event_waits_once_in_the_order_in_which_they_came() {
    let (first, mut events) = channel(1);
    let second = events.raiser();
    for raiser in [&second, &first, &second, &first] {
        raiser.raise();
    }
    assert_eq!(events.block(late()), Ok(Woken::Event));
    let taken = [(); 3].map(|()| events.take_event().unwrap());
    assert_eq!(taken, [Some(second.key()), Some(first.key()), None]);
}

#[test]
fn n10_a_sleep_ends_by_an_event_at_the_deadline_or_by_a_stop_and_says_which() {
    let (raiser, mut events) = channel(1);
    assert_eq!(events.block(Some(Instant::now())), Ok(Woken::DeadlinePassed));
    let stop = events.stop_handle();
    (0..2).for_each(|_| stop.clone().stop());
    assert_eq!(events.block(late()), Ok(Woken::Interrupted));
    assert_eq!(events.block(Some(Instant::now())), Ok(Woken::DeadlinePassed), "one sleep");
    let sleeper = thread::spawn(move || {
        let woken = events.block(late());
        (woken, events.take_event())
    });
    raiser.raise();
    assert_eq!(sleeper.join().unwrap(), (Ok(Woken::Event), Ok(Some(raiser.key()))));
}

#[test]
fn n10_a_timeout_is_a_deadline_from_now_and_one_that_no_clock_reaches_is_none() {
    let (raiser, mut events) = channel(1);
    let (mut producer, consumer) = HeapCq::new(4).unwrap().split_with(raiser);
    let (mut cq, mut buffer) = (CompletionQueue::new(consumer), [Wc::default(); 4]);
    let (short, start) = (Duration::from_millis(2), Instant::now());
    assert_eq!(cq.wait_timeout(&mut buffer, &mut events, short), Ok(&[][..]));
    assert!(start.elapsed() >= short);
    let shared = SharedCq::new(cq);
    assert_eq!(shared.wait(&mut buffer, &mut events, Deadline::after(short)), Ok(&[][..]));
    let device = thread::spawn(move || producer.push(&wc(1)).map(|()| producer));
    assert_eq!(shared.wait(&mut buffer, &mut events, None).unwrap().len(), 1);
    device.join().unwrap().unwrap();
    assert_eq!(<Instant as Deadline>::after(Duration::MAX), None);
}

#[test]
fn n10_a_wait_ends_when_it_is_stopped_and_can_go_on() {
    let (raiser, mut events) = channel(1);
    let (mut producer, consumer) = HeapCq::new(4).unwrap().split_with(raiser);
    let (mut cq, mut buffer, stop) =
        (CompletionQueue::new(consumer), [Wc::default(); 4], events.stop_handle());
    stop.stop();
    assert_eq!(cq.wait(&mut buffer, &mut events, late()), Err(WaitError::Interrupted));
    let device = thread::spawn(move || {
        producer.push(&wc(1)).unwrap();
    });
    assert_eq!(cq.wait(&mut buffer, &mut events, late()).unwrap().len(), 1);
    device.join().unwrap();
    let end = Err(WaitError::Poll(PollError::Closed));
    assert_eq!(cq.wait(&mut buffer, &mut events, late()), end);
}

#[test]
fn n07_the_channel_of_one_queue_forgets_its_events_and_no_others() {
    let (mut flag, mut channel) = (Flag::new(), WakerChannel::new());
    let (of_flag, mut flag) = flag.split();
    let (of_waker, mut waker) = channel.split();
    let both: [(&dyn Signal, &mut dyn Events); 2] =
        [(&of_flag, &mut flag), (&of_waker, &mut waker)];
    for (raiser, events) in both {
        let key = raiser.key();
        for forgotten in [OTHER, key] {
            raiser.raise();
            events.forget(forgotten);
            let left = (forgotten != key).then_some(key);
            assert_eq!(events.take_event(), Ok(left));
        }
    }
}

#[test]
fn n06_a_task_gets_everything_however_often_it_drops_a_wait() {
    let (mut storage, mut channel) = (SoftCq::<8>::new(), WakerChannel::new());
    let (raiser, mut events) = channel.split();
    let (mut producer, consumer) = storage.split_with(raiser);
    let (mut cq, mut buffer) = (CompletionQueue::new(consumer), [Wc::default(); 3]);
    assert_eq!(pollster::block_on(cq.next_batch(&mut [], &mut events)), Ok(&[][..]));
    producer.push(&wc(9)).unwrap();
    assert_eq!(events.take_event(), Ok(None), "no room, no arm (N1)");
    assert_eq!(pollster::block_on(cq.next_batch(&mut buffer, &mut events)), Ok(&[wc(9)][..]));
    let nobody = &mut Context::from_waker(Waker::noop());
    for nth in 0..10 {
        for _ in 0..2 {
            // A channel that is lent is one.
            let mut lent = &mut events;
            let waits = std::pin::pin!(cq.next_batch(&mut buffer, &mut lent));
            assert!(matches!(waits.poll(nobody), Poll::Pending), "nothing is there");
        }
        producer.push_batch(&[wc(2 * nth), wc(2 * nth + 1)]).unwrap();
        let batch = pollster::block_on(cq.next_batch(&mut buffer, &mut events)).unwrap();
        assert_eq!(batch.iter().map(Wc::wr_id).collect::<Vec<_>>(), [2 * nth, 2 * nth + 1]);
    }
    drop(producer);
    let end = Err(WaitError::Poll(PollError::Closed));
    assert_eq!(pollster::block_on(cq.next_batch(&mut buffer, &mut events)), end);
}

/// What waits for a queue of this raiser, on a channel that is another queue's, is refused before it sleeps.
fn refused<S: Signal + SplitSignal>(
    raiser: S,
    wait: impl FnOnce(CompletionQueue<Consumer<'static, Wc, OnChannel<S>>>) -> Option<WaitError>,
) {
    let (_device, consumer) = HeapCq::new(4).unwrap().split_with(raiser);
    let key = consumer.key();
    assert_eq!(wait(CompletionQueue::new(consumer)), Some(WaitError::WrongChannel(key)));
}

#[test]
fn n08_a_wait_on_another_queue_s_channel_is_refused() {
    let [mut mine, mut other] = [(); 2].map(|()| Flag::new());
    let (raiser, _events) = mine.split();
    let mut events = other.split().1.sleeping(|_| panic!("asleep"));
    refused(raiser, |mut cq| cq.wait(&mut [Wc::default()], &mut events, None).err());

    let ((raiser, mine), (_raiser, mut events)) = (channel(1), channel(1));
    refused(raiser, |mut cq| cq.wait(&mut [Wc::default()], &mut events, late()).err());
    refused(mine.raiser(), |cq| {
        let mut router = Router::<_, 1>::new(events);
        let mut routed = router.route(cq.get_ref().key());
        SharedCq::new(cq).wait(&mut [Wc::default()], &mut routed, late()).err()
    });
    let (raiser, another) = (mine.raiser(), mine.raiser());
    refused(raiser, |mut cq| {
        let mut router = Router::<_, 1>::new(mine);
        cq.wait(&mut [Wc::default()], &mut router.route(another.key()), late()).err()
    });

    let ((raiser, _mine), (_raiser, mut events)) = (waker::channel(), waker::channel());
    refused(raiser, |mut cq| {
        pollster::block_on(cq.next_batch(&mut [Wc::default()], &mut &mut events)).err()
    });
    let ((raiser, _mine), (_raiser, events)) = (waker::channel(), waker::channel());
    refused(raiser, |cq| {
        let mut all = CompletionStream::<_, _, 1>::new(cq, events);
        pollster::block_on(all.next()).unwrap().err()
    });
}

#[test]
fn n08_the_keys_of_channels_differ() {
    let (mut flag, mut waker) = (Flag::new(), WakerChannel::new());
    let (first, receiver) = channel(3);
    let (other, _receiver) = channel(1);
    let second = receiver.raiser();
    let ((of_flag, flag), (of_waker, waker)) = (flag.split(), waker.split());
    let keys = [first.key(), second.key(), other.key(), of_flag.key(), of_waker.key()];
    for (nth, key) in keys.iter().enumerate() {
        assert!(!keys[..nth].contains(key), "{keys:?}");
        let serves = [receiver.serves(*key), flag.serves(*key), waker.serves(*key)];
        assert_eq!(serves, [nth < 2, nth == 3, nth == 4]);
    }
}

#[test]
fn n09_a_flag_is_had_again_from_its_two_sides_and_from_no_others() {
    let [mut flag, mut other] = [(); 2].map(|()| Flag::new());
    let ((raiser, events), (of_other, its_events)) = (flag.split(), other.split());
    let refused = raiser.reunite(its_events).unwrap_err();
    assert!(refused.to_string().contains("not the two sides"));
    let ReuniteError(raiser, its_events) = refused;
    raiser.raise();
    let flag = raiser.reunite(events).unwrap();
    let (raiser, mut events) = flag.split();
    assert_eq!(events.take_event(), Ok(None), "an event of earlier sides");
    raiser.raise();
    assert_eq!(events.take_event(), Ok(Some(raiser.key())));
    of_other.reunite(its_events.sleeping(|_| ()).events).unwrap();
}

/// While a wake-up is due, there is a copy of the raiser.
macro_rules! copied {
    ($channel:ty) => {{
        let (mut channel, mut storage) = (<$channel>::new(), SoftCq::<4>::new());
        let (raiser, events) = channel.split();
        let (producer, mut consumer) = storage.split_with(raiser);
        let wakeup = consumer.mark_failed();
        let (queue, raiser) = SoftCq::<4>::reunite(producer, consumer).unwrap();
        let ReuniteError(raiser, mut events) = raiser.reunite(events).unwrap_err();
        wakeup.wake();
        assert_eq!(events.take_event(), Ok(Some(raiser.key())));
        let (raiser, events) = raiser.reunite(events).unwrap().split();

        let (producer, consumer) = queue.split_with(raiser);
        let raiser = SoftCq::<4>::reunite(producer, consumer).unwrap().1;
        raiser.reunite(events).unwrap();
    }};
}

#[test]
fn s04_a_channel_is_not_had_again_while_a_queue_has_a_copy_of_its_raiser() {
    copied!(Flag);
    copied!(WakerChannel);
}

#[test]
fn a_channel_keeps_no_task_whose_side_is_gone() {
    struct Task;
    impl Wake for Task {
        fn wake(self: Arc<Self>) {}
    }

    let (raiser, mut events) = waker::channel();
    let task = Arc::new(Task);
    {
        let script = Script::<4>::new(raiser.key());
        let mut cq = CompletionQueue::new(&script);
        let mut buffer = [Wc::default()];
        let wait = std::pin::pin!(cq.next_batch(&mut buffer, &mut events));
        let waker = Waker::from(task.clone());
        assert!(wait.poll(&mut Context::from_waker(&waker)).is_pending());
    }
    assert_eq!(Arc::strong_count(&task), 2, "the side is there");
    drop(events);
    assert_eq!(Arc::strong_count(&task), 1);
    raiser.raise();

    let mut channel = WakerChannel::new();
    let (raiser, mut events) = channel.split();
    events.register(&Waker::from(task.clone()));
    std::mem::forget((raiser, events));
    assert_eq!(Arc::strong_count(&task), 2, "the sides were leaked");
    channel.split();
    assert_eq!(Arc::strong_count(&task), 1);
}

#[test]
fn a_channel_for_more_queues_than_there_can_be_works() {
    let (raiser, mut events) = channel(usize::MAX);
    raiser.raise();
    assert_eq!(events.take_event(), Ok(Some(raiser.key())));
}

/// Plays a script with a router that keeps events of `N` queues, A to C: `+A` raises an event, `A?B` takes one by A's view
/// (`-` is none), `A!` finds that A's sleep ends by one, `A.` by its deadline, and `-A` forgets what was kept.
fn route<const N: usize>(script: &str) {
    let (first, events) = channel(3);
    let raisers = [first, events.raiser(), events.raiser()];
    let raiser = |name| &raisers[usize::from(name - b'A')];
    let key = |name| raiser(name).key();
    let mut router = Router::<_, N>::new(events);
    for step in script.split(' ') {
        match *step.as_bytes() {
            [b'+', of] => raiser(of).raise(),
            [b'-', of] => router.forget(key(of)),
            [of, b'?', b'-'] => {
                assert_eq!(router.route(key(of)).take_event(), Ok(None), "{script}")
            }
            [of, b'?', is] => {
                assert_eq!(
                    router.route(key(of)).take_event(),
                    Ok(Some(key(is))),
                    "{step} of {script}"
                );
            }
            [of, b'!'] => assert_eq!(router.route(key(of)).block(late()), Ok(Woken::Event)),
            [of, _] => {
                let now = Some(Instant::now());
                assert_eq!(router.route(key(of)).block(now), Ok(Woken::DeadlinePassed), "{script}");
            }
            _ => panic!("{step}"),
        }
    }
    assert_eq!(router.into_inner().take_event(), Ok(None));
}

#[test]
fn n08_a_router_keeps_the_events_of_other_queues() {
    // Each waits once.
    route::<1>("+B +B A?- +B A?- A. +A A! A?A B! B?B B?-");
    // A wait loses no event that ended another's (N9).
    route::<2>("+B +A A! B! B?B A?A A?-");
    // The event of a queue that is gone keeps no place (N7), and that of another stays.
    route::<1>("+B A?- -A B?B +B A?- -B B?- +C A?-");
    // Nor does it end a wait of another queue, if it has ended a sleep.
    route::<0>("+A A! -A B. B?- A?-");
    route::<2>("+A A! -A +B A?- B?B");
    route::<2>("+A A! -B A?A");
    // Nor does one that was not taken from the channel.
    route::<0>("+A -A B. B?- A?-");
    route::<1>("+A +B +C -B A?A C?C B?-");
    // Where there is no place, the queue that waits is to hand the event on.
    route::<1>("+B +C A?C +A A! A?A B?B");
}
