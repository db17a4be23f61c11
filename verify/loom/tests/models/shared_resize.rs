//! Resizing while producers push: what was reserved in the old ring comes first, each producer's order is
//! kept, nothing is lost or doubled, whoever sleeps is woken (N6), and the arm stays in force.

use std::sync::Arc;

use cq_core::cq::CompletionQueue;
use cq_core::soft::shared::{Consumer, Producer, PushError};
use cq_core::sync::Site;
use cq_core::transport::{Arm, Armed, Events, Notify, Poll, Signal};
use cq_core::wc::Wc;
use loom::sync::Mutex;
use loom::thread;
use verify_loom::channel::{Channel, LOST, take_some};
use verify_loom::harness::{deep_model, model};
use verify_loom::shared::{SharedQueue, Taken, of};

const MISCOUNTED: &str = "stored, and never handed out";

/// Pushes, and follows the queue where it has gone. `resized` is held while the queue is resized: who is
/// refused finds the new ring once it is given back.
fn push<'q, S: Signal>(
    producer: &mut Producer<'q, S>,
    queue: &'q SharedQueue,
    resized: &Mutex<()>,
    wc: &Wc,
    solicited: bool,
) {
    while let Err(error) = producer.push_with(wc, 0, solicited) {
        assert_eq!(error, PushError::Resized);
        let _is_over = resized.lock().unwrap();
        producer.follow(queue.ring(1));
    }
}

fn take(consumer: &mut Consumer<'_>, taken: &mut Taken) {
    let mut room = [Wc::default(); 4];
    let count = consumer.poll(&mut room).unwrap();
    taken.add(&room[..count]);
}

/// The first producer pushes two, the second one; the consumer polls, resizes, and polls again.
fn resize() {
    let queue = SharedQueue::new(&[4, 4], 0);
    let resized = Arc::new(Mutex::new(()));
    let (mut consumer, mut taken) = (queue.consumer(false), Taken::default());
    let producers = [(0, 2), (1, 1)].map(|(which, pushes)| {
        let (queue, resized) = (Arc::clone(&queue), Arc::clone(&resized));
        thread::spawn(move || {
            let mut producer = queue.producer();
            for nth in 1..=pushes {
                push(&mut producer, &queue, &resized, &of(which, nth), false);
            }
        })
    });
    take(&mut consumer, &mut taken);
    {
        let _under_way = resized.lock().unwrap();
        consumer.resize(queue.ring(1)).unwrap();
    }
    take(&mut consumer, &mut taken);
    producers.into_iter().for_each(|producer| producer.join().unwrap());
    take(&mut consumer, &mut taken);
    assert_eq!(taken.count(), 3, "{MISCOUNTED}");
}

#[test]
fn q12_resizing_keeps_everything_in_order() {
    model("resize against two producers", resize)
        .must_fail_without(Site::DrainBeforeNew, MISCOUNTED)
        .must_fail_without(Site::ResizeSeen, MISCOUNTED);
}

/// The consumer arms, resizes, and sleeps until the solicited completion has come. It takes what is in both
/// rings.
fn resize_and_sleep() {
    let (queue, mut channel) = (SharedQueue::new(&[2, 2], 0), Channel::new(2));
    let resized = Arc::new(Mutex::new(()));
    let mut cq = CompletionQueue::new(queue.consumer(true));
    let producers = [0, 1].map(|which| {
        let (queue, resized) = (Arc::clone(&queue), Arc::clone(&resized));
        let channel = channel.clone();
        thread::spawn(move || {
            let mut producer = queue.producer_with(&channel);
            push(&mut producer, &queue, &resized, &of(which, 1), which == 1);
            channel.hang_up();
        })
    });
    let _may_have_missed = cq.transport().arm(Notify::Solicited).unwrap();
    {
        let _under_way = resized.lock().unwrap();
        cq.transport().resize(queue.ring(1)).unwrap();
    }
    let (mut taken, mut room) = (Taken::default(), [Wc::default(); 2]);
    loop {
        let count = take_some(&mut cq, &mut channel, Notify::Solicited, &mut room).unwrap();
        taken.add(&room[..count]);
        if room[..count].contains(&of(1, 1)) {
            break;
        }
    }
    producers.into_iter().for_each(|producer| producer.join().unwrap());
}

#[test]
fn n06_who_sleeps_over_a_resize_is_woken() {
    deep_model("resize, wait for solicited", resize_and_sleep)
        .must_fail_without(Site::EndWakes, LOST)
        .must_fail_without(Site::PushFence, LOST)
        .must_fail_without(Site::ArmFence, LOST);
}

/// The consumer arms, and resizes; if `again`, it takes what events there were, and arms again. It looks at
/// nothing after that, so if it was told that it is safe to sleep, an event must come. `solicited` says what
/// each producer pushes.
fn arm_across(again: bool, solicited: &'static [bool]) {
    let (queue, mut channel) = (SharedQueue::new(&[4, 4], 0), Channel::new(0));
    let resized = Arc::new(Mutex::new(()));
    let mut consumer = queue.consumer(true);
    let producers: Vec<_> = (0..)
        .zip(solicited)
        .map(|(which, &solicited)| {
            let (queue, resized) = (Arc::clone(&queue), Arc::clone(&resized));
            let channel = channel.clone();
            thread::spawn(move || {
                let mut producer = queue.producer_with(&channel);
                push(&mut producer, &queue, &resized, &of(which, 1), solicited);
            })
        })
        .collect();
    let mut asleep = consumer.arm(Notify::Solicited).unwrap() == Armed::Armed;
    {
        let _under_way = resized.lock().unwrap();
        consumer.resize(queue.ring(1)).unwrap();
    }
    if again {
        while channel.next().unwrap().is_some() {}
        asleep = consumer.arm(Notify::Solicited).unwrap() == Armed::Armed;
    }
    producers.into_iter().for_each(|producer| producer.join().unwrap());
    assert!(!asleep || channel.next().unwrap().is_some(), "{LOST}");
}

#[test]
fn n06_an_arm_outlives_a_resize() {
    model("armed, resized", || arm_across(false, &[false, true]))
        .must_fail_without(Site::PushFence, LOST)
        .must_fail_without(Site::ArmFence, LOST);
}

#[test]
fn n06_an_arm_after_a_resize() {
    model("armed, resized, armed again", || arm_across(true, &[false, true]))
        .must_fail_without(Site::EndWakes, LOST);
}
