//! Ownership of a send queue, and the in-flight marker by which its process judges, in one word of private memory: one thread
//! of the process at a time works on a queue pair's queues. Other threads do not wait for it, except to empty the queues,
//! and no poller takes it.
//!
//! The low bits are a counter that is odd while the owner moves bytes: the [marker](Marker) of the queue pair. Bit 63 says that
//! it is owned, bit 62 that the owner has to look again.
//!
//! | bit 63 | bit 62 | counter | state | left by |
//! |---|---|---|---|---|
//! | 0 | 0 | even | Free | [entering](Ownership::enter) or [seizing](Ownership::try_seize) it, to Owned |
//! | | | | | entering [to copy](Ownership::try_enter_to_copy), by the thread that posts, to Copying |
//! | 1 | 0 | even | Owned | [opening](Ownership::open) the marker, to Copying |
//! | | | | | [leaving](Ownership::leave) or [abandoning](Ownership::abandon), to Free |
//! | 1 | 0 | odd | Copying | [closing](Ownership::close) the marker, to Owned |
//! | | | | | leaving, to Free |
//! | 1 | 0 | any | Owned, Copying | another thread that enters, to Rescheduled |
//! | 1 | 1 | any | Rescheduled | leaving, to Owned: the owner looks again |
//! | | | | | opening and closing the marker, which leave it rescheduled; abandoning, to Free |
//!
//! Each change is a read-modify-write of the one word. So an owner that finds itself rescheduled sees what was posted before,
//! and a thread that finds the word free does the work itself: no posted request is missed.
//!
//! An owner that [abandons](Ownership::abandon) it does not check again. Either the work no longer exists, as
//! the state of the queue pair says by then; or it is handed to another thread, **after** abandoning: a
//! thread that entered earlier would find the queue owned and return.

use super::in_flight::{Marker, Seen};
use super::steps::{self, Step};
use crate::sync::{self, AtomicU64, Site};

const OWNED: u64 = 1 << 63;
const RESCHEDULED: u64 = 1 << 62;
const COPYING: u64 = 1;

/// The word. Any value is a valid state.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Ownership(AtomicU64);

impl Ownership {
    /// Becomes the owner; false if another thread is, which will then check the queues again.
    #[inline]
    #[must_use]
    pub fn enter(&self) -> bool {
        let mut seen = sync::load(&self.0);
        loop {
            let to = match seen {
                _ if is_free(seen) => seen | OWNED,
                // Also if it is set: the exchange publishes what this thread has posted.
                _ if sync::intact(Site::Reschedule) => seen | RESCHEDULED,
                _ => seen,
            };
            match sync::cas(&self.0, seen, to) {
                Ok(()) => return is_free(seen),
                Err(now) => seen = now,
            }
        }
    }

    /// Becomes the owner and sets the marker, if no thread is the owner. Whether bytes may move is checked after this.
    #[inline(always)]
    #[must_use]
    pub fn try_enter_to_copy(&self) -> bool {
        let seen = sync::load(&self.0);
        let is_entered =
            is_free(seen) && sync::cas(&self.0, seen, (seen | OWNED) + COPYING).is_ok();
        sync::fence_after_rmw(Site::OpenFence);
        steps::done(Step::Opened);
        is_entered
    }

    /// Sets the marker. Whether bytes may move is checked after this. Only the owner may call this.
    #[inline(always)]
    pub fn open(&self) {
        sync::fetch_add(&self.0, COPYING);
        sync::fence_after_rmw(Site::OpenFence);
        steps::done(Step::Opened);
    }

    /// Clears the marker. The peer's state is read after this: in ERR, the peer has to be run. Only the owner may call this,
    /// with the marker set.
    #[inline(always)]
    pub fn close(&self) {
        sync::fetch_add(&self.0, COPYING);
        sync::fence_after_rmw(Site::CloseFence);
        steps::done(Step::Closed);
    }

    /// Whether no thread owns it.
    ///
    /// # Staleness
    /// Another thread may enter at once.
    #[cfg(test)]
    pub fn is_free(&self) -> bool {
        is_free(sync::load(&self.0))
    }

    /// Clears the marker if it is set, and releases ownership; false if the owner was rescheduled: it is still the owner, and
    /// there is more to do. Only the owner may call this. If the marker was set, the peer's state is read after this.
    #[inline(always)]
    #[must_use]
    pub fn leave(&self) -> bool {
        let seen = sync::load(&self.0) & !RESCHEDULED;
        let free = (seen & !OWNED).next_multiple_of(2);
        let left = sync::cas(&self.0, seen, free);
        if let Err(rescheduled) = left {
            // The owner alone changes Rescheduled to another state, so this can't fail.
            let _ = sync::cas(&self.0, rescheduled, free | OWNED);
        }
        sync::fence_after_rmw(Site::CloseFence);
        steps::done(Step::Closed);
        left.is_ok()
    }

    /// Becomes the owner to empty the queues, not to work on them; false if another thread is. Does not
    /// reschedule, which would keep that thread busy.
    #[must_use]
    pub fn try_seize(&self) -> bool {
        let seen = sync::load(&self.0);
        is_free(seen) && sync::cas(&self.0, seen, seen | OWNED).is_ok()
    }

    /// Releases ownership even if rescheduled. Only the owner may call this.
    pub fn abandon(&self) {
        while !self.leave() {}
    }
}

impl Marker for Ownership {
    fn seen(&self) -> Option<Seen> {
        Seen::copy(sync::acquire_at(&self.0, Site::SeeClosed) & !RESCHEDULED)
    }
}

const fn is_free(word: u64) -> bool {
    word & OWNED == 0
}

#[cfg(all(test, not(loom)))]
mod tests;
