//! The read-modify-write operations that several producers need, on targets that have them.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::{AtomicU32, AtomicWord, Site, Word, at, intact};

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
    if intact(Site::ReserveSeen) {
        tail.compare_exchange_weak(seen, next, success, failure)
    } else {
        // The wrong one does to any tail of an open ring what it wanted to do to the one that it saw.
        let change =
            |now: Word| (now >> 62 == 0).then(|| now.wrapping_add(next.wrapping_sub(seen)));
        tail.fetch_update(success, failure, change)
    }
}

/// Puts `next` in the place of `seen`, which is final then. It hands over nothing.
///
/// # Errors
/// A producer was quicker: what stands there now.
pub fn end(tail: &AtomicWord, seen: Word, next: Word) -> Result<Word, Word> {
    if intact(Site::ResizeSeen) {
        tail.compare_exchange(seen, next, Relaxed, Relaxed)
    } else {
        tail.store(next, Relaxed);
        Ok(seen)
    }
}

/// Adds dropped completions to those before, after the reservation word was seen closed, and says how
/// many that makes.
pub fn latch_more(cell: &AtomicU32, dropped: u32) -> u32 {
    let release = at(Site::Latch, Release);
    if intact(Site::CountEach) {
        let add = |before: u32| Some(before.saturating_add(dropped));
        let before = cell.fetch_update(release, Relaxed, add).unwrap_or_else(|before| before);
        before.saturating_add(dropped)
    } else {
        let sum = cell.load(Relaxed).saturating_add(dropped);
        cell.store(sum, release);
        sum
    }
}

/// Takes back what is armed, if it is still `seen`.
///
/// # Errors
/// What is armed instead.
#[inline(always)]
pub fn disarm(arm: &AtomicU32, seen: u32, idle: u32) -> Result<(), u32> {
    if intact(Site::DisarmSeen) {
        arm.compare_exchange(seen, idle, Relaxed, Relaxed).map(|_| ())
    } else {
        // The wrong one looks at what it has erased: an arm for something else is lost.
        match arm.swap(idle, Relaxed) {
            erased if erased == seen => Ok(()),
            _ => Err(idle),
        }
    }
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
