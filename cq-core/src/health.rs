//! Whether a queue still works: the overrun, latched for ever.
//!
//! ```
//! use cq_core::health::{Health, State};
//!
//! let health = Health::new();
//! assert_eq!(health.state(), State::Running);
//! assert_eq!(health.drop_one(), 1);
//! assert_eq!(health.drop_one(), 2);
//! assert_eq!(health.state(), State::Overrun { dropped: 2 });
//! ```
//!
//! # States
//!
//! | word | state | left by |
//! |---|---|---|
//! | 0 | Running | a producer, by [`drop_one`](Health::drop_one) |
//! | n > 0 | Overrun, n completions dropped (the last number stands for itself and all above) | nobody |
//!
//! The producer alone writes the word, the consumer reads it. Several producers write it by
//! [`drop_several`](Health::drop_several), a read-modify-write, so that each is told another number. The rule is O3.

use crate::sync::{self, AtomicU32, const_unless_loom};

/// The word that holds the state. Any number in it is a state.
#[derive(Debug)]
#[repr(transparent)]
pub struct Health(AtomicU32);

/// Whether a queue still works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It does.
    Running,
    /// A completion came when the queue was full.
    Overrun {
        /// How many were dropped so far; saturates.
        dropped: u32,
    },
}

impl Health {
    const_unless_loom! {
        /// A queue that works.
        #[must_use]
        pub const fn new() -> Self {
            Self(AtomicU32::new(0))
        }
    }

    /// What the consumer sees. After an overrun, every completion that was stored before can be seen too.
    #[inline]
    #[must_use]
    pub fn state(&self) -> State {
        match sync::read_latch(&self.0) {
            0 => State::Running,
            dropped => State::Overrun { dropped },
        }
    }

    /// The producer drops a completion: the one transition. Says how many that makes.
    #[cold]
    pub fn drop_one(&self) -> u32 {
        let dropped = sync::load_u32(&self.0).saturating_add(1);
        sync::latch(&self.0, dropped);
        dropped
    }

    /// [`drop_one`](Self::drop_one) of one producer among several, for this many completions, not 0.
    #[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
    #[cold]
    pub fn drop_several(&self, dropped: u32) -> u32 {
        sync::latch_more(&self.0, dropped)
    }

    pub(crate) fn adopt(&self, old: &Self) {
        sync::store_u32(&self.0, sync::load_u32(&old.0));
    }

    pub(crate) fn reset(&mut self) {
        sync::store_u32(&self.0, 0);
    }
}

impl Default for Health {
    fn default() -> Self {
        Self::new()
    }
}
