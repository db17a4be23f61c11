//! Moving to other storage (Q12).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use cq_core::health::State;
use cq_core::soft::Alerts;
use cq_core::soft::shared::{BatchError, PushError, ResizeError};
use cq_core::transport::{Arm, ArmError, Armed, NoSignal, Notify, Poll, PollError};
use cq_core::wc::Wc;

use super::threads::{Order, PRODUCERS, Polled, of};
use super::{Bell, DEADLINE, KEY, Memory, drain, failed, send};

#[test]
fn q12_resizing_keeps_everything() {
    let (small, large, alerts) = (Memory::new(2), Memory::new(8), Alerts::new());
    let bell = Bell::default();
    let mut one = small.parts().producer(&alerts, KEY, Some(&bell));
    let mut other = one.clone();
    let mut consumer = small.parts().consumer(&alerts, KEY, true);
    one.push_with(&send(0), 10, false).unwrap();
    other.push_with(&send(1), 11, false).unwrap();
    let _ = consumer.arm(Notify::Solicited).unwrap();
    assert_eq!(consumer.resize(large.parts()), Ok(()));
    assert_eq!(consumer.capacity(), 8);

    assert_eq!(one.push(&send(2)), Err(PushError::Resized));
    let batch = other.push_batch(&[send(2), send(3)]);
    assert_eq!(batch, Err(BatchError { stored: 0, why: PushError::Resized }));
    assert_eq!(alerts.state(), State::Running, "nothing was dropped");
    one.follow(large.parts());
    other.follow(large.parts());
    one.push_with(&send(2), 12, false).unwrap();
    assert_eq!(bell.take(), 0);
    other.push_with(&failed(3), 13, false).unwrap();
    assert_eq!(bell.take(), 1, "the arm is still in force");

    assert_eq!(consumer.resize(small.parts()), Err(ResizeError::UnderWay));
    let mut handed_out = Vec::new();
    let mut out = [Wc::default(); 8];
    let count = consumer.poll_with(&mut out, |wc, tag| handed_out.push((wc.wr_id(), tag)));
    assert_eq!(count, Ok(4), "both rings in one poll (P2)");
    assert_eq!(handed_out, [(0, 10), (1, 11), (2, 12), (3, 13)]);
}

#[test]
fn q12_below_the_unpolled_count_is_refused() {
    let (large, small, alerts) = (Memory::new(8), Memory::new(4), Alerts::new());
    let mut producer = large.parts().producer::<NoSignal>(&alerts, KEY, None);
    let mut consumer = large.parts().consumer(&alerts, KEY, false);
    producer.push_batch(&[0, 1, 2].map(send)).unwrap();
    let refused = ResizeError::BelowUnpolled { promised: 2, unpolled: 3 };
    assert_eq!(consumer.resize(small.promising(2)), Err(refused));
    assert!(refused.to_string().starts_with("3 completions are not polled yet"));
    assert_eq!(consumer.capacity(), 8, "nothing is changed");
    producer.push(&send(3)).unwrap();
    assert_eq!(consumer.poll(&mut [Wc::default(); 2]), Ok(2));
    assert_eq!(consumer.resize(small.promising(2)), Ok(()));
    producer.follow(small.promising(2));
    assert_eq!(drain(&mut consumer), Ok(vec![2, 3]));
}

#[test]
fn q12_an_overrun_queue_stays_one() {
    let (old, new, alerts) = (Memory::new(1), Memory::new(8), Alerts::new());
    let mut producer = old.parts().producer::<NoSignal>(&alerts, KEY, None);
    let mut consumer = old.parts().consumer(&alerts, KEY, false);
    assert!(producer.push_batch(&[0, 1].map(send)).is_err());
    assert_eq!(consumer.resize(new.parts()), Err(ResizeError::Overrun));
    assert_eq!(drain(&mut consumer), Ok(vec![0]));
    assert!(drain(&mut consumer).is_err());
}

#[test]
fn o03_an_overrun_after_a_resize_comes_after_both_rings() {
    let (old, new, alerts) = (Memory::new(2), Memory::new(2), Alerts::new());
    let mut producer = old.parts().producer::<NoSignal>(&alerts, KEY, None);
    let mut consumer = old.parts().consumer(&alerts, KEY, false);
    producer.push_batch(&[0, 1].map(send)).unwrap();
    consumer.resize(new.parts()).unwrap();
    producer.follow(new.parts());
    assert_eq!(producer.push_batch(&[2, 3, 4].map(send)).unwrap_err().stored, 2);
    let mut one = [Wc::default()];
    for wr_id in 0..4 {
        assert_eq!(consumer.poll(&mut one), Ok(1));
        assert_eq!(one[0].wr_id(), wr_id);
    }
    assert_eq!(consumer.poll(&mut one), Err(PollError::Overrun { dropped: Some(1) }));
    assert_eq!(consumer.resize(old.parts()), Err(ResizeError::Overrun));
}

#[test]
fn o01_a_resized_queue_stores_what_it_promises_now() {
    for promised in 1..=16_u32 {
        let (old, new, alerts) = (Memory::new(2), Memory::new(16), Alerts::new());
        let mut producer = old.parts().producer::<NoSignal>(&alerts, KEY, None);
        let mut consumer = old.parts().consumer(&alerts, KEY, false);
        assert_eq!(consumer.resize(new.promising(promised)), Ok(()));
        assert_eq!(consumer.capacity(), promised);
        producer.follow(new.promising(promised));
        for round in 0..20 {
            (0..promised).for_each(|nth| producer.push(&send(nth.into())).unwrap());
            let mut out = vec![Wc::default(); promised as usize];
            assert_eq!(consumer.poll(&mut out), Ok(promised as usize), "round {round}");
        }
    }
}

