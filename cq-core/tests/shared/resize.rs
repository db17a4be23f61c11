//! Moving to other storage (Q12).

use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use cq_core::health::State;
use cq_core::soft::Alerts;
use cq_core::soft::shared::{BatchError, PushError, ResizeError};
use cq_core::transport::{Arm, NoSignal, Notify, Poll, PollError};
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
