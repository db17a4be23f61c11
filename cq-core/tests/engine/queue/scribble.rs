//! A peer that writes anything anywhere into the shared memory, at any time: both sides go on, say nothing
//! impossible, and never panic, be it by an overflow (C3, P4, O3, X4).

use std::array;
use std::ops::Range;
use std::ptr::NonNull;
#[cfg(any(not(target_has_atomic = "64"), cq_core_word32))]
use std::sync::atomic::AtomicU32 as AtomicWord;
#[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
use std::sync::atomic::AtomicU64 as AtomicWord;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread::ScopedJoinHandle;

use cq_core::queue::raw::{Layout, RawConsumer, RawProducer, RawQueue};
use cq_testing::fault::Dice;

use super::*;

const MOST_SLOTS: usize = 8;
const WORDS: usize = 256;
/// Where the arm and the health of a queue are in what its sides share.
const ALERTS: Range<usize> = size_of::<Control>() / 8..size_of::<Control>() / 4;

struct Mute;

impl Signal for Mute {
    fn key(&self) -> CqKey {
        KEY
    }

    fn raise(&self) {}
}

/// Random numbers, the same in every run.
struct Random(Dice);

impl Random {
    fn new(seed: u64) -> Self {
        Self(Dice::new(seed))
    }

    fn next(&mut self) -> u64 {
        self.0.below(1 << 32) << 32 | self.0.below(1 << 32)
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0.below(bound as u64) as usize
    }

    /// Half of it near where something wraps or changes its meaning.
    fn word(&mut self) -> u32 {
        let edges = [0, 1 << 15, 1 << 16, 1 << 30, 1 << 31, 3 << 30];
        match self.below(2) {
            0 => self.next() as u32,
            _ => (edges[self.below(edges.len())] + self.below(4) as u32).wrapping_sub(2),
        }
    }
}

/// Memory that a queue lies in, zeroed.
#[repr(C, align(128))]
struct Memory {
    words: [AtomicU32; WORDS],
    layout: Layout,
}

impl Memory {
    fn new(random: &mut Random) -> Self {
        let slots = 1 << random.below(4);
        assert!(slots <= MOST_SLOTS);
        let (tags, promised) = (random.below(2) == 0, 1 + random.below(slots) as u32);
        let layout = Layout { slots, tags, promised };
        assert!(layout.bytes().unwrap() <= 4 * WORDS);
        Self { words: array::from_fn(|_| AtomicU32::new(0)), layout }
    }

    fn queue(&self) -> RawQueue<'_> {
        // SAFETY: the memory is borrowed as long as the queue, and stored to by atomics alone, whole words each (`scribble`).
        // More than one side of a kind harm no memory here: its words are atomic.
        unsafe { RawQueue::new(NonNull::from(&self.words).cast(), 4 * WORDS, self.layout) }.unwrap()
    }

    fn producer(&self, tail: Tail) -> RawProducer<'_, Mute> {
        self.queue().into_producer(tail, Mute)
    }

    fn consumer(&self, position: Position) -> RawConsumer<'_, OnChannel> {
        self.queue().into_consumer(position, OnChannel::named(KEY))
    }

    /// Which of the words are not halves of larger ones, to those whose memory it is.
    fn is_narrow(&self, index: usize) -> bool {
        let tags = Layout { tags: false, ..self.layout }.bytes().unwrap() / 4;
        size_of::<AtomicWord>() == 4 || ALERTS.contains(&index) || index >= tags
    }

    /// Writes where it hurts: the few words that are used before the slots, or any.
    fn scribble(&self, random: &mut Random) {
        let used = self.layout.bytes().unwrap() / 4;
        let index = match random.below(4) {
            0 => random.below(used),
            1 => Layout::SLOTS_AT / 4 + random.below(used - Layout::SLOTS_AT / 4),
            2 => random.below(2),
            _ => ALERTS.start + random.below(3),
        };
        let word = random.word();
        // Memory is accessed at one width.
        if self.is_narrow(index) {
            self.words[index].store(word, Relaxed);
        } else {
            let (whole, shift) = (self.whole(index / 2), index % 2 * 32);
            let others = whole.load(Relaxed) & !((0xffff_ffff as Position) << shift);
            whole.store(others | Position::from(word) << shift, Relaxed);
        }
    }

    /// Two words that are one to those whose memory it is.
    fn whole(&self, nth: usize) -> &AtomicWord {
        let pair: &[AtomicU32] = &self.words[2 * nth..2 * nth + 2];
        // SAFETY: as many bytes, aligned as `Memory` is, and accessed at this width alone.
        unsafe { &*pair.as_ptr().cast() }
    }
}

