//! The software completion queue with several producers: overrun, notification, resizing, and many threads
//! (C10, P2, O1, O3, O5, N1, N3, N6, N11, Q12).
#![cfg(all(not(loom), target_has_atomic = "64"))]

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use cq_core::cq::CompletionQueue;
use cq_core::health::State;
use cq_core::ring::{CapacityError, Gate, Position, Slot};
use cq_core::soft::shared::{BatchError, Consumer, Parts, Producer, PushError, ResizeError};
use cq_core::soft::{Alerts, Overrun, SoftCq, Tag};
use cq_core::transport::{
    Arm, ArmError, Armed, Block, CqKey, EventError, Events, NoSignal, Notify, Poll, PollError,
    Signal,
};
use cq_core::wc::{Wc, WcOpcode, WcStatus};

const KEY: CqKey = CqKey { index: 3, generation: 9 };
const DEADLINE: Duration = Duration::from_secs(60);

/// Counts events.
#[derive(Default)]
struct Bell(AtomicU32);

impl Bell {
    fn take(&self) -> u32 {
        self.0.swap(0, SeqCst)
    }
}

impl Signal for Bell {
    fn raise(&self, cq: CqKey) {
        assert_eq!(cq, KEY);
        self.0.fetch_add(1, SeqCst);
    }
}

/// A channel that is looked at again and again, until the deadline.
impl Events for &Bell {
    fn next(&mut self) -> Result<Option<CqKey>, EventError> {
        let taken = self.0.fetch_update(SeqCst, SeqCst, |count| count.checked_sub(1));
        Ok(taken.ok().map(|_| KEY))
    }
}

impl Block for &Bell {
    fn block(&mut self, _: &mut Option<Duration>) -> Result<bool, EventError> {
        let start = Instant::now();
        while self.0.load(SeqCst) == 0 {
            assert!(start.elapsed() < DEADLINE, "lost wake-up");
            thread::yield_now();
        }
        Ok(true)
    }
}

fn recv(wr_id: u64) -> Wc {
    Wc::new(wr_id, WcStatus::SUCCESS, 1).with_opcode(WcOpcode::RECV)
}

fn send(wr_id: u64) -> Wc {
    Wc::new(wr_id, WcStatus::SUCCESS, 1).with_opcode(WcOpcode::SEND)
}

fn failed(wr_id: u64) -> Wc {
    Wc::new(wr_id, WcStatus::REM_ACCESS_ERR, 1)
}

fn overrun<T>(dropped: u32) -> Result<T, PushError> {
    Err(PushError::Overrun(Overrun { dropped }))
}

fn drain(consumer: &mut Consumer<'_>) -> Result<Vec<u64>, PollError> {
    let mut out = [Wc::default(); 16];
    let count = consumer.poll(&mut out)?;
    Ok(out[..count].iter().map(Wc::wr_id).collect())
}

/// The memory of one ring.
struct Memory {
    gate: Gate,
    slots: Vec<Slot>,
    tags: Vec<Tag>,
}

impl Memory {
    fn new(storage: usize) -> Self {
        Self::at(0, storage)
    }

    fn at(position: Position, storage: usize) -> Self {
        Self {
            gate: Gate::at(position),
            slots: (0..storage).map(|_| Slot::new()).collect(),
            tags: (0..storage).map(|_| Tag::new()).collect(),
        }
    }

    fn parts(&self) -> Parts<'_> {
        self.promising(self.slots.len() as u32)
    }

    fn promising(&self, promised: u32) -> Parts<'_> {
        Parts::new(&self.gate, &self.slots, &self.tags, promised).unwrap()
    }
}

