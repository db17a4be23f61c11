//! A lock that survives the death of its holder: the word records the holder, so that another process can
//! find out that it is dead and take the lock over. The caller decides how long to wait and who is alive.
//!
//! # States
//!
//! | word | state | left by |
//! |---|---|---|
//! | 0 | Free | a process that [enters](Lock::try_enter) |
//! | any other | Held by that [`AttachmentKey`] | the holder as it [leaves](Lock::leave); once it is dead, the process that [inherits](Lock::inherit) the lock |
//!
//! # What the inheriting process sees
//! Everything that the dead holder did: its death is observed through the kernel, which orders it, so this word need
//! not. What the holder did not reach is the rest of its program order, as the compiler arranged it. So a store that
//! must come before another is ordered by a Release, even where nobody reads the words without the lock.

use std::num::NonZeroU32;

use super::steps::{self, Step};
use crate::sync::{self, AtomicU32};

/// Which of the attached processes: an index below 254. One that was read from shared memory may be corrupted, so
/// lookups check it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct AttachmentId(u16);

impl AttachmentId {
    /// The attachment with this index.
    pub const fn new(index: u16) -> Self {
        Self(index)
    }

    /// The index, for a word of shared memory.
    pub const fn get(self) -> u16 {
        self.0
    }

    /// The index, for a lookup.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// An attachment: its id, and how often that id was used. The generation keeps a process that found a holder
/// dead, and was then suspended, from mistaking the next attachment with the same id for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttachmentKey(NonZeroU32);

impl AttachmentKey {
    /// The attachment with this id in this generation. The id is below 65,535.
    #[cfg(any(test, loom))]
    pub const fn new(attachment: u16, generation: u16) -> Self {
        let word = (generation as u32) << 16 | attachment.saturating_add(1) as u32;
        Self(NonZeroU32::MIN.saturating_add(word - 1))
    }

    /// The owner that a word names; `None` for 0. The word may have been corrupted by another process.
    pub const fn from_word(word: u32) -> Option<Self> {
        match NonZeroU32::new(word) {
            Some(word) => Some(Self(word)),
            None => None,
        }
    }

    /// The word for shared memory; never 0.
    pub const fn to_word(self) -> u32 {
        self.0.get()
    }

    /// How often the id was used before, wrapping.
    pub const fn generation(self) -> u16 {
        (self.0.get() >> 16) as u16
    }

    /// The id of the attachment; the caller checks that it is in range.
    pub const fn attachment(self) -> AttachmentId {
        AttachmentId((self.0.get() as u16).wrapping_sub(1))
    }
}

/// The lock word. Any value is a valid state; zero is a free lock.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Lock(AtomicU32);

impl Lock {
    /// Takes the lock if it is free.
    #[inline]
    #[must_use]
    pub fn try_enter(&self, me: AttachmentKey) -> bool {
        let entered = sync::try_lock_as(&self.0, me.to_word());
        if entered {
            steps::done(Step::Entered);
        }
        entered
    }

    /// Releases the lock. Only the holder may call this.
    #[inline]
    pub fn leave(&self) {
        sync::unlock(&self.0);
        steps::done(Step::Left);
    }

    /// The current holder. May be stale at once, except that a dead holder keeps the lock until it is inherited.
    pub fn holder(&self) -> Option<AttachmentKey> {
        AttachmentKey::from_word(sync::load(&self.0))
    }

    /// Takes the lock over from a dead holder; false if another process did so first. The new holder has to
    /// repair what the lock protects.
    #[must_use]
    pub fn inherit(&self, dead: AttachmentKey, me: AttachmentKey) -> bool {
        let inherited = sync::take_lock(&self.0, dead.to_word(), me.to_word());
        if inherited {
            steps::done(Step::Inherited);
        }
        inherited
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
