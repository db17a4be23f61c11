//! Queues that are failed, closed or abandoned (S2–S5, O5, N6).

use cq_core::cq::CompletionQueue;
use cq_core::queue::{
    Control, Dropped, HeapCq, NoChannel, Producer, SoftCq, State, Tail, TryPushError,
};
use cq_core::testing::raw_queue;
use cq_core::transport::{Arm, Armed, Notify, PollCq, PollError};
use cq_core::wc::Wc;

use super::device::with_each;
use super::{Bell, KEY, Parts, drain, each_lone, entry, send};

const FAILED: Result<Vec<u64>, PollError> = Err(PollError::Failed);
const CLOSED: Result<Vec<u64>, PollError> = Err(PollError::Closed);

#[test]
fn s04_a_failed_queue_returns_what_it_stores_and_then_fails() {
    each_lone!(|producer, consumer, _bell| {
        producer.push_batch(&[0, 1].map(send)).unwrap();
        assert_eq!(consumer.state(), State::Running);
        consumer.fail();
        assert_eq!(consumer.state(), State::Failed);
        assert_eq!(consumer.arm(Notify::Next), Ok(Armed::MayHaveMissed));
        assert_eq!(consumer.poll(&mut [Wc::default()]), Ok(1));
        assert_eq!(consumer.poll(&mut [Wc::default(); 4]), Ok(1));
        for _ in 0..2 {
            assert_eq!(drain(&mut consumer), FAILED, "and no completion was dropped");
            assert_eq!(consumer.poll(&mut []), Ok(0), "P6");
            assert_eq!(consumer.arm(Notify::Next), Ok(Armed::MayHaveMissed));
        }
    });
}

#[test]
fn s04_a_failed_queue_stores_nothing_more() {
    for polled_first in [false, true] {
        each_lone!(|producer, consumer, _bell| {
            producer.push(&send(0)).unwrap();
            consumer.fail();
            if polled_first {
                assert_eq!(drain(&mut consumer), Ok(vec![0]));
                assert_eq!(drain(&mut consumer), FAILED);
            }
            // There was room when the producer looked last.
            assert_eq!(producer.try_push(&send(1)), Err(TryPushError::Ended));
            assert_eq!(producer.push(&send(1)), Err(Dropped { lost: 1, total: 1 }));
            let batch = producer.push_batch(&[2, 3].map(send));
            assert_eq!(batch, Err(Dropped { lost: 2, total: 3 }));
            assert_eq!(producer.try_push_batch(&[send(4)]), Err(TryPushError::Ended));
            assert_eq!(producer.push_batch(&[] as &[Wc]), Ok(()));
            if !polled_first {
                assert_eq!(drain(&mut consumer), Ok(vec![0]));
            }
            assert_eq!(drain(&mut consumer), FAILED, "it was given up, not overrun");
            assert_eq!(consumer.state(), State::Failed);
        });
    }
}

#[test]
fn s05_later_sides_find_that_the_queue_has_failed() {
    for reported in [false, true] {
        let parts = Parts::new(4);
        let (mut producer, mut consumer) = parts.sides(0);
        producer.push_batch(&[0, 1].map(send)).unwrap();
        assert_eq!(consumer.poll(&mut [Wc::default()]), Ok(1));
        consumer.fail();
        if reported {
            assert_eq!(drain(&mut consumer), Ok(vec![1]));
            assert_eq!(drain(&mut consumer), FAILED);
        }
        let words = producer.tail().to_words();
        assert!(words[1] > words[0], "who stopped knew of room");
        for tail in [Tail::from_words(words), parts.queue().recover(Tail::at(0), |_, _| ())] {
            let mut producer = parts.producer(tail);
            assert_eq!(producer.try_push(&send(2)), Err(TryPushError::Ended));
            producer.push(&send(2)).unwrap_err();
            producer.push_batch(&[2, 3].map(send)).unwrap_err();
        }
        let mut consumer = parts.consumer(consumer.position());
        if !reported {
            assert_eq!(drain(&mut consumer), Ok(vec![1]), "what was stored is still handed out");
        }
        assert_eq!(drain(&mut consumer), FAILED);
        assert_eq!(parts.control.state(), State::Failed);
    }
}

