//! The read-modify-write operations that several producers need, on targets that have them.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use super::site::at;
use super::{AtomicU32, AtomicWord, Site, Word};

/// Looks at the reservation word; the head that is looked at afterwards is no older than any that a producer
/// could have seen when it reserved.
#[inline(always)]
pub fn acquire_tail(tail: &AtomicWord) -> Word {
    tail.load(at(Site::AcquireTail, Acquire))
}

/// Puts `next` in the place of `seen` and says what stood there; no older reservation than `seen` counts
/// after that.
///
/// # Errors
/// Another producer, or the consumer's owner, was quicker: what stands there now.
#[inline(always)]
pub fn reserve(tail: &AtomicWord, seen: Word, next: Word) -> Result<Word, Word> {
    let (success, failure) = (at(Site::Reserve, Release), at(Site::AcquireTail, Acquire));
    tail.compare_exchange_weak(seen, next, success, failure)
}

/// Puts `next` in the place of `seen`, which is final then. It hands over nothing.
///
/// # Errors
/// A producer was quicker: what stands there now.
pub fn end(tail: &AtomicWord, seen: Word, next: Word) -> Result<Word, Word> {
    tail.compare_exchange(seen, next, Relaxed, Relaxed)
}

/// Counts dropped completions, after the reservation word was seen closed, and says what the count is then.
pub fn latch_more(cell: &AtomicU32, mut add: impl FnMut(u32) -> u32) -> u32 {
    let (release, mut count) = (at(Site::Latch, Release), 0);
    let count_each = |before| {
        count = add(before);
        Some(count)
    };
    let _ = cell.fetch_update(release, Relaxed, count_each);
    count
}

/// One more who shares something.
pub fn join(count: &AtomicU32) {
    count.fetch_add(1, Relaxed);
}

/// One less; says whether it was the last one, who then sees what all others did.
pub fn leave(count: &AtomicU32) -> bool {
    count.fetch_sub(1, at(Site::Leave, AcqRel)) == 1
}

/// Takes back what is armed, if it is still `seen`.
///
/// # Errors
/// What is armed instead.
#[inline(always)]
pub fn disarm(arm: &AtomicU32, seen: u32, idle: u32) -> Result<(), u32> {
    arm.compare_exchange(seen, idle, Relaxed, Relaxed).map(|_| ())
}

/// Waits between two attempts at one word, twice as long each time, up to a bound: whoever was quicker
/// keeps the word's cache line for a few more operations.
#[derive(Debug, Default)]
pub struct Backoff(u32);

impl Backoff {
    /// The most turns of a wait, as a power of two.
    const MOST: u32 = 6;

    /// Waits. Not at all under loom, where time is nothing.
    #[inline]
    pub fn pause(&mut self) {
        let turns = if cfg!(loom) { 0 } else { 1 << self.0 };
        (0..turns).for_each(|_| core::hint::spin_loop());
        self.0 = Self::MOST.min(self.0 + 1);
    }
}
