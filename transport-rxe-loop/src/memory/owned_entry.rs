//! Entries of the table of regions that this process has, and their keys: from being claimed to being given back.

use std::path::PathBuf;

use super::Memory;
use super::region::RegionEntry;
use crate::error::RegisterError;
use crate::shm::table::Entry;

/// An entry in the table of regions.
#[derive(Debug)]
pub struct OwnedEntry {
    pub memory: &'static Memory,
    pub index: u32,
    pub generation: u32,
}

impl OwnedEntry {
    /// Claims one.
    ///
    /// # Errors
    /// All are taken, or the device is the parent process'.
    pub fn claim(memory: &'static Memory) -> Result<Self, RegisterError> {
        if !memory.shm.is_ours() {
            return Err(RegisterError::Forked);
        }
        let full = RegisterError::TableFull { max: memory.mrs.len() };
        let (index, generation) = memory.mrs.claim(memory.shm.place()).ok_or(full)?;
        Ok(Self { memory, index, generation })
    }

    /// The low byte of a key tells it from the last ones of its entry, and keeps it from being 0.
    pub const fn key(&self) -> u32 {
        self.index << 8 | (1 + self.generation % 255)
    }

    /// Says what the key is for.
    pub fn write(&self, entry: &RegionEntry) {
        let holder = (self.memory.shm.place(), self.generation);
        // What this process goes by itself, before others hear of it.
        entry.write(self.memory.own(self.index), holder);
        entry.write(self.memory.mr(self.index), holder);
    }

    /// Kills the key. What is copied by it meanwhile is the caller's to wait for.
    pub fn invalidate(&self) {
        RegionEntry::erase(self.memory.own(self.index));
        RegionEntry::erase(self.memory.mr(self.index));
    }

    /// The file of the region that is here, if it has one.
    pub fn path(&self) -> PathBuf {
        self.memory.shm.path().memory(self.index, self.generation)
    }
}

impl Drop for OwnedEntry {
    fn drop(&mut self) {
        self.memory.mr(self.index).life().end(self.memory.shm.place());
    }
}
