//! Ownership of a send queue: one thread of the process at a time works on a queue pair's queues. Other
//! threads do not wait for it, except to empty the queues, and no poller takes it.
//!
//! | word | state | left by |
//! |---|---|---|
//! | 0 | Free | a thread that [enters](Ownership::enter) or [seizes](Ownership::try_seize) it, to Owned |
//! | 1 | Owned | the owner as it [leaves](Ownership::leave), to Free; another thread that enters, to Rescheduled |
//! | 2, and any other | Rescheduled | the owner as it leaves, to Owned: it checks the queues again |
//!
//! Each change is a read-modify-write of the one word. So an owner that finds itself rescheduled sees what was posted
//! before, and a thread that finds the word free does the work itself: no posted request is missed.
//!
//! An owner that [abandons](Ownership::abandon) it does not check again. Either the work no longer exists, as
//! the state of the queue pair says by then; or it is handed to another thread, **after** abandoning: a
//! thread that entered earlier would find the queue owned and return.
//!
//! ```
//! use transport_rxe_loop::protocol::ownership::Ownership;
//!
//! let ownership = Ownership::default();
//! assert!(ownership.enter());
//! assert!(!ownership.enter(), "its owner will look again");
//! assert!(!ownership.leave(), "there is more to do");
//! assert!(ownership.leave());
//! ```

use crate::sync::{self, AtomicU32, Site};

const FREE: u32 = 0;
const OWNED: u32 = 1;
const RESCHEDULED: u32 = 2;

/// The word. Any value is a valid state.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Ownership(AtomicU32);

impl Ownership {
    /// Becomes the owner; false if another thread is, which will then check the queues again.
    #[inline]
    #[must_use]
    pub fn enter(&self) -> bool {
        let mut seen = FREE;
        loop {
            let to = match seen {
                FREE => OWNED,
                _ if sync::intact(Site::Reschedule) => RESCHEDULED,
                _ => seen,
            };
            match sync::cas(&self.0, seen, to) {
                Ok(()) => return seen == FREE,
                Err(now) => seen = now,
            }
        }
    }

    /// Whether no thread owns it.
    ///
    /// # Staleness
    /// Another thread may enter at once.
    #[must_use]
    pub fn is_free(&self) -> bool {
        sync::load(&self.0) == FREE
    }

    /// Releases ownership; false if the owner was rescheduled: it is still the owner, and there is more to
    /// do. Only the owner may call this.
    #[inline]
    #[must_use]
    pub fn leave(&self) -> bool {
        match sync::cas(&self.0, OWNED, FREE) {
            Ok(()) => true,
            Err(rescheduled) => {
                // The owner alone changes Rescheduled to another state, so this can't fail.
                let _ = sync::cas(&self.0, rescheduled, OWNED);
                false
            }
        }
    }

    /// Becomes the owner to empty the queues, not to work on them; false if another thread is. Does not
    /// reschedule, which would keep that thread busy.
    #[must_use]
    pub fn try_seize(&self) -> bool {
        sync::cas(&self.0, FREE, OWNED).is_ok()
    }

    /// Releases ownership even if rescheduled. Only the owner may call this.
    pub fn abandon(&self) {
        while !self.leave() {}
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
