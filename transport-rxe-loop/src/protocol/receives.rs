//! The receive queue's positions: its owner posts, the peer that is connected to it takes, without a lock.
//!
//! | word | written by | says |
//! |---|---|---|
//! | `posted` | the owner | where the next receive will be put |
//! | `starved` | the peer that finds none; the owner, who takes it back | that the peer is to be kicked |
//! | `completed` | who pushes a receive's completion, under its queue's lock | which receive is the next |
//!
//! That a receive was taken is written nowhere: the one at `completed` is in flight if the [window] of the
//! peer is open. A peer that dies takes none along.
//!
//! The mark and the position are stored and looked at crosswise, with a full fence in between on each side:
//! the peer sees the receive, or the owner sees the mark.
//!
//! ```
//! use transport_rxe_loop::protocol::receives::{Ahead, Receives};
//! use transport_rxe_loop::protocol::tag;
//!
//! const CAPACITY: u32 = 4;
//! let (receives, mut ahead) = (Receives::default(), Ahead::default());
//! let next = receives.completed();
//! assert!(!receives.has_or_starve(next, &mut ahead, 17, CAPACITY));
//! assert!(receives.has_room(receives.posted(), CAPACITY));
//! assert!(receives.post(receives.posted() + 1)); // the peer is to be kicked
//!
//! assert!(receives.has_or_starve(next, &mut ahead, 17, CAPACITY));
//! receives.settle(tag::of_recv(next + 1), CAPACITY); // once its completion is published
//! assert_eq!(receives.completed(), next + 1);
//! ```
//!
//! [window]: super::window

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

/// How far a peer's receives reach, as far as their taker knows. Private to the taker, and under its turn.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ahead {
    peer: u32,
    posted: u64,
}

impl Ahead {
    /// To be kept in two words.
    #[must_use]
    pub const fn to_words(self) -> [u64; 2] {
        [self.peer as u64, self.posted]
    }

    /// What was kept. Any numbers are harmless.
    #[must_use]
    pub const fn from_words([peer, posted]: [u64; 2]) -> Self {
        Self { peer: peer as u32, posted }
    }
}

/// What owners do.
impl Receives {
    /// Where the next receive will be put. Only the owner writes it.
    #[inline(always)]
    pub fn posted(&self) -> u64 {
        sync::load(&self.posted.position)
    }

    /// Whether a receive can be put at `next`. If so, whatever was there was read. A queue that seems full
    /// may not be: who publishes a completion settles it a moment later, under the completion queue's lock.
    #[inline]
    pub fn has_room(&self, next: u64, capacity: u32) -> bool {
        next.wrapping_sub(self.seen_completed()) < u64::from(capacity)
    }

    /// Which receives have completed: what they said was read. It may be more by now.
    #[inline]
    #[must_use]
    pub fn seen_completed(&self) -> u64 {
        sync::acquire_at(&self.completed.0, Site::SeeCompleted)
    }

    /// Makes the receives up to `end` takeable; true if the peer is to be kicked. The owner is to look at its
    /// own state after this: in ERR, it flushes.
    #[inline]
    #[must_use]
    pub fn post(&self, end: u64) -> bool {
        sync::store_fenced(&self.posted.position, end, Site::PostFence);
        let starved = sync::load(&self.posted.starved) != 0;
        if starved {
            // Before the kick, after which the peer may set it again.
            sync::store(&self.posted.starved, 0);
        }
        starved
    }

    /// The receives that are left, for who holds the turn of a queue pair in ERR and found the peer's window
    /// [closed](super::window::Shut::is_open). If the peer's process is dead, after taking the lock of the
    /// completion queue once, which repairs what that process left.
    pub fn left(&self, capacity: u32) -> impl Iterator<Item = u64> + use<> {
        let first = self.completed();
        let end = sync::acquire_at(&self.posted.position, Site::SeePosted);
        let count = if is_before(first, end, capacity) { end.wrapping_sub(first) } else { 0 };
        (0..count).map(move |nth| first.wrapping_add(nth))
    }

    /// The positions, for a test to write to.
    #[cfg(all(test, not(loom)))]
    pub(crate) const fn positions(&self) -> [&AtomicU64; 2] {
        [&self.posted.position, &self.completed.0]
    }

    /// Forgets what is left: for the owner, once the state shuts the peer out and its window was closed;
    /// under the lock of the completion queue. Positions go on, so that old ones mean nothing.
    pub fn empty(&self) {
        // It is the owner who looks at this next.
        sync::store(&self.completed.0, self.posted());
        sync::store(&self.posted.starved, 0);
    }
}

/// What the peer that is connected does, in its window, once it has seen that the owner listens.
impl Receives {
    /// The next receive, if there is one; the positions after it are taken in their order.
    #[inline(always)]
    pub fn completed(&self) -> u64 {
        sync::load(&self.completed.0)
    }

    /// Whether a receive is posted at this position of `peer`, which is the owner's number. If so, it can be
    /// read.
    #[inline(always)]
    pub fn has(&self, position: u64, ahead: &mut Ahead, peer: u32, capacity: u32) -> bool {
        let known = ahead.peer == peer && is_before(position, ahead.posted, capacity);
        known || self.look(position, ahead, peer, capacity)
    }

    /// The same; and if there is none, whoever posts one will kick.
    #[inline]
    pub fn has_or_starve(
        &self,
        position: u64,
        ahead: &mut Ahead,
        peer: u32,
        capacity: u32,
    ) -> bool {
        if self.has(position, ahead, peer, capacity) {
            return true;
        }
        sync::store_fenced(&self.posted.starved, 1, Site::StarveFence);
        if !sync::intact(Site::LookAgain) || !self.look(position, ahead, peer, capacity) {
            return false;
        }
        sync::store(&self.posted.starved, 0);
        true
    }

    fn look(&self, position: u64, ahead: &mut Ahead, peer: u32, capacity: u32) -> bool {
        let posted = sync::acquire_at(&self.posted.position, Site::SeePosted);
        *ahead = Ahead { peer, posted };
        is_before(position, posted, capacity)
    }
}

/// What a receive's completion says.
impl Receives {
    /// The completion with this tag is published: all up to its receive have completed. Under the lock of the
    /// completion queue; says nothing new the second time. A tag that can't be is ignored.
    #[inline]
    pub fn settle(&self, tag: u32, capacity: u32) {
        if let Some(next) = tag::past(sync::load(&self.completed.0), tag, capacity) {
            sync::release_at(&self.completed.0, next, Site::Settle);
        }
    }
}

/// Whether a position is taken before `end`. More than there is room for can't be: where a stranger wrote
/// the positions, and where `end` is old, it is not.
#[inline(always)]
const fn is_before(position: u64, end: u64, capacity: u32) -> bool {
    position != end && end.wrapping_sub(position) <= capacity as u64
}

const _: () = assert!(align_of::<Receives>() == 128 && size_of::<Receives>() == 256);

#[cfg(test)]
mod tests;