/// One step of a consumer. What it says must be possible.
fn consume(consumer: &mut RawConsumer<'_, OnChannel>, random: &mut Random) {
    let untouched = Wc::new(u64::MAX, WcStatus::SUCCESS, 77);
    let (mut out, asked) = ([untouched; 12], random.below(12));
    let polled = match random.below(10) {
        nth @ 0..4 => {
            let on = if nth < 2 { Notify::Solicited } else { Notify::Next };
            return assert!(consumer.arm(on).is_ok());
        }
        4 if random.below(4) == 0 => return consumer.fail(),
        4..7 => {
            let mut handed_out = 0;
            let polled = consumer.poll_with(&mut out[..asked], |_, _| handed_out += 1);
            assert_eq!(polled.unwrap_or(0), handed_out);
            polled
        }
        _ => consumer.poll_into(&mut out[..asked]),
    };
    match polled {
        Ok(count) => {
            assert!(count <= asked);
            assert!(out[count..].iter().all(|wc| *wc == untouched), "P4");
        }
        Err(PollError::Overrun { dropped }) => assert_ne!(dropped, Some(0)),
        Err(PollError::Failed | PollError::Closed) => {}
        Err(other) => panic!("{other}"),
    }
}

fn possible(pushed: Result<(), DroppedError>, of: u32) {
    if let Err(DroppedError { lost, end }) = pushed {
        assert!(lost > 0 && lost <= of);
        assert!(!matches!(end, End::Overrun { dropped } if dropped < lost));
    }
}

/// One step of a producer.
fn produce(producer: &mut RawProducer<'_, Mute>, random: &mut Random) {
    let entries: [Tagged; 10] = array::from_fn(|nth| Tagged {
        wc: Wc::new(nth as u64, WcStatus(nth as u32 % 2), 1),
        tag: nth as u32,
        solicited: random.below(2) == 0,
    });
    let wanted = random.below(entries.len());
    match random.below(5) {
        0 | 1 => possible(producer.push_or_overrun(&entries[wanted]), 1),
        2 => possible(producer.push_batch_or_overrun(&entries[..wanted]), wanted as u32),
        3 => drop(producer.push(&entries[wanted])),
        _ => {
            let pushed = producer.push_batch(&entries[..wanted]);
            assert!(pushed.map_or_else(|error| error.stored, |()| wanted) <= wanted);
        }
    }
    for count in [producer.len(), producer.available(), producer.measure_high_water()] {
        assert!(count <= producer.storage());
    }
}

/// As of a stranger.
fn tail(random: &mut Random) -> Tail {
    let position = random.next() as Position;
    match random.below(2) {
        0 => Tail::from_words([position, random.next() as Position]),
        // As much room as can be claimed, or a little less or more.
        _ => Tail::from_words([position, position.wrapping_add(random.below(10) as Position)]),
    }
}

#[test]
fn x04_a_queue_stands_any_words_at_any_time() {
    let mut random = Random::new(1);
    for _ in 0..many(2000) {
        let memory = Memory::new(&mut random);
        let position = random.next() as Position;
        let mut consumer = memory.consumer(position);
        let mut producer = memory.producer(Tail::at(position));
        for _ in 0..100 {
            match random.below(10) {
                0 => memory.scribble(&mut random),
                1 => producer = memory.producer(tail(&mut random)),
                2 if random.below(4) == 0 => consumer = memory.consumer(random.next() as Position),
                3 => {
                    let mut found = 0;
                    let _ = memory.queue().recover(tail(&mut random), |_, _| found += 1);
                    assert!(found <= memory.layout.slots);
                }
                4..7 => produce(&mut producer, &mut random),
                _ => consume(&mut consumer, &mut random),
            }
        }
        assert_ne!(memory.queue().control().end(), Some(End::Overrun { dropped: 0 }));
    }
}

#[test]
fn x04_threads_come_to_an_end_whatever_a_peer_writes_meanwhile() {
    const STEPS: u64 = many(20_000);
    for seed in 0..if cfg!(miri) { 2 } else { 4 } {
        let memory = Memory::new(&mut Random::new(seed));
        thread::scope(|threads| {
            let device = threads.spawn(|| {
                let (mut producer, mut random) =
                    (memory.producer(Tail::at(0)), Random::new(10 + seed));
                (0..STEPS).for_each(|_| produce(&mut producer, &mut random));
            });
            let app = threads.spawn(|| {
                let (mut consumer, mut random) = (memory.consumer(0), Random::new(20 + seed));
                (0..STEPS).for_each(|_| consume(&mut consumer, &mut random));
            });
            let (workers, mut random) = ([device, app], Random::new(30 + seed));
            while !workers.iter().all(ScopedJoinHandle::is_finished) {
                memory.scribble(&mut random);
            }
        });
    }
}
