//! What is out of the ordinary about pushing to a completion queue: one word, so that producers look at one,
//! and where it is 0 at nothing else.
//!
//! ```
//! use transport_rxe_loop::protocol::mode::{Mode, Trait};
//!
//! let mode = Mode::default();
//! assert!(mode.is_ordinary() && !mode.is_all_in_ring(), "as a forked child finds it");
//! mode.begin(false);
//! assert!(mode.is_ordinary() && mode.is_all_in_ring());
//! mode.set(Trait::Moderated, true);
//! mode.set(Trait::GivenUp, true);
//! mode.set(Trait::Moderated, false);
//! assert!(mode.has(Trait::GivenUp) && !mode.has(Trait::Moderated) && !mode.is_all_in_ring());
//! ```
//!
//! | bit | queue | set by | cleared by |
//! |---|---|---|---|
//! | 0 | [given up](Trait::GivenUp) | a producer that could not have the lock | nobody |
//! | 1 | [ignores overruns](Trait::IgnoresOverrun) | the owner, as it makes the queue | nobody |
//! | 2 | [moderated](Trait::Moderated) | the owner | the owner |
//! | 3 | [like Soft-RoCE's](Trait::LikeRxe) | the owner, as it makes the queue | nobody |
//! | 4 | [overran](Trait::Overran) | under the lock: a producer whose completion found no room, or the heir of one | nobody |
//! | 5 | [is there](Trait::There) | the owner, as it makes the queue | the fork, in a child: all that it finds is 0 |
//! | 6 | [to be found full](Trait::Full) | who is told to by a fault | nobody |
//!
//! Bits 0 and 4 are what others go by who do not have the lock: the ring itself may be resized away, and its memory
//! be another's, at any instant. So a producer that could not have the lock leaves word here, and writes nothing to
//! the ring; the owner, whose ring it is, finds bit 0 when it polls and finds nothing. Bits 4 and 5 leave the queue
//! ordinary to push to.
//!
//! Each bit is one of the queue's life: the next one [begins](Mode::begin) anew. Producers look without the
//! lock, so the one that is just pushing may see a change of bit 2 late; what there is to know of
//! moderation is under the lock.

use crate::sync::{self, AtomicU32};

/// The word. Any number in it is a state, 0 an ordinary queue. Seldom written, and looked at by every push and by
/// every poll that finds nothing: in cache lines of its own.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub struct Mode(AtomicU32);

/// What there can be about a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Trait {
    /// Its lock could not be had, so that nobody pushes to it any more.
    GivenUp = 1 << 0,
    /// Completions that find no room are dropped, and nothing else happens.
    IgnoresOverrun = 1 << 1,
    /// Its events may be held back.
    Moderated = 1 << 2,
    /// What is pushed to it is what Soft-RoCE would push, and so is what comes of it.
    LikeRxe = 1 << 3,
    /// A completion found no room, and those whom that concerns may not have been told.
    Overran = 1 << 4,
    /// This is the process that made it, and not a forked child.
    There = 1 << 5,
    /// Its next completion finds no room, whether there is some or not.
    Full = 1 << 6,
}

impl Mode {
    /// A new queue lies here.
    pub fn begin(&self, ignores_overrun: bool) {
        let word = if ignores_overrun { Trait::IgnoresOverrun as u32 } else { 0 };
        sync::store(&self.0, word | Trait::There as u32);
    }

    /// Whether a push need not look any further.
    #[inline(always)]
    #[must_use]
    pub fn is_ordinary(&self) -> bool {
        sync::load(&self.0) & !(Trait::Overran as u32 | Trait::There as u32) == 0
    }

    /// Whether its owner learns all that there is to know from the ring.
    #[inline(always)]
    #[must_use]
    pub fn is_all_in_ring(&self) -> bool {
        let (there, given_up) = (Trait::There as u32, Trait::GivenUp as u32);
        sync::load(&self.0) & (there | given_up) == there
    }

    /// Whether the queue is so.
    #[inline(always)]
    #[must_use]
    pub fn has(&self, which: Trait) -> bool {
        sync::load(&self.0) & which as u32 != 0
    }

    /// Whether it has overrun, or is to be taken for one that has.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.has(Trait::Overran) || self.has(Trait::GivenUp)
    }

    /// From now on it is, or is not.
    pub fn set(&self, which: Trait, is: bool) {
        let bit = which as u32;
        sync::raise_from(&self.0, |word| {
            let next = if is { word | bit } else { word & !bit };
            (next != word).then_some(next)
        });
    }
}
