//! The operations of a [budget](crate::budget), on targets with compare-and-swap.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::site::at;
use super::{AtomicU32, Site, load_u32};

/// Takes `count` of what is free. What those who gave it did before is then visible.
///
/// # Errors
/// Fewer are free. Returns how many.
pub fn take(free: &AtomicU32, count: u32) -> Result<(), u32> {
    let take = |free: u32| free.checked_sub(count);
    free.fetch_update(at(Site::Take, Acquire), Relaxed, take).map(|_| ())
}

/// Gives `count` to what is free. A read-modify-write continues the release sequence of those who gave before.
pub fn give(free: &AtomicU32, count: u32) {
    free.fetch_add(count, at(Site::Give, Release));
}

/// Adds to a count that the poller sees: what was done before is visible to it. Returns the new count.
pub fn ask(count: &AtomicU32, more: u32) -> u32 {
    count.fetch_add(more, at(Site::Ask, Release)).wrapping_add(more)
}

/// Loads such a count.
#[inline(always)]
pub fn see_asked(count: &AtomicU32) -> u32 {
    count.load(at(Site::SeeAsked, Acquire))
}

/// Answers what was asked, after the poll that found the queue empty.
pub fn answer(word: &AtomicU32, asked: u32) {
    word.store(asked, at(Site::Answer, Release));
}

/// Loads the last answer.
pub fn see_answer(word: &AtomicU32) -> u32 {
    word.load(at(Site::SeeAnswer, Acquire))
}

/// How many are free. May be stale.
pub fn free(free: &AtomicU32) -> u32 {
    load_u32(free)
}
