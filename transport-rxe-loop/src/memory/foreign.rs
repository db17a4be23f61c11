//! What this process knows of the regions and windows of others: a record for each that it has used, with
//! the file of the region mapped, if it lies in one. One of the rooms where `unsafe` lives.
//!
//! A record is good for as long as the region's entry in the table has its key and its seal, and there is
//! nothing to look up but these two. Once that is over, the record is taken out of its place, and
//! what it has mapped is unmapped when every [`Visit`] has ended that may have found it before.
//!
//! Counts, places and records are in memory of this process' alone, so that no content of the shared one can take
//! memory away from under a copy. Their [protocol](crate::protocol::visits) says why none is.

#![allow(unsafe_code)]

use std::fmt;
use std::mem;
use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::memory::Memory;
use crate::memory::files;
use crate::memory::region::{Bound, Kind, RegionEntry};
use crate::protocol::visits::{self, Retired, Visits};
use crate::shm::mapping::Mapping;
use crate::sync::{self, AtomicPtr};

/// A region of another process, or a window on one.
#[derive(Debug)]
pub struct Record {
    pub facts: RegionEntry,
    /// The place of its process.
    pub place: u16,
    seal: u64,
    /// Its file, if it has one that could be mapped. Else its bytes are reached in its owner's process, as if
    /// they were that one's alone.
    pub memory: Option<Mapping>,
}

impl Record {
    /// Whether the entry in the table still says what is recorded here.
    fn is_current(&self, memory: &'static Memory) -> bool {
        let slot = memory.mr(self.facts.key >> 8);
        sync::acquire(&slot.key) == self.facts.key && sync::load(&slot.seal) == self.seal
    }

    /// Whether it is the region that a window was bound to.
    pub fn is_behind(&self, window: &Self, bound: &Bound) -> bool {
        let (mine, its) = (&self.facts, &window.facts);
        let is_its = (self.place, mine.domain) == (window.place, its.domain);
        is_its && self.seal == bound.seal && mine.bound.is_none()
    }
}

#[derive(Default)]
struct Known {
    /// Where there is a record.
    places: Vec<u32>,
    /// Those that were taken out of their places. Each was made by `learn`, from a box.
    retired: Retired<AtomicPtr<Record>>,
}

/// All records.
pub struct Foreign {
    visits: Visits,
    /// By the index of the region. There are none before the first region of another process is used.
    places: OnceLock<Box<[AtomicPtr<Record>]>>,
    known: Mutex<Known>,
}

impl Foreign {
    /// Nothing is known yet.
    pub fn new() -> Self {
        Self { visits: Visits::new(), places: OnceLock::new(), known: Mutex::default() }
    }

    /// Begins to look for records. Visitors with other numbers are less in each other's way.
    pub fn visit(&'static self, number: usize) -> Visit {
        Visit { foreign: self, _while: self.visits.enter(number) }
    }

    /// Forgets what others have deregistered, and unmaps it as soon as nobody copies to or from it. To be called
    /// from time to time; true if something could not be unmapped yet.
    pub fn tidy(&self, memory: &'static Memory) -> bool {
        let Some(places) = self.places.get() else { return false };
        let mut known = self.lock();
        let kept = mem::take(&mut known.places).into_iter().filter(|&index| {
            // SAFETY: records in their places are retired under the mutex alone, which is held.
            let record = unsafe { sync::acquire(&places[index as usize]).as_ref() };
            let is_current = record.is_some_and(|record| record.is_current(memory));
            if !is_current {
                known.retire(&places[index as usize], null_mut());
            }
            is_current
        });
        let kept = kept.collect();
        known.places = kept;
        known.retired.free(&self.visits, |mut record| {
            // SAFETY: made by `learn`, from a box. It was in its place and left it, once; and every visit
            // that may have found it there has ended since.
            drop(unsafe { Box::from_raw(*record.get_mut()) });
        })
    }

    /// Makes the record of the region with this key.
    #[cold]
    fn learn(
        &self,
        memory: &'static Memory,
        place: &AtomicPtr<Record>,
        key: u32,
    ) -> Option<*mut Record> {
        let index = memory.mrs.index(key >> 8);
        let mut known = self.lock();
        let (facts, (process, generation), seal) = RegionEntry::read_sealed(memory.mr(index), key)?;
        if process == memory.shm.place() {
            // This process knows its own.
            return None;
        }
        let learned = sync::acquire(place);
        // SAFETY: records in their places are retired under the mutex alone, which is held.
        if unsafe { learned.as_ref() }.is_some_and(|record| record.is_current(memory)) {
            return Some(learned);
        }
        let memory = match (facts.kind, usize::try_from(facts.len)) {
            // What a window opens on is reached by way of its region.
            (Kind::Fabric, Ok(len)) if facts.bound.is_none() => {
                files::map(&memory.shm.path().memory(index, generation), len).ok()
            }
            _ => None,
        };
        let record = Box::into_raw(Box::new(Record { facts, place: process, seal, memory }));
        if learned.is_null() {
            known.places.push(index);
        }
        known.retire(place, record);
        Some(record)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// Puts a record, or none, in the place of another, or none.
    fn retire(&mut self, place: &AtomicPtr<Record>, next: *mut Record) {
        let before = sync::acquire(place);
        sync::release(place, next);
        if !before.is_null() {
            self.retired.add(AtomicPtr::new(before));
        }
    }
}

impl fmt::Debug for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Foreign").finish_non_exhaustive()
    }
}

/// While there is one, what it finds stays mapped.
#[derive(Debug)]
pub struct Visit {
    foreign: &'static Foreign,
    _while: visits::Visit<'static>,
}

impl Visit {
    /// What is known of the region with this key, which is not 0; `None` if nobody else has one.
    #[inline]
    pub fn find(&self, memory: &'static Memory, key: u32) -> Option<&Record> {
        let mrs = &memory.mrs;
        let places = self
            .foreign
            .places
            .get_or_init(|| (0..mrs.len()).map(|_| AtomicPtr::new(null_mut())).collect());
        let place = &places[mrs.index(key >> 8) as usize];
        // SAFETY: what is in its place is a record. When it leaves that, it is kept until this visit, which
        // began before and is borrowed, has ended.
        let known = unsafe { sync::acquire(place).as_ref() };
        if let Some(record) =
            known.filter(|record| record.facts.key == key && record.is_current(memory))
        {
            return Some(record);
        }
        // SAFETY: as before.
        self.foreign.learn(memory, place, key).map(|record| unsafe { &*record })
    }
}

#[cfg(test)]
mod tests;
