//! Arming and notification (O5, N1–N4, N6, N11).

use std::thread;

use cq_core::cq::CompletionQueue;
use cq_core::soft::SoftCq;
use cq_core::soft::shared::{Consumer, Producer};
use cq_core::transport::{Arm, ArmError, Armed, CqKey, Notify};
use cq_core::wc::Wc;

use super::threads::{Order, PRODUCERS, Polled};
use super::{Bell, KEY, drain, failed, overrun, recv, send};

/// A queue of four with events and two producers, for `test`.
fn with_events(test: impl FnOnce([Producer<'_, &Bell>; 2], Consumer<'_>, &Bell)) {
    let (mut storage, bell) = (SoftCq::<4>::new(), Bell::default());
    let (producer, consumer) = storage.split_shared_with(KEY, &bell);
    test([producer.clone(), producer], consumer, &bell);
}

#[test]
fn o05_the_overrun_wakes_a_sleeper_of_either_kind() {
    for on in [Notify::Next, Notify::Solicited] {
        with_events(|[mut one, mut other], mut consumer, bell| {
            one.push_batch(&[0, 1, 2, 3].map(send)).unwrap();
            let _ = consumer.arm(on).unwrap();
            assert_eq!(other.push(&send(4)), overrun(1));
            assert_eq!(bell.take(), 1, "{on:?}");
            assert_eq!(consumer.arm(on), Ok(Armed::MayHaveMissed));
            assert_eq!(drain(&mut consumer), Ok(vec![0, 1, 2, 3]));
            assert_eq!(consumer.arm(on), Ok(Armed::MayHaveMissed), "so that the next poll tells");
            assert!(drain(&mut consumer).is_err());
        });
    }
}

#[test]
fn n01_one_event_for_each_arm_whoever_pushes() {
    with_events(|[mut one, mut other], mut consumer, bell| {
        one.push(&send(0)).unwrap();
        assert_eq!(bell.take(), 0, "not armed");
        assert_eq!(consumer.arm(Notify::Next), Ok(Armed::MayHaveMissed), "N2");
        other.push(&send(1)).unwrap();
        one.push_batch(&[2, 3].map(send)).unwrap();
        assert_eq!(bell.take(), 1);
    });
}

#[test]
fn n03_solicited_means_solicited_receives_and_failures() {
    for (wc, solicited, expected) in [
        (recv(0), false, 0),
        (recv(0), true, 1),
        (send(0), false, 0),
        (send(0), true, 0),
        (failed(0), false, 1),
    ] {
        with_events(|[mut one, _], mut consumer, bell| {
            let _ = consumer.arm(Notify::Solicited).unwrap();
            one.push_with(&wc, 0, solicited).unwrap();
            assert_eq!(bell.take(), expected, "{wc:?}, solicited {solicited}");
            assert_eq!(consumer.arm(Notify::Next), Ok(Armed::MayHaveMissed), "N4");
            one.push(&send(1)).unwrap();
            assert_eq!(bell.take(), 1, "the arm was strengthened");
        });
    }
}

#[test]
fn n03_a_batch_with_a_failure_wakes_once() {
    with_events(|[mut one, _], mut consumer, bell| {
        let _ = consumer.arm(Notify::Solicited).unwrap();
        one.push_batch(&[send(0), recv(1)]).unwrap();
        assert_eq!(bell.take(), 0);
        one.push_batch(&[failed(2), failed(3)]).unwrap();
        assert_eq!(bell.take(), 1);
    });
}

#[test]
fn n08_events_carry_the_name_that_the_queue_was_given() {
    let mut storage = SoftCq::<4>::new();
    let (_, consumer) = storage.split_shared_with(KEY, Bell::default());
    assert_eq!(consumer.key(), KEY);
    let (_, consumer) = storage.split_shared();
    assert_eq!(consumer.key(), CqKey { index: 0, generation: 0 });
}

#[test]
fn n11_arming_without_a_channel_is_an_error() {
    let mut storage = SoftCq::<4>::new();
    let (_producer, mut consumer) = storage.split_shared();
    assert_eq!(consumer.arm(Notify::Next), Err(ArmError::NoChannel));
}

#[test]
fn n06_a_sleeper_among_many_threads_gets_everything() {
    const PUSHES: u64 = 2000;
    let (mut storage, bell) = (SoftCq::<32>::new(), Bell::default());
    let (producer, consumer) = storage.split_shared_with(KEY, &bell);
    let polled = Polled::default();
    let (mut cq, mut order) = (CompletionQueue::new(consumer), Order::default());
    thread::scope(|threads| {
        for which in 0..PRODUCERS {
            let (mut producer, polled) = (producer.clone(), &polled);
            threads.spawn(move || polled.push(which, &mut producer, 8, PUSHES));
        }
        let (mut room, mut channel) = ([Wc::default(); 16], &bell);
        while order.count() < PRODUCERS * PUSHES {
            order.check(cq.wait(&mut room, &mut channel, None).unwrap());
            polled.set(&order);
        }
    });
}