#[test]
fn o03_nothing_is_polled_after_the_end_was_reported_despite_a_concurrent_push() {
    for fails in [true, false] {
        let parts = Parts::new(4);
        let (mut producer, mut consumer) = parts.sides(0);
        if fails {
            consumer.fail();
        } else {
            // Overrun, and polled to the end.
            producer.push_batch(&[0, 1, 2, 3, 4].map(send)).unwrap_err();
            assert_eq!(drain(&mut consumer).unwrap().len(), 4);
        }
        let error = drain(&mut consumer).unwrap_err();
        // A producer that had looked for room before: one with a control of its own, in which nothing has ended.
        let (at, other) = (consumer.position(), Control::new());
        let late = raw_queue(&other, &parts.slots, &[], 4).unwrap();
        late.into_producer(Tail::from_words([at, at + 4]), NoChannel).push(&send(9)).unwrap();
        assert_eq!((consumer.is_empty(), consumer.len()), (true, 0));
        assert_eq!(drain(&mut consumer), Err(error));
        let mut next = parts.consumer(at);
        assert!(next.is_empty());
        for _ in 0..2 {
            assert_eq!(drain(&mut next), Err(error), "nor by a consumer that is made anew");
        }
    }
}

#[test]
fn o03_an_overrun_queue_can_fail_too() {
    each_lone!(|producer, consumer, _bell| {
        producer.push_batch(&[0, 1, 2, 3, 4].map(send)).unwrap_err();
        consumer.fail();
        assert_eq!(drain(&mut consumer), Ok(vec![0, 1, 2, 3]));
        assert_eq!(drain(&mut consumer), FAILED);
        assert_eq!(producer.push(&send(5)), Err(Dropped { lost: 1, total: 2 }));
    });
}

#[test]
fn s02_a_closed_queue_returns_what_it_stores_and_stays_closed() {
    macro_rules! closes {
        ($queue:expr) => {
            for stored in 0..=4 {
                let mut queue = $queue;
                let (mut producer, mut consumer) = queue.split();
                (0..stored).for_each(|number| producer.push(&send(number)).unwrap());
                drop(producer);
                if stored > 0 {
                    assert_eq!(consumer.poll(&mut []), Ok(0), "P6");
                    assert_eq!(drain(&mut consumer), Ok((0..stored).collect()));
                }
                for _ in 0..3 {
                    assert_eq!(drain(&mut consumer), CLOSED, "after {stored}");
                    assert_eq!(consumer.poll(&mut []), Ok(0), "P6");
                }
            }
        };
    }
    closes!(SoftCq::<4>::new());
    #[allow(unused_mut)]
    {
        closes!(HeapCq::new(4).unwrap());
    }
    #[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
    {
        closes!(cq_core::queue::mpsc::SoftCq::<4>::new());
        #[allow(unused_mut)]
        {
            closes!(cq_core::queue::mpsc::HeapCq::new(4).unwrap());
        }
    }
}

#[test]
fn n06_closing_a_queue_wakes_the_consumer() {
    for on in [Notify::Next, Notify::Solicited] {
        with_each(|sides| {
            if sides.kind == "raw" {
                return;
            }
            let (device, mut app, bell) = (sides.device, sides.app, sides.bell);
            assert_eq!(app.arm(on), Ok(Armed::Armed));
            drop(device);
            assert_eq!(bell.take(), 1, "{}, {on:?}", sides.kind);
            assert_eq!(app.arm(on), Ok(Armed::MayHaveMissed), "so that the next poll tells");
            assert_eq!(drain(&mut *app), CLOSED);
        });
    }
}