/// A queue of four with events and two producers, for `test`.
fn with_events(test: impl FnOnce([Producer<'_, &Bell>; 2], Consumer<'_>, &Bell)) {
    let (mut storage, bell) = (SoftCq::<4>::new(), Bell::default());
    let (producer, consumer) = storage.split_shared_with(KEY, &bell);
    test([producer.clone(), producer], consumer, &bell);
}

#[test]
fn o01_capacity_unpolled_is_no_overrun_and_o03_one_more_is() {
    let mut storage = SoftCq::<4>::new();
    let (mut one, mut consumer) = storage.split_shared();
    let mut other = one.clone();
    assert_eq!(consumer.capacity(), 4);
    for wr_id in [0, 2] {
        one.push(&send(wr_id)).unwrap();
        other.push(&send(wr_id + 1)).unwrap();
    }
    assert_eq!(one.push(&send(4)), overrun(1));
    assert_eq!(other.push(&send(5)), overrun(2));
    assert_eq!(drain(&mut consumer), Ok(vec![0, 1, 2, 3]));
    assert_eq!(one.push(&send(6)), overrun(3), "for ever, though there is room now");
    for _ in 0..3 {
        assert_eq!(drain(&mut consumer), Err(PollError::Overrun { dropped: Some(3) }));
        assert_eq!(consumer.poll(&mut []), Ok(0), "P6");
    }
}

#[test]
fn o01_slack_never_hastens_the_overrun() {
    for promised in 1..=16_u32 {
        let (memory, alerts) = (Memory::new(16), Alerts::new());
        let parts = memory.promising(promised);
        let mut producers = [(); 2].map(|()| parts.producer::<NoSignal>(&alerts, KEY, None));
        let mut consumer = parts.consumer(&alerts, KEY, false);
        for round in 0..50_u32 {
            for nth in 0..promised {
                producers[(round + nth) as usize % 2].push(&send(nth.into())).unwrap();
            }
            let mut out = vec![Wc::default(); promised as usize];
            assert_eq!(consumer.poll(&mut out), Ok(promised as usize), "round {round}");
        }
        let stored = (0..).take_while(|nth| producers[0].push(&send(*nth)).is_ok()).count();
        assert!((promised as usize..=16).contains(&stored), "{promised} promised, {stored} stored");
        assert_eq!(alerts.state(), State::Overrun { dropped: 1 });
    }
}

#[test]
fn o03_a_batch_is_stored_as_far_as_it_fits() {
    let mut storage = SoftCq::<8>::new();
    let (mut producer, mut consumer) = storage.split_shared();
    let batch = |from: u64| [0, 1, 2, 3, 4].map(|nth| send(from + nth));
    assert_eq!(producer.push_batch(&[]), Ok(()));
    assert_eq!(producer.push_batch(&batch(0)), Ok(()));
    let error = producer.push_batch(&batch(5)).unwrap_err();
    assert_eq!(error, BatchError { stored: 3, why: overrun::<()>(2).unwrap_err() });
    assert!(error.to_string().starts_with("only 3 completions of the batch were stored: "));
    let again = producer.push_batch(&batch(10)).unwrap_err();
    assert_eq!(again, BatchError { stored: 0, why: overrun::<()>(7).unwrap_err() });
    assert_eq!(drain(&mut consumer), Ok((0..8).collect()));
    assert_eq!(drain(&mut consumer), Err(PollError::Overrun { dropped: Some(7) }));
}

#[test]
fn o03_a_batch_longer_than_the_queue_fills_it() {
    let mut storage = SoftCq::<2>::new();
    let (mut producer, mut consumer) = storage.split_shared();
    let error = producer.push_batch(&[0, 1, 2].map(send)).unwrap_err();
    assert_eq!(error, BatchError { stored: 2, why: overrun::<()>(1).unwrap_err() });
    assert_eq!(drain(&mut consumer), Ok(vec![0, 1]));
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
fn n11_arming_without_a_channel_is_an_error() {
    let mut storage = SoftCq::<4>::new();
    let (_producer, mut consumer) = storage.split_shared();
    assert_eq!(consumer.arm(Notify::Next), Err(ArmError::NoChannel));
}

#[test]
fn splitting_again_starts_afresh() {
    let mut storage = SoftCq::<2>::new();
    let (mut producer, _) = storage.split_shared();
    assert!(producer.push_batch(&[0, 1, 2].map(send)).is_err());
    let (mut producer, mut consumer) = storage.split_shared();
    producer.push(&send(7)).unwrap();
    assert_eq!(drain(&mut consumer), Ok(vec![7]));
    let (mut producer, mut consumer) = storage.split();
    producer.push(&send(8)).unwrap();
    assert_eq!(consumer.poll(&mut [Wc::default(); 4]), Ok(1));
}

/// Places where something wraps, for a ring of this many slots: positions of 32 and of 62 bits, generations
/// of 15 and of 16.
fn wraps(storage: usize) -> [Position; 5] {
    let storage = storage as Position;
    [1 << 32, 1 << 62, storage << 15, storage << 16, (storage << 16) + (1 << 62)]
}

#[test]
fn positions_and_generations_wrap_unnoticed() {
    for storage in [1, 2, 4, 64] {
        for wrap in wraps(storage) {
            for before in [1, storage as Position + 1] {
                let (memory, alerts) = (Memory::at(wrap - before, storage), Alerts::new());
                let mut producer = memory.parts().producer::<NoSignal>(&alerts, KEY, None);
                let mut consumer = memory.parts().consumer(&alerts, KEY, false);
                let mut out = vec![Wc::default(); storage + 1];
                for round in 0..8 {
                    let wcs: Vec<_> =
                        (0..storage as u64).map(|nth| send(100 * round + nth)).collect();
                    producer.push_batch(&wcs).unwrap();
                    assert_eq!(consumer.poll(&mut out), Ok(storage), "{storage} slots, {wrap}");
                    assert_eq!(out[..storage], wcs);
                    assert_eq!(consumer.poll(&mut out), Ok(0), "a false entry");
                }
                let many = vec![send(0); storage + 1];
                let error = producer.push_batch(&many).unwrap_err();
                assert_eq!(error.stored, storage);
                assert_eq!(consumer.poll(&mut out), Ok(storage));
                assert!(consumer.poll(&mut out).is_err());
            }
        }
    }
}

#[test]
fn foreign_bytes_do_no_harm() {
    for position in [0, 5, 1 << 61, (1 << 62) - 1] {
        let memory = Memory::at(position, 4);
        // Garbage in place of a ring that was left at the same position.
        let other = Memory { gate: Gate::at(!position), ..Memory::new(4) };
        let alerts = Alerts::new();
        let mut producer = memory.parts().producer::<NoSignal>(&alerts, KEY, None);
        let mut consumer = other.parts().consumer(&alerts, KEY, false);
        for number in 0..20 {
            let _ = producer.push_batch(&[send(number), send(number)]);
            let _ = consumer.poll(&mut [Wc::default(); 3]);
        }
    }
}

#[test]
fn impossible_storage_is_refused() {
    let memory = Memory::new(4);
    let refused = |tags: usize, promised| {
        Parts::new(&memory.gate, &memory.slots, &memory.tags[..tags], promised).unwrap_err()
    };
    assert_eq!(refused(4, 0), CapacityError::Zero);
    assert_eq!(refused(4, 5), CapacityError::MoreThanStorage { promised: 5, storage: 4 });
    assert_eq!(refused(3, 4), CapacityError::TagsDiffer { tags: 3, slots: 4 });
}

#[test]
fn debug_output_does_not_grow_with_the_queue() {
    let mut storage = SoftCq::<1024>::new();
    let sides = storage.split_shared();
    assert!(format!("{sides:?}").len() < 2000);
}

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

const PRODUCERS: u64 = 3;

/// Checks that each producer's completions come in order, `wr_id` being the producer's number and the
/// number of the completion.
#[derive(Default)]
struct Order([u64; PRODUCERS as usize]);

impl Order {
    fn check(&mut self, wcs: &[Wc]) {
        for wc in wcs {
            let last = &mut self.0[(wc.wr_id() >> 32) as usize];
            *last += 1;
            assert_eq!(wc.wr_id() & u64::from(u32::MAX), *last, "lost, doubled or out of order");
        }
    }

    fn count(&self) -> u64 {
        self.0.iter().sum()
    }
}

fn of(producer: u64, nth: u64) -> Wc {
    recv(producer << 32 | nth)
}

/// Pushes as long as no more than a share of the queue is unpolled, alone and in batches.
fn push_in_turn<S: Signal>(
    which: u64,
    producer: &mut Producer<'_, S>,
    polled: &AtomicUsize,
    share: u64,
    pushes: u64,
) {
    let (start, mut nth) = (Instant::now(), 0);
    while nth < pushes {
        let batch = (1 + nth % 5).min(share).min(pushes - nth);
        while nth + batch > polled.load(SeqCst) as u64 + share {
            assert!(start.elapsed() < DEADLINE, "jammed");
            thread::yield_now();
        }
        let wcs: Vec<_> = (1..=batch).map(|more| of(which, nth + more)).collect();
        match &wcs[..] {
            [wc] => producer.push_with(wc, 0, true).unwrap(),
            wcs => producer.push_batch(wcs).unwrap(),
        }
        nth += batch;
    }
}

#[test]
fn c10_p02_many_threads_lose_nothing_across_every_wrap() {
    const PUSHES: u64 = 1000;
    for storage in [4, 64] {
        for wrap in wraps(storage) {
            let (memory, alerts) = (Memory::at(wrap - 100, storage), Alerts::new());
            let mut consumer = memory.parts().consumer(&alerts, KEY, false);
            let producer = memory.parts().producer::<NoSignal>(&alerts, KEY, None);
            let polled = [(); PRODUCERS as usize].map(|()| AtomicUsize::new(0));
            let (start, mut order) = (Instant::now(), Order::default());
            thread::scope(|threads| {
                for (which, polled) in polled.iter().enumerate() {
                    let (mut producer, share) = (producer.clone(), storage as u64 / PRODUCERS);
                    threads.spawn(move || {
                        push_in_turn(which as u64, &mut producer, polled, share, PUSHES);
                    });
                }
                let mut out = [Wc::default(); 7];
                while order.count() < PRODUCERS * PUSHES {
                    let count = consumer.poll(&mut out).unwrap();
                    order.check(&out[..count]);
                    if count == 0 {
                        thread::yield_now();
                    }
                    for (polled, count) in polled.iter().zip(order.0) {
                        polled.store(count as usize, SeqCst);
                    }
                    assert!(start.elapsed() < DEADLINE, "jammed");
                }
            });
            assert_eq!(consumer.poll(&mut [Wc::default()]), Ok(0));
        }
    }
}

#[test]
fn o03_many_threads_overrun_and_everything_stored_comes() {
    for round in 0..200 {
        let mut storage = SoftCq::<8>::new();
        let (producer, mut consumer) = storage.split_shared();
        let (start, mut order) = (Instant::now(), Order::default());
        let mut out = [Wc::default(); 3];
        let stored: u64 = thread::scope(|threads| {
            let threads: Vec<_> = (0..PRODUCERS)
                .map(|which| {
                    let mut producer = producer.clone();
                    threads.spawn(move || {
                        (1..).take_while(|&nth| producer.push(&of(which, nth)).is_ok()).count()
                            as u64
                    })
                })
                .collect();
            loop {
                match consumer.poll(&mut out) {
                    Ok(count) => order.check(&out[..count]),
                    Err(PollError::Overrun { dropped: Some(dropped) }) => {
                        assert!((1..=PRODUCERS as u32).contains(&dropped), "a lower bound");
                        break;
                    }
                    Err(other) => panic!("{other}"),
                }
                // A consumer that always keeps up would never see the overrun.
                thread::yield_now();
                assert!(start.elapsed() < DEADLINE, "jammed");
            }
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(order.count(), stored, "round {round}");
        let all = PollError::Overrun { dropped: Some(PRODUCERS as u32) };
        assert_eq!(consumer.poll(&mut out), Err(all));
    }
}

#[test]
fn n06_a_sleeper_among_many_threads_gets_everything() {
    const PUSHES: u64 = 2000;
    let (mut storage, bell) = (SoftCq::<32>::new(), Bell::default());
    let (producer, consumer) = storage.split_shared_with(KEY, &bell);
    let polled = [(); PRODUCERS as usize].map(|()| AtomicUsize::new(0));
    let (mut cq, mut order) = (CompletionQueue::new(consumer), Order::default());
    thread::scope(|threads| {
        for (which, polled) in polled.iter().enumerate() {
            let mut producer = producer.clone();
            threads.spawn(move || push_in_turn(which as u64, &mut producer, polled, 8, PUSHES));
        }
        let (mut room, mut channel) = ([Wc::default(); 16], &bell);
        while order.count() < PRODUCERS * PUSHES {
            order.check(cq.wait(&mut room, &mut channel, None).unwrap());
            for (polled, count) in polled.iter().zip(order.0) {
                polled.store(count as usize, SeqCst);
            }
        }
    });
}

#[test]
fn q12_many_threads_follow_every_resize() {
    const PUSHES: u64 = 2000;
    let rings: Vec<_> = (0..40).map(|nth| Memory::new(64 << (nth % 3))).collect();
    let (alerts, current) = (Alerts::new(), &Mutex::new(0));
    let mut consumer = rings[0].parts().consumer(&alerts, KEY, false);
    let producer = rings[0].parts().producer::<NoSignal>(&alerts, KEY, None);
    let polled = &AtomicUsize::new(0);
    let (start, mut order) = (Instant::now(), Order::default());
    thread::scope(|threads| {
        for which in 0..PRODUCERS {
            let (mut producer, rings) = (producer.clone(), &rings);
            threads.spawn(move || {
                for nth in 1..=PUSHES {
                    while nth > polled.load(SeqCst) as u64 + 20 {
                        assert!(start.elapsed() < DEADLINE, "jammed");
                        thread::yield_now();
                    }
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
            polled.store(*order.0.iter().min().unwrap() as usize, SeqCst);
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
