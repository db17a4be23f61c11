//! Tables of entries that processes claim, each with its owner.

use super::mapping::Shared;
use super::plan::Plan;
use crate::protocol::life::Life;
use crate::protocol::lock::AttachmentId;
use crate::protocol::steps::{self, Step};
use crate::sync::{self, AtomicU32};

/// An entry of a table.
pub trait Entry: Shared {
    /// Its index in the table.
    type Index: Copy + From<u32> + Into<u32>;

    /// The word that records its owner.
    fn life(&self) -> &Life;
}

/// Implements `Shared` for types that are `repr(C)` and consist of atomics alone.
macro_rules! shared {
    ($($entry:ty),+) => {
        $(
            #[expect(unsafe_code, reason = "a layout for `Plan::table`")]
            // SAFETY: `repr(C)`, atomics alone, alignment at most 128: see its definition.
            unsafe impl $crate::shm::mapping::Shared for $entry {}
        )+
    };
}

/// Implements `Entry`, too, for entries with a field `life`, each with the type of its index.
macro_rules! entries {
    ($($entry:ty: $index:ty),+) => {
        $crate::shm::table::shared!($($entry),+);
        $(
            impl $crate::shm::table::Entry for $entry {
                type Index = $index;

                fn life(&self) -> &$crate::protocol::life::Life {
                    &self.life
                }
            }
        )+
    };
}

/// Implements `Debug` by the name alone, for what reaches all tables of a fabric.
macro_rules! opaque {
    ($name:ident) => {
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    };
}

pub(crate) use {entries, opaque, shared};

/// A table of entries of one kind.
#[derive(Debug)]
pub struct Table<'m, T> {
    /// Where the next search for a free entry begins, so that an entry is reused as late as possible.
    next: &'m AtomicU32,
    /// The entries, a power of two.
    entries: &'m [T],
    /// The first number.
    pub first_number: u32,
}

impl<'m, T: Entry> Table<'m, T> {
    /// Places a table of `entries` entries, a power of two; `None` if the memory is too small.
    pub fn place(plan: &mut Plan<'m>, entries: u32) -> Option<Self> {
        let next = plan.table(1);
        let entries = plan.table(entries as usize);
        Some(Self { next: next?.first()?, entries: entries?, first_number: 0 })
    }

    /// The same table, with numbers counted from this one: entries, and their generations.
    pub const fn numbered_from(self, first_number: u32) -> Self {
        Self { first_number, ..self }
    }

    /// Claims a free entry for an attachment: its index and its generation.
    pub fn claim(&self, attachment: AttachmentId) -> Option<(T::Index, u32)> {
        let first = sync::next_number(self.next).wrapping_add(self.first_number);
        (0..self.entries.len() as u32).find_map(|step| {
            let index = self.index(first.wrapping_add(step));
            let generation = self.at(index).life().claim(attachment)?;
            steps::done(Step::Claimed);
            Some((index, generation))
        })
    }

    /// Has the next search begin at an index.
    #[cfg(test)]
    pub fn go_on_at(&self, index: T::Index) {
        sync::store(self.next, index.into().wrapping_sub(self.first_number));
    }

    /// The entry at an index, modulo the length.
    #[inline]
    pub fn at(&self, index: T::Index) -> &'m T {
        &self.entries[self.mask(index.into()) as usize]
    }

    /// The index in the low bits of a number.
    #[inline]
    pub fn index(&self, number: impl Into<u32>) -> T::Index {
        self.mask(number.into()).into()
    }

    #[inline]
    const fn mask(&self, number: u32) -> u32 {
        number & (self.entries.len() as u32 - 1)
    }

    /// The number of bits of an index.
    #[inline]
    pub const fn index_bits(&self) -> u32 {
        self.entries.len().trailing_zeros()
    }

    /// All entries, claimed or not, with their indices.
    pub fn all(&self) -> impl Iterator<Item = (T::Index, &'m T)> + use<'m, T> {
        self.indices().zip(self.entries)
    }

    /// All indices.
    pub fn indices(&self) -> impl Iterator<Item = T::Index> + use<T> {
        (0..self.len()).map(T::Index::from)
    }

    /// The number of entries.
    pub const fn len(&self) -> u32 {
        self.entries.len() as u32
    }

    /// The entries that an attachment owns, with their indices.
    pub fn all_of(&self, attachment: AttachmentId) -> impl Iterator<Item = (T::Index, &'m T)> {
        self.all().filter(move |(_, entry)| entry.life().attachment() == Some(attachment))
    }
}

#[cfg(test)]
mod tests;
