//! Which process has an entry of a table, and how often the entry was claimed.
//!
//! | word | entry | left by |
//! |---|---|---|
//! | generation · 0 | free | who [claims](Life::claim) it |
//! | generation · place + 1 | taken | the owner that [ends](Life::end) it, or who sweeps up after it, to the [next](after) generation |
//!
//! ```
//! use transport_rxe_loop::protocol::life::Life;
//!
//! let life = Life::default();
//! assert_eq!(life.claim(7), Some(0));
//! assert_eq!(life.claim(8), None);
//! assert_eq!(life.holder(), Some((7, 0)));
//! life.end(8); // it has nothing there
//! life.end(7);
//! assert_eq!(life.claim(8), Some(1));
//! ```

use crate::sync::{self, AtomicU32};

const OWNER_BITS: u32 = 8;
const OWNERS: u32 = (1 << OWNER_BITS) - 1;

/// The highest generation.
pub const LAST_GENERATION: u32 = u32::MAX >> OWNER_BITS;

/// The word of an entry. Zeros are one that nobody had yet.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Life(AtomicU32);

impl Life {
    /// Takes the entry for the process at a place, if it is free; says which generation this is, from 0.
    #[must_use]
    pub fn claim(&self, place: u16) -> Option<u32> {
        let seen = sync::load(&self.0);
        let is_free = seen & OWNERS == 0;
        (is_free && sync::swap_if(&self.0, seen, seen | owner(place)).is_ok())
            .then_some(seen >> OWNER_BITS)
    }

    /// Gives the entry back, if it is of the process at this place.
    pub fn end(&self, place: u16) {
        let seen = sync::load(&self.0);
        if seen & OWNERS == owner(place) {
            // It is the owner's alone; or its owner is dead, and nobody else is sweeping.
            sync::release(&self.0, after(seen >> OWNER_BITS) << OWNER_BITS);
        }
    }

    /// As if it had been claimed so often that the next generation is one of the first again.
    #[cfg(all(test, not(loom)))]
    pub fn be_as_old_as_can_be(&self) {
        sync::release(&self.0, LAST_GENERATION << OWNER_BITS);
    }

    /// At which place the process is that has it, and which generation this is.
    #[inline]
    #[must_use]
    pub fn holder(&self) -> Option<(u16, u32)> {
        let seen = sync::acquire(&self.0);
        Some(((seen & OWNERS).checked_sub(1)? as u16, seen >> OWNER_BITS))
    }

    /// At which place the process is that has it.
    #[inline]
    #[must_use]
    pub fn place(&self) -> Option<u16> {
        Some(self.holder()?.0)
    }
}

/// The generation after this one. Numbers and keys hold what is left of one divided by 2ⁿ - 1, for some n of 8 to 24: of
/// the last one that is 2ᵐ - 1, and never 2. So who has the number of the last has not that of the next one, either.
#[must_use]
pub const fn after(generation: u32) -> u32 {
    if generation == LAST_GENERATION { 2 } else { generation + 1 }
}

/// Never 0.
const fn owner(place: u16) -> u32 {
    (place as u32 + 1) & OWNERS
}
