//! Arming and notification, as far as several producers change it (N1, N3, N6, O5).

use std::thread;

use cq_core::cq::CompletionQueue;
use cq_core::queue::OnChannel;
use cq_core::queue::mpsc::{Consumer, Producer, SoftCq};
use cq_core::transport::{Arm, Armed, Notify};
use cq_core::wc::Wc;

use super::super::{Bell, KEY, drain, failed, recv, send};
use super::dropped;
use super::threads::{Order, PRODUCERS, Polled};

type OnBell<'a> = Producer<'a, OnChannel<&'a Bell>>;

/// A queue of four with events and two producers, for `test`.
fn with_two(test: impl FnOnce([OnBell<'_>; 2], Consumer<'_, OnChannel>, &Bell)) {
    let (mut storage, bell) = (SoftCq::<4>::new(), Bell::default());
    let (producer, consumer) = storage.split_with(KEY, &bell);
    test([producer.clone(), producer], consumer, &bell);
}

#[test]
fn n01_one_event_for_each_arm_whoever_pushes() {
    with_two(|[mut one, mut other], mut consumer, bell| {
        one.push(&send(0)).unwrap();
        assert_eq!(bell.take(), 0, "not armed");
        assert_eq!(consumer.arm(Notify::Next), Ok(Armed::MayHaveMissed), "N2");
        other.push(&send(1)).unwrap();
        one.push_batch(&[2, 3].map(send)).unwrap();
        assert_eq!(bell.take(), 1);
    });
}

#[test]
fn n03_what_one_producer_does_not_raise_another_does() {
    with_two(|[mut one, mut other], mut consumer, bell| {
        let _ = consumer.arm(Notify::Solicited).unwrap();
        one.push_batch(&[send(0), recv(1)]).unwrap();
        assert_eq!(bell.take(), 0);
        other.push_batch(&[failed(2), failed(3)]).unwrap();
        assert_eq!(bell.take(), 1);
    });
}

#[test]
fn o05_the_overrun_by_one_producer_wakes_once() {
    for on in [Notify::Next, Notify::Solicited] {
        with_two(|[mut one, mut other], mut consumer, bell| {
            one.push_batch(&[0, 1, 2, 3].map(send)).unwrap();
            let _ = consumer.arm(on).unwrap();
            assert_eq!(other.push(&send(4)), dropped(1, 1));
            assert_eq!(one.push(&send(5)), dropped(1, 2));
            assert_eq!(bell.take(), 1, "{on:?}");
            assert_eq!(drain(&mut consumer), Ok(vec![0, 1, 2, 3]));
            assert_eq!(consumer.arm(on), Ok(Armed::MayHaveMissed), "so that the next poll tells");
            assert!(drain(&mut consumer).is_err());
        });
    }
}

#[test]
fn n06_a_sleeper_among_many_threads_gets_everything() {
    const PUSHES: u64 = 2000;
    let (mut storage, bell) = (SoftCq::<32>::new(), Bell::default());
    let (producer, consumer) = storage.split_with(KEY, &bell);
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
