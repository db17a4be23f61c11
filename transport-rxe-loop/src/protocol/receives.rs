//! The positions of a receive queue: its owner posts, and the connected peer consumes, without a lock.
//!
//! | word | written by | meaning |
//! |---|---|---|
//! | `posted` | the owner | where the next receive will be put |
//! | `starved` | the peer that finds no receive; the owner, who clears it | the peer is to be run after the next post |
//! | `completed` | the process that pushes a receive's completion, under the completion queue's lock | the next receive to consume |
//!
//! Nothing records that a receive was taken: the one at `completed` is in flight if the peer's [in-flight
//! marker] is set. So a peer that dies takes no receive with it.
//!
//! `starved` and `posted` are stored and read crosswise, with a full fence between store and load on each
//! side: the peer sees the receive, or the owner sees `starved`.
//!
//! [in-flight marker]: super::in_flight

use super::number::Position;
use super::tag;
use crate::sync::{self, AtomicU32, AtomicU64, Site};

/// The positions. Zeros are an empty queue.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Receives {
    posted: Posted,
    completed: Completed,
}

#[derive(Debug, Default)]
#[repr(C, align(128))]
struct Posted {
    position: AtomicU64,
    starved: AtomicU32,
}

#[derive(Debug, Default)]
#[repr(C, align(128))]
struct Completed(AtomicU64);

/// Operations of the owner.
impl Receives {
    /// Where the next receive will be put. Only the owner writes it.
    #[inline(always)]
    pub fn posted(&self) -> Position {
        Position::new(sync::load(&self.posted.position))
    }

    /// The position up to which receives have completed and have been read: their slots are free. It may be out of date; a
    /// completion is settled a moment after it is published, under the completion queue's lock.
    #[inline]
    pub fn completed_acquire(&self) -> Position {
        Position::new(sync::acquire_at(&self.completed.0, Site::SeeCompleted))
    }

    /// Makes the receives up to `end` available; true if the peer is to be run. The owner then checks its own
    /// state: in ERR, it flushes.
    #[inline]
    #[must_use]
    pub fn post(&self, end: Position) -> bool {
        sync::store_fenced(&self.posted.position, end.get(), Site::PostFence);
        let starved = sync::load(&self.posted.starved) != 0;
        if starved {
            // Before the peer is run, which may set it again.
            sync::store(&self.posted.starved, 0);
        }
        starved
    }

    /// Whether the peer found no receive since the last one was posted.
    ///
    /// # Staleness
    /// Either side may change it at once.
    pub fn is_starved(&self) -> bool {
        sync::load(&self.posted.starved) != 0
    }

    /// The receives to flush. For the owner of the send queue of a queue pair in ERR that found the peer's
    /// [marker clear](super::in_flight::ChangeFence::is_open). If the peer's process is dead, the caller has taken the
    /// lock of the completion queue once before, which repairs what that process left.
    pub fn left(&self, capacity: u32) -> impl Iterator<Item = Position> + use<> {
        let first = self.completed();
        let end = self.posted_acquire();
        let count = if is_before(first, end, capacity) { end.since(first) } else { 0 };
        (0..count).map(move |nth| first.plus(nth))
    }

    /// The positions, for a test to write.
    #[cfg(all(test, not(loom)))]
    pub(crate) const fn positions(&self) -> [&AtomicU64; 2] {
        [&self.posted.position, &self.completed.0]
    }

    /// Drops the receives that are left. For the owner, once its state keeps the peer out and the peer's marker was
    /// clear; under the lock of the completion queue. Positions are not reset, so that old ones are invalid.
    pub fn empty(&self) {
        // Only the owner reads this next.
        sync::store(&self.completed.0, self.posted().get());
        sync::store(&self.posted.starved, 0);
    }
}

/// Operations of the connected peer, with its in-flight marker set, once it has seen that the owner receives.
impl Receives {
    /// The position of the next receive; later ones are consumed in order.
    #[inline(always)]
    pub fn completed(&self) -> Position {
        Position::new(sync::load(&self.completed.0))
    }

    /// The position after the last receive; what was written before it can be read.
    #[inline]
    fn posted_acquire(&self) -> Position {
        Position::new(sync::acquire_at(&self.posted.position, Site::SeePosted))
    }

    /// Whether a receive is posted at this position. If so, it can be read. `cached_posted` is private to the
    /// peer: the position up to which receives were found to be posted; `completed` when it begins.
    #[inline(always)]
    pub fn has(&self, position: Position, cached_posted: &mut Position, capacity: u32) -> bool {
        self.is_known(position, *cached_posted, capacity)
            || self.look(position, cached_posted, capacity)
    }

    /// Whether a receive was found to be posted at this position before.
    #[inline]
    pub const fn is_known(
        &self,
        position: Position,
        cached_posted: Position,
        capacity: u32,
    ) -> bool {
        is_before(position, cached_posted, capacity)
    }

    /// The same; if there is none, the next post has the peer run.
    #[inline]
    pub fn has_or_starve(
        &self,
        position: Position,
        cached_posted: &mut Position,
        capacity: u32,
    ) -> bool {
        if self.has(position, cached_posted, capacity) {
            return true;
        }
        sync::store_fenced(&self.posted.starved, 1, Site::StarveFence);
        if !sync::intact(Site::LookAgain) || !self.look(position, cached_posted, capacity) {
            return false;
        }
        sync::store(&self.posted.starved, 0);
        true
    }

    fn look(&self, position: Position, cached_posted: &mut Position, capacity: u32) -> bool {
        *cached_posted = self.posted_acquire();
        is_before(position, *cached_posted, capacity)
    }
}

/// Settling completions.
impl Receives {
    /// Settles the published completion with this tag: all receives up to it have completed. Under the lock
    /// of the completion queue; has no effect the second time. An invalid tag is ignored.
    #[inline]
    pub fn settle(&self, tag: u32, capacity: u32) {
        if let Some(next) = tag::past(self.completed(), tag, capacity) {
            sync::release_at(&self.completed.0, next.get(), Site::Settle);
        }
    }
}

/// Whether a position is before `end`, by at most `capacity`. False if another process corrupted the
/// positions, or if `end` is out of date.
#[inline(always)]
const fn is_before(position: Position, end: Position, capacity: u32) -> bool {
    position.get() != end.get() && end.since(position) <= capacity as u64
}

const _: () = assert!(align_of::<Receives>() == 128 && size_of::<Receives>() == 256);

#[cfg(test)]
mod tests;
