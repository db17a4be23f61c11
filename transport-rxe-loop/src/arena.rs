//! Memory for rings and queues: granules, each with its owner, so that what a dead process had is found
//! without its help. First fit from where the last one was found, under one lock.

use cq_core::sync::AtomicU32;

use crate::error::CreateError;
use crate::fabric::Fabric;
use crate::lock::Stuck;
use crate::protocol::steps::{self, Step};
use crate::sweep;
use crate::sync::{self, AtomicU8, AtomicU64};

/// Bytes that are handed out together.
pub const GRANULE: usize = 256;

/// Which granules are taken. A byte each for the whole memory, so that a granule's number is an offset: the
/// owner's, or 0.
#[derive(Debug)]
pub struct Arena {
    next: &'static AtomicU32,
    owners: &'static [AtomicU8],
    first: usize,
}

/// A piece of the arena, given back when it is dropped.
#[derive(Debug)]
pub struct Extent {
    fabric: &'static Fabric,
    first: usize,
    granules: usize,
}

impl Extent {
    /// A piece of at least `bytes` bytes, aligned to 256 and zeroed.
    ///
    /// # Errors
    /// There is none so long; the device is the parent process'; or somebody is suspended while it takes one.
    pub fn allocate(fabric: &'static Fabric, bytes: usize) -> Result<Self, CreateError> {
        if !fabric.is_ours() {
            return Err(CreateError::Forked);
        }
        let granules = bytes.div_ceil(GRANULE).max(1);
        let full = CreateError::NoMemory { bytes };
        let taken = sweep::take(fabric, || take(fabric, granules).transpose()).ok_or(full)?;
        let first = taken.map_err(|Stuck| CreateError::Stuck)?;
        let extent = Self { fabric, first, granules };
        let words = granules * GRANULE / size_of::<u64>();
        for word in fabric.memory().slice::<AtomicU64>(first * GRANULE, words).ok_or(full)? {
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
        self.fabric.tables().arena.mark(self.first, self.granules, 0);
    }
}

/// The first of so many granules, if there are so many; or somebody who lives keeps everybody out.
fn take(fabric: &'static Fabric, granules: usize) -> Result<Option<usize>, Stuck> {
    let arena = &fabric.tables().arena;
    // What a dead holder had marked is its own: whoever sweeps up after it gives it back.
    let _guard = fabric.lock(&fabric.tables().common.arena, || {})?;
    let hint = (sync::load_u32(arena.next) as usize).clamp(arena.first, arena.owners.len());
    let first = arena.find(hint, granules).or_else(|| arena.find(arena.first, granules));
    if let Some(first) = first {
        arena.mark(first, granules, fabric.place() as u8 + 1);
        sync::store_u32(arena.next, (first + granules) as u32);
    }
    Ok(first)
}

impl Arena {
    /// The arena whose granules these are, from `at` on.
    pub const fn new(next: &'static AtomicU32, owners: &'static [AtomicU8], at: usize) -> Self {
        Self { next, owners, first: at.div_ceil(GRANULE) }
    }

    /// Where it begins in the memory.
    pub const fn offset(&self) -> usize {
        self.first * GRANULE
    }

    /// Gives back all that the process at a place has, which is dead.
    pub fn sweep(&self, place: u16) {
        for owner in &self.owners[self.first..] {
            if u16::from(sync::load_u8(owner)) == place + 1 {
                sync::store_u8(owner, 0);
            }
        }
    }

    /// At which place the process is that has each granule that is taken.
    #[cfg(test)]
    pub fn holders(&self) -> impl Iterator<Item = u16> {
        let owners = self.owners[self.first..].iter().map(sync::load_u8);
        owners.filter(|&owner| owner != 0).map(|owner| u16::from(owner) - 1)
    }

    fn find(&self, from: usize, granules: usize) -> Option<usize> {
        let mut run = 0;
        for (granule, owner) in self.owners.iter().enumerate().skip(from) {
            run = if sync::load_u8(owner) == 0 { run + 1 } else { 0 };
            if run == granules {
                return Some(granule + 1 - run);
            }
        }
        None
    }

    fn mark(&self, first: usize, granules: usize, owner: u8) {
        for at in &self.owners[first..first + granules] {
            sync::store_u8(at, owner);
            steps::done(Step::Marked);
        }
    }
}
