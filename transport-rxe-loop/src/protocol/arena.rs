//! Shared memory, allocated in granules that each record their owner, so that what a dead process had is
//! found without its help. Granules are taken under a lock, and freed without it.
//!
//! # States
//!
//! | byte | granule | left by |
//! |---|---|---|
//! | 0 | Free | a process that [takes](Granules::take) it, under the lock |
//! | any other | Taken, by that owner | the owner that [frees it](Granules::give_back); once it is dead, a process that [recovers](Granules::recover) its granules |
//!
//! A process that takes a granule sees everything that was done with it before: the Release that frees the byte pairs
//! with the Acquire that finds it free. So what the last owner wrote cannot land after what the next one writes.

use super::steps::{self, Step};
use crate::sync::{self, AtomicU8, Site};

/// The owner of each granule, which is never 0; 0 is a free granule.
#[derive(Clone, Copy, Debug)]
pub struct Granules<'a>(&'a [AtomicU8]);

impl<'a> Granules<'a> {
    /// The granules whose owners these bytes are. Zero is a free granule.
    pub const fn new(owners: &'a [AtomicU8]) -> Self {
        Self(owners)
    }

    /// The number of granules.
    #[allow(clippy::len_without_is_empty)] // there are some
    pub const fn len(self) -> usize {
        self.0.len()
    }

    /// Takes the first `count` contiguous free granules from `from` on; returns the first, or `None` if there are not
    /// so many. Under the lock. What a process had marked when it died is freed with the rest that it had.
    #[must_use]
    pub fn take(self, from: usize, count: usize, owner: u8) -> Option<usize> {
        let first = self.find(from, count)?;
        for byte in &self.0[first..first + count] {
            sync::store(byte, owner);
            steps::done(Step::Marked);
        }
        Some(first)
    }

    fn find(self, from: usize, count: usize) -> Option<usize> {
        let mut run = 0;
        for (granule, byte) in self.0.iter().enumerate().skip(from) {
            run = if sync::acquire_at(byte, Site::SeeGranule) == 0 { run + 1 } else { 0 };
            if run == count {
                return Some(granule + 1 - run);
            }
        }
        None
    }

    /// Frees granules. For their owner, which no longer uses them.
    ///
    /// # Panics
    /// The range is out of bounds.
    pub fn give_back(self, first: usize, count: usize) {
        for byte in &self.0[first..first + count] {
            sync::release_at(byte, 0, Site::GiveGranule);
            steps::done(Step::Marked);
        }
    }

    /// Frees all granules of a dead owner; returns the first. By one process at a time, as a freed granule may be taken at
    /// once.
    pub fn recover(self, owner: u8) -> Option<usize> {
        let mut first = None;
        for (granule, byte) in self.0.iter().enumerate() {
            if sync::load(byte) == owner {
                sync::release_at(byte, 0, Site::GiveGranule);
                first = first.or(Some(granule));
            }
        }
        first
    }

    /// The owners of the granules that are taken.
    ///
    /// # Staleness
    /// Owners free theirs at any time.
    #[cfg(any(test, loom))]
    pub fn owners(self) -> impl Iterator<Item = u8> + use<'a> {
        self.0.iter().map(sync::load).filter(|&owner| owner != 0)
    }
}
