//! Tables whose entries are claimed by whoever needs one, and who it is that has each.

use cq_core::sync::AtomicU32;

use crate::protocol::steps::{self, Step};
use crate::region::{Mapping, Shared};
use crate::sync;

const OWNER_BITS: u32 = 8;
const OWNERS: u32 = (1 << OWNER_BITS) - 1;
const LAST_GENERATION: u32 = u32::MAX >> OWNER_BITS;

/// Which process has an entry, and how often it was claimed. Zeros are an entry that nobody had yet.
///
/// | word | entry | left by |
/// |---|---|---|
/// | generation · 0 | free | whoever [claims](Life::claim) it |
/// | generation · place + 1 | taken | the owner that [ends](Life::end) it, or who sweeps up after it, to the [next](after) generation |
#[derive(Debug)]
#[repr(transparent)]
pub struct Life(AtomicU32);

impl Life {
    /// Takes the entry for the process at a place, if it is free; says which generation this is, from 0.
    pub fn claim(&self, place: u16) -> Option<u32> {
        let seen = sync::acquire(&self.0);
        let is_free = seen & OWNERS == 0;
        (is_free && sync::swap_if(&self.0, seen, seen | owner(place)).is_ok())
            .then_some(seen >> OWNER_BITS)
    }

    /// Gives the entry back, if it is of the process at this place.
    pub fn end(&self, place: u16) {
        let seen = sync::load_u32(&self.0);
        if seen & OWNERS == owner(place) {
            // It is the owner's alone; or its owner is dead, and nobody else is sweeping.
            sync::release(&self.0, after(seen >> OWNER_BITS) << OWNER_BITS);
        }
    }

    /// At which place the process is that has it, and which generation this is.
    #[inline]
    pub fn holder(&self) -> Option<(u16, u32)> {
        let seen = sync::acquire(&self.0);
        Some(((seen & OWNERS).checked_sub(1)? as u16, seen >> OWNER_BITS))
    }

    /// At which place the process is that has it.
    #[inline]
    pub fn place(&self) -> Option<u16> {
        Some(self.holder()?.0)
    }
}

/// The generation after this one. Numbers and keys hold what is left of one divided by 2ⁿ - 1, for some n of 8 to 24: of
/// the last one that is 2ᵐ - 1, and never 2. So who has the number of the last has not that of the next one, either.
const fn after(generation: u32) -> u32 {
    if generation == LAST_GENERATION { 2 } else { generation + 1 }
}

/// Never 0.
const fn owner(place: u16) -> u32 {
    (place as u32 + 1) & OWNERS
}

/// An entry of a table.
pub trait Entry: Shared {
    /// Whether it is taken.
    fn life(&self) -> &Life;
}

/// Entries of one kind.
#[derive(Debug)]
pub struct Table<T: 'static> {
    /// Where to look for a free entry first, so that each is left alone for as long as there are others.
    next: &'static AtomicU32,
    /// A power of two of them.
    entries: &'static [T],
    first_number: u32,
}

impl<T: Entry> Table<T> {
    /// The table whose counter and entries lie there; `None` if the memory is too small for it.
    pub fn new(memory: &'static Mapping, next: usize, at: usize, entries: usize) -> Option<Self> {
        let (next, entries) = (memory.at(next)?, memory.slice(at, entries)?);
        Some(Self { next, entries, first_number: 0 })
    }

    /// The same, whose numbers are counted from this one on: entries, and their generations.
    pub const fn numbered_from(self, first_number: u32) -> Self {
        Self { first_number, ..self }
    }

    /// From where on its numbers are counted.
    pub const fn first_number(&self) -> u32 {
        self.first_number
    }

    /// Takes a free entry: its index and its generation.
    pub fn claim(&self, place: u16) -> Option<(u32, u32)> {
        let first = sync::next_number(self.next).wrapping_add(self.first_number);
        (0..self.entries.len() as u32).find_map(|step| {
            let index = self.index(first.wrapping_add(step));
            let generation = self.at(index).life().claim(place)?;
            steps::done(Step::Claimed);
            Some((index, generation))
        })
    }

    /// Takes the entry at an index next, if it is free.
    #[cfg(test)]
    pub fn go_on_at(&self, index: u32) {
        sync::store_u32(self.next, index.wrapping_sub(self.first_number));
    }

    /// The entry at an index. Any is harmless.
    #[inline]
    pub fn at(&self, index: u32) -> &'static T {
        &self.entries[self.index(index) as usize]
    }

    /// The index that is meant by a number, whose low bits are one.
    #[inline]
    pub const fn index(&self, number: u32) -> u32 {
        number & (self.entries.len() as u32 - 1)
    }

    /// How many bits an index has.
    #[inline]
    pub const fn index_bits(&self) -> u32 {
        self.entries.len().trailing_zeros()
    }

    /// All entries, taken or not.
    pub const fn all(&self) -> &'static [T] {
        self.entries
    }

    /// How many entries there are.
    pub const fn len(&self) -> u32 {
        self.entries.len() as u32
    }

    /// Those that the process at a place has, with their indices.
    pub fn all_of(&self, place: u16) -> impl Iterator<Item = (u32, &'static T)> {
        (0..).zip(self.entries).filter(move |(_, entry)| entry.life().place() == Some(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::number;
    use crate::open::OpenOptions;

    #[test]
    fn q10_the_key_of_what_was_there_last_is_not_that_of_the_next_one_when_generations_begin_anew()
    {
        let (context, fabric) = OpenOptions::new().alone();
        // As if each of the others had been taken and given back as often as can be counted.
        for slot in fabric.tables().mrs.all() {
            sync::release(&slot.life().0, LAST_GENERATION << OWNER_BITS);
        }
        let pd = context.alloc_pd();
        let key = || {
            fabric.tables().mrs.go_on_at(5);
            pd.allocate(8, cq_core::setup::Access::empty()).unwrap().lkey()
        };
        let keys = [(); 3].map(|()| key());
        assert_eq!(keys.map(|key| key >> 8), [5; 3]);
        assert!(keys[0] != keys[1] && keys[1] != keys[2], "{keys:#x?}");
    }

    #[test]
    fn no_number_is_that_of_the_one_before_it_in_a_table_of_any_size() {
        for index_bits in 0..=16 {
            for generation in [0, 1, 2, LAST_GENERATION - 1, LAST_GENERATION] {
                for first in [0, 1, 0x12_3456, (1 << 24) - 1] {
                    let number = |nth| number(0, index_bits, nth, first);
                    let [this, next] = [generation, after(generation)].map(number);
                    assert_ne!(this, next, "{index_bits} bits, after {generation}");
                    assert!((1 << index_bits..1 << 24).contains(&this), "{this:#x}");
                }
            }
        }
    }
}
