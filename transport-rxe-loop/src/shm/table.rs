//! Tables whose entries are claimed by whoever needs one, and who it is that has each.

use super::mapping::Shared;
use super::plan::Plan;
use crate::protocol::life::Life;
use crate::protocol::steps::{self, Step};
use crate::sync::{self, AtomicU32};

/// An entry of a table.
pub trait Entry: Shared {
    /// Whether it is taken.
    fn life(&self) -> &Life;
}

/// Says of types which are `repr(C)`, and consist of atomics alone, that they may lie in shared memory.
macro_rules! shared {
    ($($entry:ty),+) => {
        $(
            #[expect(unsafe_code, reason = "a layout for `Plan::table`")]
            // SAFETY: `repr(C)`, atomics alone, alignment at most 128: see where it is defined.
            unsafe impl $crate::shm::mapping::Shared for $entry {}
        )+
    };
}

/// The same of entries of tables, whose `life` says whether they are taken.
macro_rules! entries {
    ($($entry:ty),+) => {
        $crate::shm::table::shared!($($entry),+);
        $(
            impl $crate::shm::table::Entry for $entry {
                fn life(&self) -> &$crate::protocol::life::Life {
                    &self.life
                }
            }
        )+
    };
}

pub(crate) use {entries, shared};

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
    /// Places one of so many entries, a power of two; `None` if the memory is too small for it.
    pub fn place(plan: &mut Plan, entries: u32) -> Option<Self> {
        let next = plan.table(1);
        let entries = plan.table(entries as usize);
        Some(Self { next: next?.first()?, entries: entries?, first_number: 0 })
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
        sync::store(self.next, index.wrapping_sub(self.first_number));
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
mod tests;
