//! The owner of a table entry: which attachment has it, and how often it was claimed.
//!
//! | word | entry | left by |
//! |---|---|---|
//! | generation · 0 | free | an attachment that [claims](Life::claim) it |
//! | generation · attachment + 1 | taken | the owner that [frees](Life::end) it, or a process that recovers from its death, to the [next](after) generation |

use super::lock::AttachmentId;
use crate::sync::{self, AtomicU32};

const OWNER_BITS: u32 = 8;
const OWNERS: u32 = (1 << OWNER_BITS) - 1;

/// The highest generation.
pub const LAST_GENERATION: u32 = u32::MAX >> OWNER_BITS;

/// The word of a table entry. Zero is an entry that was never claimed.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Life(AtomicU32);

impl Life {
    /// Claims the entry for an attachment if it is free; returns the generation, counted from 0.
    #[must_use]
    pub fn claim(&self, attachment: AttachmentId) -> Option<u32> {
        let seen = sync::load(&self.0);
        let is_free = seen & OWNERS == 0;
        (is_free && sync::cas(&self.0, seen, seen | owner(attachment)).is_ok())
            .then_some(seen >> OWNER_BITS)
    }

    /// Frees the entry if this attachment owns it.
    pub fn end(&self, attachment: AttachmentId) {
        let seen = sync::load(&self.0);
        if seen & OWNERS == owner(attachment) {
            // Only the owner gets here; or it is dead, and one process at a time frees what it had.
            sync::release(&self.0, after(seen >> OWNER_BITS) << OWNER_BITS);
        }
    }

    /// Makes the entry one in its last generation, after which the numbers are reused.
    #[cfg(all(test, not(loom)))]
    pub fn set_last_generation(&self) {
        sync::release(&self.0, LAST_GENERATION << OWNER_BITS);
    }

    /// The attachment that owns the entry, and the generation.
    #[inline]
    pub fn holder(&self) -> Option<(AttachmentId, u32)> {
        let seen = sync::acquire(&self.0);
        Some((AttachmentId::new((seen & OWNERS).checked_sub(1)? as u16), seen >> OWNER_BITS))
    }

    /// The attachment that owns the entry.
    #[inline]
    pub fn attachment(&self) -> Option<AttachmentId> {
        Some(self.holder()?.0)
    }
}

/// The generation after this one. Numbers and keys hold the remainder of a generation divided by 2ⁿ - 1, for
/// some n of 8 to 24. The remainder of the last generation is 2ᵐ - 1 for some m, and never 2, so a number of
/// the last generation is not valid in the next one.
pub const fn after(generation: u32) -> u32 {
    if generation == LAST_GENERATION { 2 } else { generation + 1 }
}

/// Never 0.
const fn owner(attachment: AttachmentId) -> u32 {
    (attachment.get() as u32 + 1) & OWNERS
}
