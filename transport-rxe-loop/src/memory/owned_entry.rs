//! An owned entry in the table of regions, and its key: claimed, written, invalidated, freed.

use std::path::PathBuf;

use super::Memory;
use super::region::RegionEntry;
use crate::conditions::FORKED;
use crate::error::RegisterError;
use crate::memory::key::Key;
use crate::protocol::number::RegionIndex;
use crate::shm::table::Entry;

/// An entry in the table of regions. Dropping it frees it.
#[derive(Debug)]
pub struct OwnedEntry {
    pub memory: &'static Memory,
    pub index: RegionIndex,
    pub generation: u32,
}

impl OwnedEntry {
    /// Claims a free entry.
    ///
    /// # Errors
    /// All are in use, or this is a forked child.
    pub fn claim(memory: &'static Memory) -> Result<Self, RegisterError> {
        if !memory.shm.is_ours() {
            return Err(FORKED.into());
        }
        let full = RegisterError::TableFull { max: memory.mrs.len() };
        let (index, generation) = memory.mrs.claim(memory.shm.attachment()).ok_or(full)?;
        Ok(Self { memory, index, generation })
    }

    /// Its key. The low byte distinguishes it from the last keys of the same entry, and is never 0.
    pub const fn key(&self) -> Key {
        Key::of(self.index, self.generation)
    }

    /// Writes the region or window that the key names.
    pub fn write(&self, entry: &RegionEntry) {
        let holder = (self.memory.shm.attachment(), self.generation);
        // The private entry first: other processes can use the key only after the shared one is written.
        entry.write(self.memory.own(self.index), holder);
        entry.write(self.memory.mrs.at(self.index), holder);
    }

    /// Invalidates the key. The caller waits for copies that still use it.
    pub fn invalidate(&self) {
        RegionEntry::erase(self.memory.own(self.index));
        RegionEntry::erase(self.memory.mrs.at(self.index));
    }

    /// The path of the region's file, if it has one.
    pub fn path(&self) -> PathBuf {
        self.memory.shm.path().memory(self.index.get(), self.generation)
    }
}

impl Drop for OwnedEntry {
    fn drop(&mut self) {
        self.memory.mrs.at(self.index).life().end(self.memory.shm.attachment());
    }
}
