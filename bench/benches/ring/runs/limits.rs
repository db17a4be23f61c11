//! What the machine allows: the least that a queue could do.

use std::hint::black_box;
use std::iter;
use std::sync::atomic::{AtomicU64, Ordering};

use bench::placement::Line;
use bench::turns::Sample;
use cq_core::wc::Wc;

use super::Setting;
use crate::entries::Source;

/// One thread looks whether a word has changed: an empty poll that is a load and a comparison.
pub fn one_load(_: Setting, count: u64) -> Sample {
    let (word, empty) = black_box((AtomicU64::new(0), 0));
    Sample::alone(count, || {
        for _ in 0..count {
            assert_eq!(black_box(&word).load(Ordering::Acquire), empty);
        }
    })
}

/// One thread copies `N` entries to memory and reads them there; if `MARKED`, with a generation in each, which it checks.
pub fn bare_copies<const N: usize, const MARKED: bool>(setting: Setting, count: u64) -> Sample {
    /// The bits of the last word that hold it.
    const FIELD: u64 = 0xffff << 48;
    let rounds = count.div_ceil(N as u64);
    let mut memory = vec![[0_u64; size_of::<Wc>() / 8]; setting.capacity];
    let mut source = Source::<N>::new();
    let (mut sum, mut read) = (0_u64, 0);
    let sample = Sample::alone(rounds * N as u64, || {
        for round in 0..rounds {
            let generation = (round << 48) | 1 << 63;
            let first = (round as usize * N) % setting.capacity;
            let batch: &[[u64; 6]] = bytemuck::must_cast_slice(source.batch());
            let place = &mut memory[first..first + N];
            match MARKED {
                true => place.iter_mut().zip(batch).for_each(|(to, from)| {
                    let [words @ .., last] = *from;
                    to[..5].copy_from_slice(&words);
                    to[5] = last & !FIELD | generation;
                }),
                false => place.copy_from_slice(batch),
            }
            let place = &black_box(&memory)[first..first + N];
            let differs = place.iter().fold(0, |all, entry| all | entry[5] ^ generation);
            if !MARKED || differs & FIELD == 0 {
                sum = place.iter().fold(sum, |sum, entry| sum.wrapping_add(entry[0]));
                read += 1;
            }
        }
    });
    black_box(sum);
    assert_eq!(read, rounds, "each has the generation that was written");
    sample
}

/// One thread writes to a cache line, another answers in a second one: a round trip that moves nothing else.
pub fn two_lines(setting: Setting, count: u64) -> Sample {
    let (there, back) = (Line::default(), Line::default());
    let ping = || {
        for trip in 1..=count {
            there.0.store(trip, Ordering::Release);
            while back.0.load(Ordering::Acquire) != trip {}
        }
    };
    let pong = || {
        for trip in 1..=count {
            while there.0.load(Ordering::Acquire) != trip {}
            back.0.store(trip, Ordering::Release);
        }
    };
    Sample::both(setting.cores, count, ping, pong)
}

/// One thread writes the cache lines of `N` entries, the first one last; another waits for that one, reads all of them, and gives
/// them back: a batch that moves nothing but its lines.
pub fn bare_lines<const N: usize>(setting: Setting, count: u64) -> Sample {
    let lines = N * size_of::<Wc>() / size_of::<CacheLine>();
    let memory = setting.capacity * size_of::<Wc>() / size_of::<CacheLine>();
    let ring: Vec<_> = iter::repeat_with(CacheLine::default).take(memory).collect();
    let (released, rounds, batches) =
        (Line::default(), count.div_ceil(N as u64), (memory / lines) as u64);
    let batch = |round: u64| {
        let first = (round % batches) as usize * lines;
        ring[first..first + lines].split_first().expect("a line at least")
    };
    let write = || {
        for round in 1..=rounds {
            while round - released.0.load(Ordering::Acquire) > batches {}
            let (CacheLine([published, rest @ ..]), others) = batch(round);
            let words = others.iter().flat_map(|line| &line.0).chain(rest);
            words.for_each(|word| word.store(round, Ordering::Relaxed));
            published.store(round, Ordering::Release);
        }
    };
    let read = || {
        for round in 1..=rounds {
            let (CacheLine([published, rest @ ..]), others) = batch(round);
            while published.load(Ordering::Acquire) != round {}
            let words = others.iter().flat_map(|line| &line.0).chain(rest);
            let differs = words.fold(0, |all, word| all | word.load(Ordering::Relaxed) ^ round);
            assert_eq!(differs, 0, "what was written before the first word is visible");
            released.0.store(round, Ordering::Release);
        }
    };
    Sample::both(setting.cores, rounds * N as u64, read, write)
}

/// A cache line, beside the next one.
#[derive(Default)]
#[repr(align(64))]
struct CacheLine([AtomicU64; 8]);