#[test]
fn n06_closing_a_queue_wakes_a_consumer_in_another_thread() {
    for round in 0..200 {
        let bell = &Bell::default();
        let (mut producer, consumer) = HeapCq::new(4).unwrap().split_with(KEY, bell);
        std::thread::scope(|threads| {
            threads.spawn(move || producer.push(&send(round)).unwrap());
            let (mut cq, mut room, mut channel) =
                (CompletionQueue::new(consumer), [Wc::default(); 4], bell);
            let got = cq.wait(&mut room, &mut channel, None).unwrap();
            assert_eq!(got.iter().map(Wc::wr_id).collect::<Vec<_>>(), [round]);
            let closed = cq.wait(&mut room, &mut channel, None);
            assert_eq!(closed.unwrap_err(), PollError::Closed.into());
        });
    }
}

#[test]
fn o03_a_queue_that_ended_otherwise_is_not_closed_too() {
    let bell = Bell::default();
    let (mut producer, mut consumer) = HeapCq::new(1).unwrap().split_with(KEY, &bell);
    producer.push_batch(&[0, 1].map(send)).unwrap_err();
    drop(producer);
    assert_eq!(drain(&mut consumer), Ok(vec![0]));
    assert_eq!(drain(&mut consumer), Err(PollError::Overrun { dropped: Some(1) }));

    let (producer, mut consumer) = HeapCq::new(1).unwrap().split_with(KEY, &bell);
    consumer.fail();
    drop(producer);
    assert_eq!(drain(&mut consumer), FAILED);
    assert_eq!(consumer.state(), State::Failed);
}

#[test]
fn a_raw_queue_outlives_its_sides() {
    let (parts, bell) = (Parts::new(4), Bell::default());
    let (producer, mut consumer) = parts.sides_with(&bell);
    let _ = consumer.arm(Notify::Next).unwrap();
    drop(producer);
    assert_eq!(bell.take(), 0, "another producer may follow");
    assert_eq!(drain(&mut consumer), Ok(vec![]));
    drop(consumer);
    assert_eq!(parts.control.state(), State::Running);
    let mut producer = parts.producer(Tail::at(0));
    assert!(!producer.is_abandoned());
    producer.push(&send(0)).unwrap();
    assert_eq!(drain(&mut parts.consumer(0)), Ok(vec![0]));
}

#[test]
fn s03_a_queue_whose_consumer_is_dropped_is_abandoned() {
    with_each(|sides| {
        if sides.kind == "raw" {
            return;
        }
        let (mut device, app) = (sides.device, sides.app);
        device.push(&entry(0)).unwrap();
        assert!(!device.is_abandoned(), "{}", sides.kind);
        drop(app);
        assert!(device.is_abandoned());
        assert_eq!(device.try_push(&entry(1)), Err(TryPushError::Ended));
        assert_eq!(device.try_push_batch(&[entry(1)]), Err(TryPushError::Ended));
        assert_eq!(device.push(&entry(1)), Err(Dropped { lost: 1, total: 1 }));
        assert_eq!(device.push_batch(&[2, 3].map(entry)), Err(Dropped { lost: 2, total: 3 }));
        assert_eq!(device.push_batch(&[]), Ok(()));
        assert_eq!(sides.bell.take(), 0);
    });
}

#[test]
fn s03_a_dropped_consumer_that_was_armed_gets_one_event_at_most() {
    with_each(|sides| {
        if sides.kind == "raw" {
            return;
        }
        let (mut device, mut app, bell) = (sides.device, sides.app, sides.bell);
        let _ = app.arm(Notify::Next).unwrap();
        drop(app);
        let _ = (0..5).map(|number| device.push(&entry(number))).filter(Result::is_err).count();
        drop(device);
        assert!(bell.take() <= 1, "{}: one event for each arm", sides.kind);
    });
}

#[test]
fn a_side_that_is_forgotten_ends_nothing() {
    let mut storage = SoftCq::<2>::new();
    let (producer, mut consumer) = storage.split();
    std::mem::forget::<Producer<'_>>(producer);
    assert_eq!(drain(&mut consumer), Ok(vec![]));
}
