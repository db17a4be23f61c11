//! Resizing while producers push: what was reserved in the old ring comes first, each producer's order is
//! kept, nothing is lost or doubled, whoever sleeps is woken (N6), and the arm stays in force.

use std::sync::Arc;

use cq_core::cq::CompletionQueue;
use cq_core::queue::mpsc::{HeapCq, NewRing, PushError, Ring, SharedConsumer, SharedProducer};
use cq_core::queue::{QueueChannel as MayRaise, Tagged};
use cq_core::sync::Site;
use cq_core::transport::{Arm, Armed, Events, Notify, PollCq};
use cq_core::wc::Wc;
use loom::sync::Mutex;
use verify_loom::channel::{Channel, LOST, take_some};
use verify_loom::harness::model;
use verify_loom::shared::{Taken, of};
use verify_loom::threads::spawn;

const MISCOUNTED: &str = "stored, and never handed out";

/// Where the queue has gone. Held while it is resized: who is refused finds the new ring once it is given back.
type Resized = Arc<Mutex<Option<NewRing<'static>>>>;

/// Pushes, and follows the queue where it has gone.
fn push<C: MayRaise>(
    producer: &mut SharedProducer<'static, Wc, C>,
    resized: &Resized,
    wc: Wc,
    solicited: bool,
) {
    while let Err(error) = producer.push(&Tagged { wc, tag: 0, solicited }) {
        assert_eq!(error, PushError::Resized);
        let to = resized.lock().unwrap().clone().expect("the ring that it was resized to");
        producer.follow(&to);
    }
}

/// Resizes to a ring of four, which is never freed.
fn resize_anew<C>(consumer: &mut SharedConsumer<'static, Wc, C>, resized: &Resized) {
    let mut to = resized.lock().unwrap();
    *to = Some(consumer.resize(Box::leak(Box::new(Ring::<4>::new())).spare()).unwrap());
}

fn take(consumer: &mut SharedConsumer<'_>, taken: &mut Taken) {
    let mut buffer = [Wc::default(); 4];
    let count = consumer.poll_into(&mut buffer).unwrap();
    taken.add(&buffer[..count]);
}

/// The first producer pushes two, the second one; the consumer polls, resizes, and polls again.
fn resize() {
    let (resized, mut taken) = (Resized::default(), Taken::default());
    let (last, mut consumer) = HeapCq::new(4).unwrap().split();
    let producers = [(0, 2), (1, 1)].map(|(which, pushes)| {
        spawn((&last, &resized), move |(mut producer, resized)| {
            for nth in 1..=pushes {
                push(&mut producer, &resized, of(which, nth), false);
            }
            producer
        })
    });
    take(&mut consumer, &mut taken);
    resize_anew(&mut consumer, &resized);
    take(&mut consumer, &mut taken);
    let _producers = producers.map(|producer| producer.join().unwrap());
    take(&mut consumer, &mut taken);
    assert_eq!(taken.count(), 3, "{MISCOUNTED}");
}

#[test]
fn q12_resizing_keeps_everything_in_order() {
    model("resize against two producers", resize);
}

/// The consumer arms, resizes, and sleeps until the solicited completion has come. It takes what is in both rings.
fn resize_and_sleep() {
    let (resized, mut channel) = (Resized::default(), Channel::new(2));
    let (last, consumer) = HeapCq::new(2).unwrap().split_with(channel.clone());
    let mut cq = CompletionQueue::new(consumer);
    let producers = [0, 1].map(|which| {
        let (mut producer, resized) = (last.clone(), Arc::clone(&resized));
        spawn(&channel, move |channel| {
            push(&mut producer, &resized, of(which, 1), which == 1);
            channel.hang_up();
            producer
        })
    });
    let _may_have_missed = cq.get_mut().arm(Notify::Solicited).unwrap();
    resize_anew(cq.get_mut(), &resized);
    let (mut taken, mut buffer) = (Taken::default(), [Wc::default(); 2]);
    loop {
        let count = take_some(&mut cq, &mut channel, Notify::Solicited, &mut buffer).unwrap();
        taken.add(&buffer[..count]);
        if buffer[..count].contains(&of(1, 1)) {
            break;
        }
    }
    let _producers = producers.map(|producer| producer.join().unwrap());
}

/// Its controls fail with three preemptions only: `armed, resized` has them.
#[test]
fn n06_who_sleeps_over_a_resize_is_woken() {
    model("resize, wait for solicited", resize_and_sleep);
}

/// The consumer arms, and resizes; if `again`, it takes what events there were, and arms again. It looks at
/// nothing after that, so if it was told that it is safe to sleep, an event must come: the second producer
/// pushes what is solicited.
fn arm_across(again: bool) {
    let (resized, mut channel) = (Resized::default(), Channel::new(0));
    let (last, mut consumer) = HeapCq::new(4).unwrap().split_with(channel.clone());
    let producers = [0, 1].map(|which| {
        spawn((&last, &resized), move |(mut producer, resized)| {
            push(&mut producer, &resized, of(which, 1), which == 1);
            producer
        })
    });
    let mut asleep = consumer.arm(Notify::Solicited).unwrap() == Armed::Armed;
    resize_anew(&mut consumer, &resized);
    if again {
        while channel.take_event().unwrap().is_some() {}
        asleep = consumer.arm(Notify::Solicited).unwrap() == Armed::Armed;
    }
    let _producers = producers.map(|producer| producer.join().unwrap());
    assert!(!asleep || channel.take_event().unwrap().is_some(), "{LOST}");
}

#[test]
fn n06_an_arm_outlives_a_resize() {
    model("armed, resized", || arm_across(false))
        .must_fail_without([Site::PushFence, Site::ArmFence], LOST);
}

#[test]
fn n06_an_arm_after_a_resize() {
    model("armed, resized, armed again", || arm_across(true));
}
