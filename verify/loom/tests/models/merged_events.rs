//! A channel of one bit, where an event that finds another one waiting is merged with it. Whoever takes the
//! bit must see what was done before each of the raises, or its next arm may be none (N6).

use std::sync::Arc;

use cq_core::queue::{HeapCq, mpsc};
use cq_core::transport::{Arm, Armed, CqKey, Notify, Signal};
use cq_core::wc::Wc;
use loom::sync::atomic::{
    AtomicBool,
    Ordering::{AcqRel, Acquire},
};
use loom::thread;
use verify_loom::channel::LOST;
use verify_loom::harness::model;
use verify_loom::queue::KEY;
use verify_loom::shared::of;

/// How the bit is set. By a swap always: loom lets one that takes the bit overlook a plain store.
#[derive(Clone, Copy)]
enum Raise {
    /// Whether it is set or not, which hands on what earlier raises handed over.
    Always,
    /// Only if it is not set yet.
    IfUnset,
}
use Raise::{Always, IfUnset};

#[derive(Clone)]
struct Bit {
    set: Arc<AtomicBool>,
    raise: Raise,
}

impl Bit {
    fn new(raise: Raise) -> Self {
        Self { set: Arc::new(AtomicBool::new(false)), raise }
    }

    fn take(&self) -> bool {
        self.set.swap(false, AcqRel)
    }
}

impl Signal for Bit {
    fn raise(&self, _: CqKey) {
        if matches!(self.raise, Always) || !self.set.load(Acquire) {
            self.set.swap(true, AcqRel);
        }
    }
}

/// The consumer arms twice while `all` push; if there is an event then, it takes it and what came, and arms
/// again. Whether it may sleep then.
fn arm_and_take(consumer: &mut impl Arm, bit: &Bit) -> bool {
    for _ in 0..2 {
        let _may_have_missed = consumer.arm(Notify::Next).unwrap();
    }
    let woken = bit.take();
    if woken {
        consumer.poll(&mut [Wc::default(); 4]).unwrap();
    }
    woken && consumer.arm(Notify::Next).unwrap() == Armed::Armed
}

/// One producer pushes twice, and once more in the end.
fn one_producer(raise: Raise) {
    let bit = Bit::new(raise);
    let (mut producer, mut consumer) = HeapCq::new(4).unwrap().split_with(KEY, bit.clone());
    let producer = thread::spawn(move || {
        (1..=2).for_each(|nth| producer.push(&of(0, nth)).unwrap());
        producer
    });
    let asleep = arm_and_take(&mut consumer, &bit);
    producer.join().unwrap().push(&of(0, 3)).unwrap();
    assert!(!asleep || bit.take(), "{LOST}");
}

/// Two producers push once each, and one once more in the end.
fn two_producers(raise: Raise) {
    let bit = Bit::new(raise);
    let (mut last, mut consumer) = mpsc::HeapCq::new(4).unwrap().split_with(KEY, bit.clone());
    let producers = [0, 1].map(|which| {
        let mut producer = last.clone();
        thread::spawn(move || {
            producer.push(&of(which, 1)).unwrap();
            producer
        })
    });
    let asleep = arm_and_take(&mut consumer, &bit);
    let _producers = producers.map(|producer| producer.join().unwrap());
    last.push(&of(0, 2)).unwrap();
    assert!(!asleep || bit.take(), "{LOST}");
}

#[test]
fn n06_an_event_that_is_merged_hands_over_too() {
    for (name, body) in [
        ("merged events of one producer", one_producer as fn(Raise)),
        ("merged events of two producers", two_producers),
    ] {
        model(name, move || body(Always)).must_fail_as(
            "a raise that leaves the event alone",
            LOST,
            move || body(IfUnset),
        );
    }
}
