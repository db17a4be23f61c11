//! Who works on a queue pair's queues: one thread of its process at a time, the owner of its send queue. Nobody waits
//! for that but to empty the queues, and no poller takes it.
//!
//! | word | state | left by |
//! |---|---|---|
//! | 0 | Free | who [enters](Ownership::enter) or [seizes](Ownership::try_seize) it, to Owned |
//! | 1 | Owned | the owner as it [leaves](Ownership::leave), to Free; anybody else who enters, to Rescheduled |
//! | 2, and any other | Rescheduled | the owner as it leaves, to Owned: it looks at the queues once more |
//!
//! Each change is a read-modify-write of the one word, so an owner that finds itself rescheduled sees what was posted
//! before that, and who finds the word free does the work itself: nothing that was posted is left.
//!
//! An owner that [abandons](Ownership::abandon) it does not look once more. Either the work is gone that others wanted
//! done, as the state of the queue pair says by then; or it is handed to another thread, **after** that: a thread that
//! entered before would find it owned, and go.
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

/// The word. Any number in it is a state.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Ownership(AtomicU32);

impl Ownership {
    /// Becomes the owner; false if another thread is, which will then look at everything again.
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
            match sync::swap_if(&self.0, seen, to) {
                Ok(()) => return seen == FREE,
                Err(now) => seen = now,
            }
        }
    }

    /// Whether nobody owns it.
    ///
    /// # Staleness
    /// Another thread may enter at once.
    #[must_use]
    pub fn is_free(&self) -> bool {
        sync::load(&self.0) == FREE
    }

    /// For the owner: gives it back; false if it was rescheduled, so that it is still the owner and there is more to
    /// do.
    #[inline]
    #[must_use]
    pub fn leave(&self) -> bool {
        match sync::swap_if(&self.0, OWNED, FREE) {
            Ok(()) => true,
            Err(rescheduled) => {
                // The owner alone changes Rescheduled to another state, so this can't fail.
                let _ = sync::swap_if(&self.0, rescheduled, OWNED);
                false
            }
        }
    }

    /// Becomes the owner to end what the queues hold, not to work on it; false if another thread is. Does not
    /// reschedule, which would keep that one at it.
    #[must_use]
    pub fn try_seize(&self) -> bool {
        sync::swap_if(&self.0, FREE, OWNED).is_ok()
    }

    /// For the owner: gives it back, whatever was rescheduled.
    pub fn abandon(&self) {
        while !self.leave() {}
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
