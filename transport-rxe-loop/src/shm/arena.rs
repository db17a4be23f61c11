//! Memory to allocate: [granules](crate::protocol::arena), each with its owner. First fit from where the last
//! one was found, under one lock.

use super::Shm;
use super::owners::Owners;
use crate::error::{AllocError, Stuck};
use crate::protocol::arena::Granules;
use crate::protocol::lock::Owner;
use crate::protocol::steps::{self, Step};
use crate::sync::{self, AtomicU8, AtomicU32, AtomicU64};

/// Bytes that are handed out together.
pub const GRANULE: usize = 256;

/// Which granules are taken. A byte each for the whole memory, so that a granule's number is an offset: the
/// owner's, or 0.
#[derive(Debug)]
pub struct Arena {
    next: &'static AtomicU32,
    granules: Granules<'static>,
    first: usize,
}

/// A piece of the arena, given back when it is dropped.
#[derive(Debug)]
pub struct Extent {
    shm: &'static Shm,
    first: usize,
    granules: usize,
}

impl Extent {
    /// A piece of at least `bytes` bytes, aligned to 256 and zeroed.
    ///
    /// # Errors
    /// There is none so long; the device is the parent process'; or somebody is suspended while it takes one.
    pub fn allocate(shm: &'static Shm, bytes: usize) -> Result<Self, AllocError> {
        if !shm.is_ours() {
            return Err(AllocError::Forked);
        }
        let granules = bytes.div_ceil(GRANULE).max(1);
        let full = AllocError::Full { bytes };
        let first = take(shm, granules)?.ok_or(full)?;
        let extent = Self { shm, first, granules };
        let words = granules * GRANULE / size_of::<u64>();
        for word in shm.memory().slice::<AtomicU64>(first * GRANULE, words).ok_or(full)? {
            sync::store(word, 0);
        }
        Ok(extent)
    }

    /// Is not given back when it is dropped, but when the process has ended.
    pub fn leave(&mut self) {
        self.granules = 0;
    }

    /// Where it starts in the memory.
    pub const fn offset(&self) -> u32 {
        (self.first * GRANULE) as u32
    }
}

impl Drop for Extent {
    fn drop(&mut self) {
        self.shm.arena().granules.give_back(self.first, self.granules);
    }
}

/// The first of so many granules, if there are so many; or somebody who lives keeps everybody out.
fn take(shm: &'static Shm, granules: usize) -> Result<Option<usize>, Stuck> {
    let arena = shm.arena();
    // What a dead holder had marked is its own: who frees what that one had gives it back.
    let _guard = shm.lock(&shm.own.common.arena, || {}, || {})?;
    let hint = (sync::load(arena.next) as usize).clamp(arena.first, arena.granules.len());
    let from = |at| arena.granules.take(at, granules, shm.place() as u8 + 1);
    let first = from(hint).or_else(|| from(arena.first));
    if let Some(first) = first {
        sync::store(arena.next, (first + granules) as u32);
    }
    Ok(first)
}

impl Arena {
    /// The arena whose granules these are, from `at` on.
    pub const fn new(next: &'static AtomicU32, owners: &'static [AtomicU8], at: usize) -> Self {
        Self { next, granules: Granules::new(owners), first: at.div_ceil(GRANULE) }
    }

    /// Where it begins in the memory.
    pub const fn offset(&self) -> usize {
        self.first * GRANULE
    }

    /// Gives back all that the process at a place has, which is dead.
    fn sweep(&self, place: u16) {
        self.granules.sweep(place as u8 + 1);
    }

    /// At which place the process is that has each granule that is taken.
    #[cfg(test)]
    pub fn holders(&self) -> impl Iterator<Item = u16> {
        self.granules.owners().map(|owner| u16::from(owner) - 1)
    }
}

/// The granules, and the lock under which they are allocated.
impl Owners for Shm {
    fn inherit(&self, dead: Owner) {
        let lock = &self.own.common.arena;
        if lock.holder() == Some(dead) {
            drop(self.try_lock(lock));
        }
    }

    fn free(&self, place: u16) {
        self.arena.sweep(place);
        steps::done(Step::Swept);
    }
}

#[cfg(test)]
mod tests;
