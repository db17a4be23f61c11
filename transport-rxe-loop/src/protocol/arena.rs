//! Memory that processes share, handed out in granules, of which each has an owner: so what a dead process had is
//! found without its help. Granules are taken under one lock, and given back without it.
//!
//! ```
//! use transport_rxe_loop::protocol::arena::Granules;
//! use transport_rxe_loop::sync::AtomicU8;
//!
//! let owners = [const { AtomicU8::new(0) }; 4];
//! let granules = Granules::new(&owners);
//! assert_eq!(granules.take(0, 2, 7), Some(0)); // under the lock
//! assert_eq!(granules.take(0, 3, 8), None);
//! granules.give_back(0, 2);
//! assert_eq!(granules.take(0, 3, 8), Some(0));
//! ```
//!
//! # States
//!
//! | byte | granule | left by |
//! |---|---|---|
//! | 0 | Free | who [takes](Granules::take) it, under the lock |
//! | any other | Taken, by that owner | the owner that [gives it back](Granules::give_back); once it is dead, who [sweeps](Granules::sweep) |
//!
//! Who takes a granule sees everything that was done with it before: the byte hands it over, from the Release that
//! frees it to the Acquire that finds it free. What its last owner wrote can't come after what the next one writes.

use super::steps::{self, Step};
use crate::sync::{self, AtomicU8, Site};

/// Who has each granule: an owner, which is never 0, or nobody.
#[derive(Clone, Copy, Debug)]
pub struct Granules<'a>(&'a [AtomicU8]);

impl<'a> Granules<'a> {
    /// Those whose owners stand there. Zeros are granules that nobody has.
    #[must_use]
    pub const fn new(owners: &'a [AtomicU8]) -> Self {
        Self(owners)
    }

    /// How many there are.
    #[must_use]
    pub const fn len(self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// Takes the first `count` granules in one piece, from `from` on; says where that begins, if there are so many.
    /// Under the lock. A taker that dies over it has what it marked.
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

    /// Gives some back: for their owner, which uses them no more.
    ///
    /// # Panics
    /// There are not so many.
    pub fn give_back(self, first: usize, count: usize) {
        for byte in &self.0[first..first + count] {
            sync::release_at(byte, 0, Site::GiveGranule);
            steps::done(Step::Marked);
        }
    }

    /// Gives back all that an owner has which is dead: for one at a time, as somebody else may have it once it is free.
    pub fn sweep(self, owner: u8) {
        for byte in self.0 {
            if sync::load(byte) == owner {
                sync::release_at(byte, 0, Site::GiveGranule);
            }
        }
    }

    /// The owners of those that are taken.
    ///
    /// # Staleness
    /// Owners give theirs back at any time.
    pub fn owners(self) -> impl Iterator<Item = u8> + use<'a> {
        self.0.iter().map(sync::load).filter(|&owner| owner != 0)
    }
}
