//! A lock that outlives its holder: the word says which process has it, so that another one can find out
//! that it is dead, and inherit. How long to wait, and who is alive, is the caller's.
//!
//! ```
//! use transport_rxe_loop::protocol::lock::{Lock, Owner};
//!
//! let (lock, dead, me) = (Lock::new(), Owner::new(7, 1), Owner::new(8, 1));
//! assert!(lock.try_enter(dead));
//! assert!(!lock.try_enter(me));
//! assert_eq!(lock.holder(), Some(dead));
//! assert!(lock.inherit(dead, me)); // and repairs what the lock protects
//! lock.leave();
//! assert_eq!(lock.holder(), None);
//! ```
//!
//! # States
//!
//! | word | state | left by |
//! |---|---|---|
//! | 0 | Free | whoever [enters](Lock::try_enter) |
//! | any other | Held by that [`Owner`] | the holder as it [leaves](Lock::leave); once it is dead, an heir as it [inherits](Lock::inherit) |
//!
//! # What an heir sees
//! Everything that the dead did before it died: that is what knowing of its death brings along, which the
//! kernel hands over, not this word. What it did *not* get to is the rest of its program order, as the
//! compiler left it: so whatever has to be in place before something else is stored before it by a Release,
//! even where nobody reads it without the lock.

use std::num::NonZeroU32;

use super::steps::{self, Step};
use crate::sync::{self, AtomicU32};

/// A process that has attached: its place, and how often that was taken, so that who finds a holder dead
/// and then falls asleep cannot mistake the next one in its place for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner(NonZeroU32);

impl Owner {
    /// The `generation`th process at this place, which is below 65,535.
    #[must_use]
    pub const fn new(place: u16, generation: u16) -> Self {
        let word = (generation as u32) << 16 | place.saturating_add(1) as u32;
        Self(NonZeroU32::MIN.saturating_add(word - 1))
    }

    /// The owner that a word names, or nobody. A stranger may have written it.
    #[must_use]
    pub const fn from_word(word: u32) -> Option<Self> {
        match NonZeroU32::new(word) {
            Some(word) => Some(Self(word)),
            None => None,
        }
    }

    /// For a word of shared memory; not 0.
    #[must_use]
    pub const fn to_word(self) -> u32 {
        self.0.get()
    }

    /// Its place; to be checked against how many there are.
    #[must_use]
    pub const fn place(self) -> u16 {
        (self.0.get() as u16).wrapping_sub(1)
    }
}

/// The lock. Any number in it is a state, zero a new lock.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Lock(AtomicU32);

impl Lock {
    /// Held by nobody.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes it, if it is free.
    #[inline]
    #[must_use]
    pub fn try_enter(&self, me: Owner) -> bool {
        let entered = sync::try_lock_as(&self.0, me.to_word());
        if entered {
            steps::done(Step::Entered);
        }
        entered
    }

    /// Gives it back; for its holder.
    #[inline]
    pub fn leave(&self) {
        sync::unlock(&self.0);
        steps::done(Step::Left);
    }

    /// Who has it. Old at once, but for one thing: a holder that is dead has it until somebody inherits.
    #[must_use]
    pub fn holder(&self) -> Option<Owner> {
        Owner::from_word(sync::load(&self.0))
    }

    /// Takes it from a holder that is dead; false if somebody else was quicker. Who gets it has to repair
    /// what the lock protects.
    #[must_use]
    pub fn inherit(&self, dead: Owner, me: Owner) -> bool {
        let inherited = sync::take_lock(&self.0, dead.to_word(), me.to_word());
        if inherited {
            steps::done(Step::Inherited);
        }
        inherited
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
