//! Records of other processes' regions and windows: one for each that this process has used, with the region's file
//! mapped, if it has one. One of the modules with `unsafe`.
//!
//! A record is valid as long as the region's entry in the table has the record's key and seal; a lookup compares only
//! these two. A record that is no longer valid is removed from its slot, and its mapping is unmapped once every copy is
//! over that may have found it.
//!
//! Markers, slots and records are in private memory, so that no content of shared memory can cause a mapping to be
//! unmapped during a copy. Their [protocol](crate::protocol::retired) shows why none is.

#![allow(unsafe_code)]

use crate::memory::key::Key;
use crate::protocol::lock::AttachmentId;
use crate::protocol::number::RegionIndex;
use std::mem;
use std::ptr::null_mut;
use std::sync::{Mutex, OnceLock};

use crate::memory::region::{Bound, Kind, RegionEntry};
use crate::memory::{Memory, files};
use crate::protocol::retired::Retired;
use crate::shm::mapping::Mapping;
use crate::sync::{self, AtomicPtr};

/// A region of another process, or a window of it.
#[derive(Debug)]
pub struct Record {
    pub entry: RegionEntry,
    /// The attachment index of its process.
    pub attachment: AttachmentId,
    seal: u64,
    /// Its file, if it has one that could be mapped. Otherwise its bytes are accessed in its owner's process, like
    /// private memory.
    pub memory: Option<Mapping>,
}

impl Record {
    /// Whether the entry in the table still has this key and seal.
    fn is_current(&self, memory: &'static Memory) -> bool {
        let slot = memory.mrs.at(self.entry.key.index());
        sync::acquire(&slot.key) == self.entry.key.get() && sync::load(&slot.seal) == self.seal
    }

    /// Whether it is the region that a window is bound to.
    pub fn is_behind(&self, window: &Self, bound: &Bound) -> bool {
        let (mine, its) = (&self.entry, &window.entry);
        let is_its = (self.attachment, mine.domain) == (window.attachment, its.domain);
        is_its && self.seal == bound.seal && mine.bound.is_none()
    }
}

#[derive(Debug, Default)]
struct Known {
    /// The indices that have a record.
    records: Vec<RegionIndex>,
    /// Records that were removed. Each was made by `learn`, from a box.
    retired: Retired<AtomicPtr<Record>>,
}

/// All records.
#[derive(Debug, Default)]
pub struct Foreign {
    /// By region index. Allocated when the first region of another process is used.
    records: OnceLock<Box<[AtomicPtr<Record>]>>,
    known: Mutex<Known>,
}

impl Foreign {
    /// The record of the region with this key, which is not 0; `None` if no other process has one.
    ///
    /// # Safety
    /// A [marker](Memory::ownership) of this process is set for `'g`, and was before a full fence.
    #[inline]
    pub unsafe fn find<'g>(&self, memory: &'static Memory, key: Key) -> Option<&'g Record> {
        let mrs = &memory.mrs;
        let records = self
            .records
            .get_or_init(|| (0..mrs.len()).map(|_| AtomicPtr::new(null_mut())).collect());
        let slot = &records[mrs.index(key.index()).get() as usize];
        // SAFETY: a pointer in a slot is null or a record. After it is removed, it is kept until the marker is cleared,
        // which was set before it was found (the caller).
        let known = unsafe { sync::acquire(slot).as_ref() };
        if let Some(record) =
            known.filter(|record| record.entry.key == key && record.is_current(memory))
        {
            return Some(record);
        }
        // SAFETY: as before.
        self.learn(memory, slot, key).map(|record| unsafe { &*record })
    }

    /// Removes the records of regions that were deregistered, and unmaps them once no copy uses them. To be called
    /// periodically; true if something could not be unmapped yet.
    pub fn tidy(&self, memory: &'static Memory) -> bool {
        let Some(records) = self.records.get() else { return false };
        let mut known = sync::lock(&self.known);
        let kept = mem::take(&mut known.records).into_iter().filter(|&index| {
            // SAFETY: a record in its slot is retired only under the mutex, which is held.
            let record = unsafe { sync::acquire(&records[index.get() as usize]).as_ref() };
            let is_current = record.is_some_and(|record| record.is_current(memory));
            if !is_current {
                known.retire(&records[index.get() as usize], null_mut());
            }
            is_current
        });
        let kept = kept.collect();
        known.records = kept;
        known.retired.free(memory.send_queues, |mut record| {
            // SAFETY: made by `learn`, from a box. It was in its slot and was removed once, and every marker has been
            // cleared since that was set when it may have been found there.
            drop(unsafe { Box::from_raw(*record.get_mut()) });
        })
    }

    /// Makes the record of the region with this key.
    #[cold]
    fn learn(
        &self,
        memory: &'static Memory,
        slot: &AtomicPtr<Record>,
        key: Key,
    ) -> Option<*mut Record> {
        let index = memory.mrs.index(key.index());
        let mut known = sync::lock(&self.known);
        let (entry, (process, generation), seal) =
            RegionEntry::read_sealed(memory.mrs.at(index), key)?;
        if process == memory.shm.attachment() {
            // Keys of this process are resolved by its private entries.
            return None;
        }
        let learned = sync::acquire(slot);
        // SAFETY: a record in its slot is retired only under the mutex, which is held.
        if unsafe { learned.as_ref() }.is_some_and(|record| record.is_current(memory)) {
            return Some(learned);
        }
        let memory = match (entry.kind, usize::try_from(entry.len)) {
            // A window is accessed through the record of its region.
            (Kind::Fabric, Ok(len)) if entry.bound.is_none() => {
                files::map(&memory.shm.path().memory(index.get(), generation), len).ok()
            }
            _ => None,
        };
        let record = Box::into_raw(Box::new(Record { entry, attachment: process, seal, memory }));
        if learned.is_null() {
            known.records.push(index);
        }
        known.retire(slot, record);
        Some(record)
    }
}

impl Known {
    /// Replaces the record in a slot, either of which may be null.
    fn retire(&mut self, slot: &AtomicPtr<Record>, next: *mut Record) {
        let before = sync::acquire(slot);
        sync::release(slot, next);
        if !before.is_null() {
            self.retired.add(AtomicPtr::new(before));
        }
    }
}

#[cfg(test)]
mod tests;
