//! Keys of memory regions and memory windows.

use crate::protocol::number::RegionIndex;

/// An lkey or rkey: the index of an entry in the table of regions, above eight bits that tell it from the last keys of that
/// entry. A peer may send any number; a lookup finds nothing by a wrong one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Key(u32);

impl Key {
    /// Of no entry.
    pub const NONE: Self = Self(0);
    const TAG_BITS: u32 = 8;

    /// The key with this number.
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// The key of the entry at an index, in this generation. Its tag is never 0, nor that of the one before it.
    pub const fn of(index: RegionIndex, generation: u32) -> Self {
        Self(index.get() << Self::TAG_BITS | (1 + generation % 255))
    }

    /// Its number, for requests, completions and shared memory.
    #[inline]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The index of the entry.
    #[inline]
    pub const fn index(self) -> RegionIndex {
        RegionIndex::new(self.0 >> Self::TAG_BITS)
    }
}
