//! The operations of a [budget](crate::budget), on targets with compare-and-swap.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::AtomicU32;
use super::site::{Site, at};

/// Takes `count` of what is free. What those who gave it did before is then visible.
///
/// # Errors
/// Fewer are free. Returns how many.
pub(crate) fn take(free: &AtomicU32, count: u32) -> Result<(), u32> {
    let take = |free: u32| free.checked_sub(count);
    free.fetch_update(at(Site::Take, Acquire), Relaxed, take).map(|_| ())
}

/// Gives `count` to what is free. A read-modify-write continues the release sequence of those who gave before.
pub(crate) fn give(free: &AtomicU32, count: u32) {
    free.fetch_add(count, at(Site::Give, Release));
}

/// Adds to a count that the poller sees: what was done before is visible to it. Returns the new count.
pub(crate) fn ask(count: &AtomicU32, more: u32) -> u32 {
    count.fetch_add(more, at(Site::Ask, Release)).wrapping_add(more)
}

/// Loads such a count.
#[inline(always)]
pub(crate) fn see_asked(count: &AtomicU32) -> u32 {
    count.load(at(Site::SeeAsked, Acquire))
}

/// Answers what was asked, after the poll that found the queue empty.
pub(crate) fn answer(word: &AtomicU32, asked: u32) {
    word.store(asked, at(Site::Answer, Release));
}

/// Loads the last answer.
pub(crate) fn see_answer(word: &AtomicU32) -> u32 {
    word.load(at(Site::SeeAnswer, Acquire))
}

/// A number that no other call in this process returns, until there were 2³² calls; 1 is the first. Relaxed: it orders nothing. The
/// counter is not loom's, since which number is returned decides nothing.
pub(crate) fn unique_number() -> u32 {
    static NEXT: core::sync::atomic::AtomicU32 = core::sync::atomic::AtomicU32::new(1);
    NEXT.fetch_add(1, Relaxed)
}
