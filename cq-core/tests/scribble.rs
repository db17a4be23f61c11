//! A peer that writes anything anywhere into the shared memory, at any time: both sides go on, say nothing
//! impossible, and never panic, be it by an overflow (C3, P4, O3).
#![cfg(not(loom))]

use std::array;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use cq_core::ring::{Position, Slot, Tail};
use cq_core::soft::{self, Control};
use cq_core::sync::{AtomicWord, Word};
use cq_core::transport::{Arm, CqKey, Notify, Poll, PollError, Signal};
use cq_core::wc::{Wc, WcStatus};

const KEY: CqKey = CqKey { index: 1, generation: 2 };
const MOST_SLOTS: usize = 8;
/// Where the arm and the health of a queue are in what its sides share.
const ALERTS: Range<usize> = 32..64;

struct Mute;

impl Signal for Mute {
    fn raise(&self, cq: CqKey) {
        assert_eq!(cq, KEY);
    }
}

/// Random numbers, the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 ^ self.0 >> 29
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 16) as usize % bound
    }

    /// Half of it near where something wraps or changes its meaning.
    fn word(&mut self) -> u32 {
        let edges = [0, 1 << 15, 1 << 16, 1 << 30, 1 << 31, 3 << 30];
        match self.below(2) {
            0 => (self.next() >> 16) as u32,
            _ => (edges[self.below(edges.len())] + self.below(4) as u32).wrapping_sub(2),
        }
    }
}

/// Memory that a queue lies in, zeroed.
#[repr(C, align(128))]
struct Memory {
    words: [AtomicU32; 1024],
    /// Which of them are not halves of larger ones, to those whose memory it is.
    narrow: Range<usize>,
}

impl Memory {
    /// Where the slots begin.
    const SLOTS: usize = 1024 - MOST_SLOTS * size_of::<Slot>() / 4;

    fn new(narrow: Range<usize>) -> Self {
        Self { words: array::from_fn(|_| AtomicU32::new(0)), narrow }
    }

    /// What the two sides share, at the beginning.
    fn meeting<T: AnyBytes>(&self) -> &T {
        assert!(size_of::<T>() <= Self::SLOTS * 4 && align_of::<T>() <= 128);
        // SAFETY: it fits, and any bytes are a value that is reached by atomics alone.
        unsafe { &*self.words.as_ptr().cast() }
    }

    fn slots(&self, count: usize) -> &[Slot] {
        let base = NonNull::from(&self.words[Self::SLOTS]).cast();
        // SAFETY: the words from there on are as many slots as there can be at least, and all atomic.
        unsafe { Slot::slice_from_raw(base, count) }.unwrap()
    }

    /// Writes where it hurts: the few words that are used before the slots, or any.
    fn scribble(&self, random: &mut Random) {
        let index = match random.below(4) {
            0 => random.below(self.words.len()),
            1 => Self::SLOTS + random.below(self.words.len() - Self::SLOTS),
            // Each cache line holds a word or two of them.
            _ => 32 * random.below(4) + random.below(2),
        };
        let word = random.word();
        // Memory is accessed at one width.
        if self.narrow.contains(&index) || size_of::<AtomicWord>() == 4 {
            self.words[index].store(word, Relaxed);
        } else {
            let (whole, shift) = (self.whole(index / 2), index % 2 * 32);
            let others = whole.load(Relaxed) & !(0xffff_ffff << shift);
            whole.store(others | Word::from(word) << shift, Relaxed);
        }
    }

    /// Two words that are one to those whose memory it is.
    fn whole(&self, nth: usize) -> &AtomicWord {
        let pair: &[AtomicU32] = &self.words[2 * nth..2 * nth + 2];
        // SAFETY: as many bytes, aligned as `Memory` is, and accessed at this width alone.
        unsafe { &*pair.as_ptr().cast() }
    }
}

/// # Safety
/// Any bytes are a value, and all that is reached through a reference is atomic.
unsafe trait AnyBytes {}

// SAFETY: its documentation says so.
unsafe impl AnyBytes for Control {}

/// One step of a consumer. What it says must be possible.
fn consume<C: Poll + Arm>(consumer: &mut C, random: &mut Random) {
    let untouched = Wc::new(u64::MAX, WcStatus::SUCCESS, 77);
    let (mut out, asked) = ([untouched; 12], random.below(12));
    match random.below(4) {
        0 => drop(consumer.arm(Notify::Solicited)),
        1 => drop(consumer.arm(Notify::Next)),
        _ => match consumer.poll(&mut out[..asked]) {
            Ok(count) => {
                assert!(count <= asked);
                assert!(out[count..].iter().all(|wc| *wc == untouched), "P4");
            }
            Err(PollError::Overrun { dropped }) => assert_ne!(dropped, Some(0)),
            Err(other) => panic!("{other}"),
        },
    }
}

fn wc(number: u64) -> Wc {
    Wc::new(number, WcStatus(number as u32 % 2), 1)
}

