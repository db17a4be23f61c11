//! The read-modify-write operations for several producers, on targets that have them.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::site::at;
use super::{AtomicU32, AtomicWord, Site, Word};

/// Loads the reservation word. A head loaded afterwards is no older than any that a producer could see when it made a
/// reservation.
#[inline(always)]
pub fn acquire_tail(tail: &AtomicWord) -> Word {
    tail.load(at(Site::AcquireTail, Acquire))
}

/// Replaces `seen` by `next`, and returns `seen`. May fail spuriously.
///
/// # Errors
/// Another producer or the consumer changed the word first. Returns its present value.
#[inline(always)]
pub fn reserve(tail: &AtomicWord, seen: Word, next: Word) -> Result<Word, Word> {
    let (success, failure) = (at(Site::Reserve, Release), at(Site::AcquireTail, Acquire));
    tail.compare_exchange_weak(seen, next, success, failure)
}

/// Replaces `seen` by `next`, which makes the position final. Relaxed: orders nothing else.
///
/// # Errors
/// A producer changed the word first. Returns its present value.
pub fn end(tail: &AtomicWord, seen: Word, next: Word) -> Result<Word, Word> {
    tail.compare_exchange(seen, next, Relaxed, Relaxed)
}

/// Counts dropped completions, after the reservation word was seen closed or the consumer's word set. Returns the new
/// count.
pub fn latch_more(cell: &AtomicU32, mut add: impl FnMut(u32) -> u32) -> u32 {
    let (release, mut count) = (at(Site::Latch, Release), 0);
    let count_each = |before| {
        count = add(before);
        Some(count)
    };
    let _ = cell.fetch_update(release, Relaxed, count_each);
    count
}

/// Disarms, if the arm word is still `seen`.
///
/// # Errors
/// The word has changed. Returns its present value.
#[inline(always)]
pub fn disarm(arm: &AtomicU32, seen: u32, idle: u32) -> Result<(), u32> {
    arm.compare_exchange(seen, idle, Relaxed, Relaxed).map(|_| ())
}

/// Exponential backoff between attempts at one word, up to a bound. The producer that succeeded keeps the word's cache
/// line for a few more operations.
#[derive(Debug)]
pub struct Backoff {
    turns: u32,
}

impl Backoff {
    /// The longest wait, in turns of the spin loop.
    const LONGEST: u32 = 16;

    /// The first wait takes so many turns of the spin loop.
    #[inline(always)]
    pub const fn from(turns: u32) -> Self {
        Self { turns }
    }

    /// Waits. Does not wait under loom, which has no time.
    #[inline]
    pub fn pause(&mut self) {
        let turns = if cfg!(loom) { 0 } else { self.turns };
        (0..turns).for_each(|_| core::hint::spin_loop());
        self.turns = Self::LONGEST.min(2 * turns.max(1));
    }
}
