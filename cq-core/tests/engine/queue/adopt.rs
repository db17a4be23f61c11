//! Queues that replace others and take over their arm and their end (Q12, O3).

use super::*;

#[test]
fn q12_a_queue_that_adopts_another_takes_over_its_arm() {
    for (on, events) in [(Notify::Solicited, [0, 1, 0]), (Notify::Next, [1, 0, 0])] {
        let (old, new, event_count) = (Parts::new(4), Parts::new(4), EventCount::default());
        assert_eq!(old.sides_with(&event_count).1.arm(on), Ok(Armed::Armed));
        new.control.adopt(&old.control);
        assert_eq!(new.control.end(), None);
        let (mut producer, _consumer) = new.sides_with(&event_count);
        let fired = [send(0), failed(1), failed(2)].map(|wc| {
            producer.push(&wc).unwrap();
            event_count.take()
        });
        assert_eq!(fired, events, "{on:?}");
        let mut raised = false;
        old.control.notify_unless(true, |_| false, || raised = true);
        assert!(raised, "the old one's arm is not taken away");
    }
}

/// How a queue of four is ended, what is then said of it, and how many completions may be left to move.
type Way = (fn(&Parts), End, PollError, usize);

const ENDS: [Way; 3] = [
    (
        |old| {
            old.producer(Tail::at(0))
                .push_batch_or_overrun(&[0, 1, 2, 3, 4].map(send))
                .unwrap_err();
        },
        End::Overrun { dropped: 1 },
        PollError::Overrun { dropped: Some(1) },
        3,
    ),
    (|old| old.consumer(0).fail(), End::Failed, PollError::Failed, 3),
    (
        |old| {
            old.consumer(0).fail();
            drain(&mut old.consumer(0)).unwrap_err();
        },
        End::Failed,
        PollError::Failed,
        0,
    ),
];

#[test]
fn s05_a_queue_that_adopts_one_that_has_ended_has_ended_for_its_sides_and_those_that_come_after() {
    for (ends, end, error, left) in ENDS {
        for moved in 0..=left {
            let (old, new, event_count) = (Parts::new(4), Parts::new(4), EventCount::default());
            ends(&old);
            // As who moves a queue does: first what was not polled, then the rest of what the queue is.
            let (mut producer, mut consumer) = new.sides_with(&event_count);
            (0..moved).for_each(|number| producer.push(&send(number as u64)).unwrap());
            new.control.adopt(&old.control);
            assert_eq!(new.control.end(), Some(end));
            let why = PushError::Ended(end);
            let tail = Tail::from_words(producer.tail().to_words());
            assert_eq!(producer.push(&send(9)), Err(why), "{moved}");
            assert_eq!(producer.push_batch(&[send(9)]), Err(BatchError { stored: 0, why }));
            let mut next = new.producer(tail);
            assert_eq!(next.push(&send(9)), Err(why), "the kept tail's room");
            if moved > 0 {
                assert_eq!(drain(&mut consumer), Ok((0..moved as u64).collect()));
            }
            assert_eq!(drain(&mut consumer), Err(error));
            assert_eq!(consumer.arm(Notify::Next), Ok(Armed::MayHaveMissed));
            assert_eq!(drain(&mut new.consumer(moved as _)), Err(error));
            assert!(next.push_or_overrun(&send(9)).is_err());
            assert!(drain(&mut new.consumer(moved as _)).is_err());
        }
    }
}

#[test]
fn o03_what_is_dropped_after_a_move_is_counted_on() {
    let (old, new) = (Parts::new(2), Parts::new(2));
    old.producer(Tail::at(0)).push_batch_or_overrun(&[0, 1, 2, 3].map(send)).unwrap_err();
    new.control.adopt(&old.control);
    let newest = Control::new();
    newest.adopt(&new.control);
    let queue = new.queue_of(&newest);
    let mut producer = queue.into_producer(Tail::at(0), NoChannel);
    assert_eq!(
        producer.push_or_overrun(&send(4)),
        Err(DroppedError { lost: 1, end: End::Overrun { dropped: 3 } })
    );
    assert_eq!(newest.end(), Some(End::Overrun { dropped: 3 }));
    let before = Some(End::Overrun { dropped: 2 });
    assert_eq!(new.control.end(), before, "the old one stays as it was");
}

#[test]
fn q12_a_queue_that_adopts_a_running_one_runs_and_has_its_arm_alone() {
    let (old, new, event_count) = (Parts::new(4), Parts::new(4), EventCount::default());
    let (mut producer, mut consumer) = new.sides_with(&event_count);
    let _ = consumer.arm(Notify::Next).unwrap();
    new.control.adopt(&old.control);
    (0..2).for_each(|number| producer.push(&failed(number)).unwrap());
    assert_eq!(event_count.take(), 0, "the old one was not armed");
    assert_eq!(drain(&mut consumer), Ok(vec![0, 1]));
    assert_eq!(consumer.arm(Notify::Next), Ok(Armed::Armed));
}