#[test]
fn o01_a_resized_queue_gives_slots_back_as_late_as_its_new_ring_allows() {
    // Of 16 slots; as many come back once more than the lag were taken, and none before.
    for (promised, lag) in [(16, 0), (13, 3), (12, 4), (1, 4)] {
        for (taken, back) in [(lag, 0), (lag + 1, lag + 1)] {
            let (old, new, alerts) = (Memory::new(2), Memory::new(16), Alerts::new());
            let mut producer = old.parts().producer::<NoSignal>(&alerts, KEY, None);
            let mut consumer = old.parts().consumer(&alerts, KEY, false);
            assert_eq!(consumer.resize(new.promising(promised)), Ok(()));
            producer.follow(new.promising(promised));
            producer.push_batch(&[(); 16].map(|()| send(0))).unwrap();
            (0..taken).for_each(|_| assert_eq!(consumer.poll(&mut [Wc::default()]), Ok(1)));
            let stored = producer.push_batch(&[(); 16].map(|()| send(0))).unwrap_err().stored;
            assert_eq!(stored, back, "{promised} promised, {taken} taken");
        }
    }
}

#[test]
fn p02_a_panic_while_the_old_ring_is_handed_out_does_not_hide_the_new_one() {
    for (resized_again, bell) in [(false, Bell::default()), (true, Bell::default())] {
        let (old, new, alerts) = (Memory::new(2), Memory::new(2), Alerts::new());
        let last = Memory::new(4);
        let mut producer = old.parts().producer(&alerts, KEY, Some(&bell));
        let mut consumer = old.parts().consumer(&alerts, KEY, true);
        producer.push_batch(&[0, 1].map(send)).unwrap();
        consumer.resize(new.parts()).unwrap();
        producer.follow(new.parts());
        producer.push(&send(2)).unwrap();
        let mut out = [Wc::default(); 2];
        let poll = AssertUnwindSafe(|| consumer.poll_with(&mut out, |_, _| panic!("as it should")));
        assert!(catch_unwind(poll).is_err());
        if resized_again {
            assert_eq!(consumer.resize(last.parts()), Ok(()), "the old ring is drained");
        } else {
            assert_eq!(consumer.arm(Notify::Next), Ok(Armed::MayHaveMissed), "there is one");
        }
        assert_eq!(drain(&mut consumer), Ok(vec![2]));
    }
}

#[test]
fn n08_events_and_errors_after_a_resize_are_those_of_the_queue() {
    let (old, new, alerts) = (Memory::new(2), Memory::new(2), Alerts::new());
    let mut consumer = old.parts().consumer(&alerts, KEY, false);
    assert_eq!(consumer.key(), KEY);
    assert_eq!(consumer.resize(new.parts()), Ok(()));
    assert_eq!(consumer.key(), KEY);
    assert_eq!(consumer.arm(Notify::Next), Err(ArmError::NoChannel));
    assert_eq!(consumer.poll(&mut []), Ok(0), "P6");
}

#[test]
fn q12_a_consumer_made_anew_goes_on_where_slots_were_given_back() {
    let (memory, alerts) = (Memory::new(4), Alerts::new());
    let mut producer = memory.parts().producer::<NoSignal>(&alerts, KEY, None);
    let mut consumer = memory.parts().consumer(&alerts, KEY, false);
    producer.push_batch(&[0, 1, 2].map(send)).unwrap();
    assert_eq!(consumer.poll(&mut [Wc::default(); 2]), Ok(2));
    let mut consumer = memory.parts().consumer(&alerts, KEY, false);
    assert_eq!(drain(&mut consumer), Ok(vec![2]));
    let mut other = memory.parts().producer::<NoSignal>(&alerts, KEY, None);
    other.push_batch(&[3, 4, 5, 6].map(send)).unwrap();
    assert_eq!(drain(&mut consumer), Ok(vec![3, 4, 5, 6]));
}

#[test]
fn q12_many_threads_follow_every_resize() {
    const PUSHES: u64 = 2000;
    let rings: Vec<_> = (0..40).map(|nth| Memory::new(64 << (nth % 3))).collect();
    let (alerts, current) = (Alerts::new(), &Mutex::new(0));
    let mut consumer = rings[0].parts().consumer(&alerts, KEY, false);
    let producer = rings[0].parts().producer::<NoSignal>(&alerts, KEY, None);
    let polled = &Polled::default();
    let (start, mut order) = (Instant::now(), Order::default());
    thread::scope(|threads| {
        for which in 0..PRODUCERS {
            let (mut producer, rings) = (producer.clone(), &rings);
            threads.spawn(move || {
                for nth in 1..=PUSHES {
                    polled.wait(which, nth, 20);
                    while let Err(error) = producer.push(&of(which, nth)) {
                        assert_eq!(error, PushError::Resized);
                        producer.follow(rings[*current.lock().unwrap()].parts());
                    }
                }
            });
        }
        let (mut out, mut resizes) = ([Wc::default(); 5], 0);
        while order.count() < PRODUCERS * PUSHES {
            let count = consumer.poll(&mut out).unwrap();
            order.check(&out[..count]);
            polled.set(&order);
            if order.count() > 140 * (resizes + 1) && resizes < 39 {
                let mut current = current.lock().unwrap();
                match consumer.resize(rings[*current + 1].parts()) {
                    Ok(()) => (*current, resizes) = (*current + 1, resizes + 1),
                    Err(error) => assert_eq!(error, ResizeError::UnderWay),
                }
            }
            assert!(start.elapsed() < DEADLINE, "jammed");
        }
        assert_eq!(resizes, 39);
    });
    assert_eq!(consumer.poll(&mut [Wc::default()]), Ok(0));
}
