//! Ownership of a send queue: one thread of the process at a time works on a queue pair's queues. Other
//! threads do not wait for it, except to empty the queues, and no poller takes it.
//!
//! | word | state | left by |
//! |---|---|---|
//! | 0 | Free | a thread that [enters](Ownership::enter) or [seizes](Ownership::try_seize) it, to Owned |
//! | 1 | Owned | the owner as it [leaves](Ownership::leave), to Free; another thread that enters, to Rescheduled; the owner that finds the thread that posts at work, to Left |
//! | 2, and any other | Rescheduled | the owner as it leaves, to Owned: it checks the queues again |
//! | 3 | Left | the thread that posts, to Owned, or to Rescheduled where it has yet to look again |
//!
//! Each change is a read-modify-write of the one word. So an owner that finds itself rescheduled sees what was posted
//! before, and a thread that finds the word free does the work itself: no posted request is missed.
//!
//! An owner that [abandons](Ownership::abandon) it does not check again. Either the work no longer exists, as
//! the state of the queue pair says by then; or it is handed to another thread, **after** abandoning: a
//! thread that entered earlier would find the queue owned and return.
//!
//! # The thread that posts
//! One thread at a time posts to a queue pair. It carries out what it posts without changing the word: while its
//! [in-flight marker](super::in_flight) is set, which it sets for that anyway, and the word [is free](Ownership::is_free).
//!
//! | who | does | then reads |
//! |---|---|---|
//! | the thread that posts | sets the marker, fences | the word: if it is not free, that thread clears the marker, and enters |
//! | any other | enters, fences | the marker: if it is set, the thread that posts is at work, and has to look again |
//! | the thread that posts | clears the marker, fences | the word: if it is not free, that thread enters |
//!
//! So of the two, at least one sees the other. Who sees the marker leaves the queue to the thread that posts, which finds
//! that when it clears the marker. It can also [become the owner](Ownership::try_keep) before.
//!
//! ```
//! use transport_rxe_loop::protocol::in_flight::InFlight;
//! use transport_rxe_loop::protocol::ownership::Ownership;
//!
//! let (ownership, marker) = (Ownership::default(), InFlight::default());
//! assert!(ownership.enter(&marker));
//! assert!(!ownership.enter(&marker), "its owner will look again");
//! assert!(!ownership.leave(), "there is more to do");
//! assert!(ownership.leave());
//!
//! marker.open();
//! assert!(ownership.is_free(), "the thread that posts may work");
//! assert!(!ownership.enter(&marker), "that thread will look again");
//! marker.close();
//! assert!(!ownership.is_free() && ownership.enter_to_post());
//! ```

use super::in_flight::InFlight;
use crate::sync::{self, AtomicU32, Site};

const FREE: u32 = 0;
const OWNED: u32 = 1;
const RESCHEDULED: u32 = 2;
const LEFT: u32 = 3;

/// The word. Any value is a valid state.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Ownership(AtomicU32);

impl Ownership {
    /// Becomes the owner; false if another thread is, or the one that posts is at work, as its marker says: that will then
    /// check the queues again. For all threads but the one that posts.
    #[inline]
    #[must_use]
    pub fn enter(&self, poster: &InFlight) -> bool {
        if !self.enter_from(|state| state == FREE) {
            return false;
        }
        sync::fence_after_cas(Site::EnterFence);
        while poster.is_set() {
            match sync::cas(&self.0, OWNED, LEFT) {
                Ok(()) => return false,
                // The thread that posts may have found it owned, and have cleared its marker since.
                Err(rescheduled) => self.look_again(rescheduled),
            }
        }
        true
    }

    /// The same for the thread that posts, whose marker is not set.
    #[inline]
    #[must_use]
    pub fn enter_to_post(&self) -> bool {
        self.enter_from(|state| state == FREE || state == LEFT)
    }

    /// Becomes the owner in some states; in others, the owner or the thread that posts is made to look again.
    #[inline(always)]
    fn enter_from(&self, may: impl Fn(u32) -> bool) -> bool {
        let mut seen = FREE;
        loop {
            let to = match seen {
                _ if may(seen) => OWNED,
                LEFT => LEFT,
                _ if sync::intact(Site::Reschedule) => RESCHEDULED,
                _ => seen,
            };
            match sync::cas(&self.0, seen, to) {
                Ok(()) => return may(seen),
                Err(now) => seen = now,
            }
        }
    }

    /// Whether no thread owns it, or wants to: the thread that posts may work while its marker is set, and need not look
    /// again once that is cleared.
    #[inline(always)]
    #[must_use]
    pub fn is_free(&self) -> bool {
        sync::acquire_at(&self.0, Site::SeeOwner) == FREE
    }

    /// Releases ownership; false if the owner was rescheduled: it is still the owner, and there is more to
    /// do. Only the owner may call this.
    #[inline]
    #[must_use]
    pub fn leave(&self) -> bool {
        match sync::cas(&self.0, OWNED, FREE) {
            Ok(()) => true,
            Err(rescheduled) => {
                self.look_again(rescheduled);
                false
            }
        }
    }

    /// The owner has found itself rescheduled, and looks again.
    #[inline]
    fn look_again(&self, rescheduled: u32) {
        // The owner alone changes Rescheduled to another state, so this can't fail.
        let _ = sync::cas(&self.0, rescheduled, OWNED);
    }

    /// Becomes the owner to empty the queues, not to work on them; false if another thread is. Does not
    /// reschedule, which would keep that thread busy. For the thread that posts.
    #[must_use]
    pub fn try_seize(&self) -> bool {
        sync::cas(&self.0, FREE, OWNED).is_ok()
    }

    /// Becomes the owner, for the thread that posts while its marker is set: rescheduled, if another thread has left the
    /// queue to it. False if one has entered, and is about to do that.
    #[must_use]
    pub fn try_keep(&self) -> bool {
        let left = if sync::intact(Site::Reschedule) { RESCHEDULED } else { OWNED };
        [(FREE, OWNED), (LEFT, left)]
            .into_iter()
            .any(|(from, to)| sync::cas(&self.0, from, to).is_ok())
    }

    /// Releases ownership even if rescheduled. Only the owner may call this.
    pub fn abandon(&self) {
        while !self.leave() {}
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
