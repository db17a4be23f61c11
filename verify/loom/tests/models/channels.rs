//! The channels that come with the engine: who takes an event of several that were merged sees what was done before each of
//! them, so that its next arm is one (N6); a task that waits is woken, also if an earlier wait was dropped half way.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use cq_core::channel::flag::{Flag, Raiser, Receiver};
use cq_core::channel::waker::WakerChannel;
use cq_core::cq::CompletionQueue;
use cq_core::queue::{HeapCq, SoftCq, SplitSignal, mpsc};
use cq_core::sync::Site;
use cq_core::transport::{Armed, CqKey, EventError, Events, Notify, Signal};
use cq_core::wc::Wc;
use cq_verbs::polling::ArmWc;
use loom::future::block_on;
use loom::sync::atomic::AtomicBool;
use loom::sync::atomic::Ordering::{AcqRel, Acquire};
use loom::thread;
use verify_loom::channel::LOST;
use verify_loom::harness::model;
use verify_loom::queue::{KEY, expect, numbered};
use verify_loom::shared::of;
use verify_loom::threads::spawn;

/// It is never freed, so that threads can own its sides.
fn flag() -> (Raiser<'static>, Receiver<'static>) {
    Box::leak(Box::new(Flag::new())).split()
}

/// The consumer arms twice while all push; if there is an event then, it takes it and what came, and arms again. Whether it
/// may sleep then.
fn arm_and_take(consumer: &mut impl ArmWc, events: &mut impl Events) -> bool {
    for _ in 0..2 {
        let _may_have_missed = consumer.arm(Notify::Next).unwrap();
    }
    let woken = events.take_event().unwrap().is_some();
    if woken {
        consumer.poll_into(&mut [Wc::default(); 4]).unwrap();
    }
    woken && consumer.arm(Notify::Next).unwrap() == Armed::Armed
}

/// One producer pushes twice, and once more in the end.
fn one_producer((raiser, mut events): (impl Signal + SplitSignal + 'static, impl Events)) {
    let (mut producer, mut consumer) = HeapCq::new(4).unwrap().split_with(raiser);
    let producer = thread::spawn(move || {
        (1..=2).for_each(|nth| producer.push(&of(0, nth)).unwrap());
        producer
    });
    let asleep = arm_and_take(&mut consumer, &mut events);
    let mut producer = producer.join().unwrap();
    producer.push(&of(0, 3)).unwrap();
    assert!(!asleep || events.take_event().unwrap().is_some(), "{LOST}");
}

/// Two producers push once each, and one once more in the end.
fn two_producers() {
    let (raiser, mut events) = flag();
    let (mut last, mut consumer) = mpsc::HeapCq::new(4).unwrap().split_with(raiser);
    let producers = [0, 1].map(|which| {
        spawn(&last, move |mut producer| {
            producer.push(&of(which, 1)).unwrap();
            producer
        })
    });
    let asleep = arm_and_take(&mut consumer, &mut events);
    let _producers = producers.map(|producer| producer.join().unwrap());
    last.push(&of(0, 2)).unwrap();
    assert!(!asleep || events.take_event().unwrap().is_some(), "{LOST}");
}

#[test]
fn n06_the_flag_hands_over_each_event_that_it_merges() {
    let runs =
        [("one producer", (|| one_producer(flag())) as fn()), ("two producers", two_producers)];
    for (name, run) in runs {
        model(format!("the flag, {name}"), run)
            .must_fail_without([Site::CountEvent, Site::SeeEvents], LOST);
    }
}

/// A flag is given back while the last wake-up by it is raised. If it is had again, nothing of that is left in it.
fn give_back() {
    let (raiser, receiver) = flag();
    let queue: &'static mut SoftCq<2> = Box::leak(Box::new(SoftCq::new()));
    let (producer, mut consumer) = queue.split_with(raiser);
    let wakeup = consumer.mark_failed();
    let gives_back = thread::spawn(move || {
        let (_, raiser) = SoftCq::<2>::reunite(producer, consumer).unwrap();
        if let Ok(flag) = raiser.reunite(receiver) {
            let (_raiser, mut events) = flag.split();
            assert_eq!(events.take_event(), Ok(None), "of an earlier side");
        }
    });
    wakeup.wake();
    gives_back.join().unwrap();
}

#[test]
fn s04_a_flag_that_is_given_back_is_nobody_else_s() {
    model("a flag is given back", give_back).must_fail_without([Site::Leave], "of an earlier side");
}

/// A channel of one bit, where an event that finds another one waiting is merged with it. The bit is set by a swap always:
/// loom lets one that takes it overlook a plain store.
#[derive(Clone)]
struct Bit {
    set: Arc<AtomicBool>,
    /// Whether it is set again where it is set, which hands on what earlier raises handed over.
    again: bool,
}

impl Bit {
    /// Both ends.
    fn split(again: bool) -> (Self, Self) {
        let bit = Self { set: Arc::new(AtomicBool::new(false)), again };
        (bit.clone(), bit)
    }
}

impl Signal for Bit {
    fn key(&self) -> CqKey {
        KEY
    }

    fn raise(&self) {
        if self.again || !self.set.load(Acquire) {
            self.set.swap(true, AcqRel);
        }
    }
}

impl Events for Bit {
    fn take_event(&mut self) -> Result<Option<CqKey>, EventError> {
        Ok(self.set.swap(false, AcqRel).then_some(KEY))
    }
}

/// What a channel of one's own owes: who takes its event must see what was done before each of the raises.
#[test]
fn n06_an_event_that_is_merged_hands_over_too() {
    model("merged events", || one_producer(Bit::split(true))).must_fail_as(
        "setting it again",
        LOST,
        || one_producer(Bit::split(false)),
    );
}

/// A task waits for each of two completions; if `drops`, it begins to wait, drops that, and begins anew.
fn wait_for_two(drops: bool) {
    let channel: &'static mut WakerChannel = Box::leak(Box::new(WakerChannel::new()));
    let (raiser, mut events) = channel.split();
    let (mut producer, consumer) = HeapCq::new(2).unwrap().split_with(raiser);
    let producer = thread::spawn(move || {
        (1..=2).for_each(|number| producer.push(&numbered(number)).unwrap());
        producer
    });
    let (mut cq, mut buffer, mut taken) = (CompletionQueue::new(consumer), [Wc::default()], 0);
    while taken < 2 {
        if drops {
            let mut buffer = [Wc::default()];
            let looked = {
                let mut waits = pin!(cq.next_batch(&mut buffer, &mut events));
                waits.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
            };
            if looked {
                taken += 1;
                expect(&buffer[0], taken);
                continue;
            }
        }
        let batch = block_on(cq.next_batch(&mut buffer, &mut events)).unwrap();
        taken += 1;
        expect(&batch[0], taken);
    }
    let _producer = producer.join().unwrap();
}

#[test]
fn n06_a_task_that_waits_is_woken() {
    for (name, drops) in [("a task waits", false), ("a task waits, drops that, waits", true)] {
        model(name, move || wait_for_two(drops))
            .must_fail_without([Site::PushFence, Site::ArmFence], "deadlock");
    }
}