#[test]
fn an_exclusive_queue_stands_any_words_at_any_time() {
    let mut random = Random(1);
    for round in 0..2000 {
        let (memory, storage) = (Memory::new(ALERTS), 1 << random.below(4));
        let (control, slots) = (memory.meeting::<Control>(), memory.slots(storage));
        let promised = 1 + random.below(storage) as u32;
        let parts = soft::Parts::new(control, slots, &[], promised).unwrap();
        let position = random.next() as Position;
        let mut consumer = parts.consumer(position, KEY, true);
        let mut producer = parts.producer(Tail::at(position), KEY, Some(Mute));
        for _ in 0..100 {
            match random.below(8) {
                0 => memory.scribble(&mut random),
                1 => {
                    let words = array::from_fn(|_| random.next() as Position);
                    producer = parts.producer(Tail::from_words(words), KEY, Some(Mute));
                }
                2..5 => {
                    let pushed = producer.push_with(&wc(round), 0, random.below(2) == 0);
                    assert!(pushed.is_ok() || pushed.is_err_and(|overrun| overrun.dropped > 0));
                }
                _ => consume(&mut consumer, &mut random),
            }
        }
    }
}

#[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
mod shared {
    use std::thread::{self, ScopedJoinHandle};

    use cq_core::ring::Gate;
    use cq_core::soft::Alerts;
    use cq_core::soft::shared::{Consumer, Parts, Producer, PushError};

    use super::*;

    // SAFETY: its documentation says so.
    unsafe impl AnyBytes for Gate {}
    // SAFETY: its documentation says so.
    unsafe impl AnyBytes for Alerts {}

    /// A queue with rings to move to.
    struct Queue {
        alerts: Memory,
        rings: [Memory; 3],
    }

    impl Queue {
        fn new() -> Self {
            let rings = array::from_fn(|_| Memory::new(0..0));
            Self { alerts: Memory::new(0..1024), rings }
        }

        /// Any of the rings, with any storage and promise that a ring can have.
        fn parts(&self, random: &mut Random) -> Parts<'_> {
            let (memory, storage) = (&self.rings[random.below(3)], 1 << random.below(4));
            let promised = 1 + random.below(storage) as u32;
            Parts::new(memory.meeting::<Gate>(), memory.slots(storage), &[], promised).unwrap()
        }

        fn producer(&self, random: &mut Random) -> Producer<'_, Mute> {
            self.parts(random).producer(self.alerts.meeting::<Alerts>(), KEY, Some(Mute))
        }

        fn consumer(&self, random: &mut Random) -> Consumer<'_> {
            self.parts(random).consumer(self.alerts.meeting::<Alerts>(), KEY, true)
        }

        fn scribble(&self, random: &mut Random) {
            match random.below(8) {
                0 => self.alerts.scribble(random),
                _ => self.rings[random.below(3)].scribble(random),
            }
        }

        fn produce<'q>(&'q self, producer: &mut Producer<'q, Mute>, random: &mut Random) {
            let wcs: [Wc; 10] = array::from_fn(|nth| wc(nth as u64));
            let wanted = random.below(wcs.len());
            let refused = match random.below(6) {
                0 => return producer.follow(self.parts(random)),
                1..4 => producer.push_with(&wcs[wanted], 0, random.below(2) == 0).err(),
                _ => producer.push_batch(&wcs[..wanted]).err().map(|error| {
                    assert!(error.stored < wanted);
                    error.why
                }),
            };
            if let Some(PushError::Overrun(overrun)) = refused {
                assert_ne!(overrun.dropped, 0);
            }
        }

        fn consume<'q>(&'q self, consumer: &mut Consumer<'q>, random: &mut Random) {
            match random.below(8) {
                0 => drop(consumer.resize(self.parts(random))),
                _ => consume(consumer, random),
            }
        }
    }

    #[test]
    fn a_shared_queue_stands_any_words_at_any_time() {
        let mut random = Random(2);
        for _ in 0..2000 {
            let queue = Queue::new();
            let mut producers = [(); 2].map(|()| queue.producer(&mut random));
            let mut consumer = queue.consumer(&mut random);
            for _ in 0..100 {
                match random.below(8) {
                    0 => queue.scribble(&mut random),
                    1..5 => queue.produce(&mut producers[random.below(2)], &mut random),
                    _ => queue.consume(&mut consumer, &mut random),
                }
            }
        }
    }

    #[test]
    fn threads_come_to_an_end_whatever_a_peer_writes_meanwhile() {
        const STEPS: usize = 20_000;
        let queue = Queue::new();
        let work = |seed| {
            let mut random = Random(seed);
            let mut producer = queue.producer(&mut random);
            let mut consumer = (seed == 0).then(|| queue.consumer(&mut random));
            for _ in 0..STEPS {
                match &mut consumer {
                    Some(consumer) => queue.consume(consumer, &mut random),
                    None => queue.produce(&mut producer, &mut random),
                }
            }
        };
        thread::scope(|threads| {
            let workers = [0, 1, 2].map(|seed| threads.spawn(move || work(seed)));
            let mut random = Random(3);
            while !workers.iter().all(ScopedJoinHandle::is_finished) {
                queue.scribble(&mut random);
            }
        });
    }
}
