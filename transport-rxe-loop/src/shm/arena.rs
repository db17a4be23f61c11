//! Memory that can be allocated: [granules](crate::protocol::arena), each with its owner, under one lock.
//!
//! A search begins where the last one ended, or at the lowest granule that was freed since: memory that was used before
//! is used again, and pages that were never touched stay so. Where the search begins is a hint, which processes change
//! without the lock; behind it, the search begins anew at the start.

use cq_verbs::setup::DeviceError;

use super::Shm;
use super::mapping::Shared;
use super::recovery::DeathRecovery;
use crate::conditions::{FORKED, no_memory};
use crate::error::Stuck;
use crate::protocol::arena::Granules;
use crate::protocol::lock::{AttachmentId, AttachmentKey};
use crate::protocol::steps::{self, Step};
use crate::sync::{self, AtomicU8, AtomicU32, AtomicU64};

/// The size of a granule, in bytes.
pub const GRANULE: usize = 256;

/// The granules. There is a byte for each granule of the whole memory, so that a granule's number is its offset: its
/// owner, or 0.
#[derive(Debug)]
pub struct Arena {
    next: &'static AtomicU32,
    granules: Granules<'static>,
    first: usize,
}

/// Memory with an arena.
pub trait InArena<'m> {
    /// The `len` values at an offset that was read from shared memory; `None` if they are not aligned or not all in the
    /// arena.
    fn in_arena<T: Shared>(&self, offset: usize, len: usize) -> Option<&'m [T]>;
}

/// How much of the arena is in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ArenaUse {
    /// Its size, in bytes.
    pub bytes: u64,
    /// Bytes that processes have allocated.
    pub used: u64,
    /// Contiguous free bytes, at most: no larger object can be created.
    pub largest_free: u64,
}

impl ArenaUse {
    /// That of the granules with these owners, from the one at offset `at` on. Calls `each` with the owner of each that is
    /// taken.
    pub(crate) fn of(owners: &[AtomicU8], at: usize, mut each: impl FnMut(AttachmentId)) -> Self {
        let (mut used, mut run, mut longest, mut all) = (0, 0, 0, 0);
        for owner in owners.iter().skip(at.div_ceil(GRANULE)).map(sync::load) {
            all += 1;
            if let Some(owner) = owner.checked_sub(1) {
                used += 1;
                run = 0;
                each(AttachmentId::new(owner.into()));
            } else {
                run += 1;
                longest = longest.max(run);
            }
        }
        let [bytes, used, largest_free] = [all, used, longest].map(|count| count * GRANULE as u64);
        Self { bytes, used, largest_free }
    }
}

/// An allocation, freed when it is dropped.
#[derive(Debug)]
pub struct Extent {
    shm: &'static Shm,
    first: usize,
    granules: usize,
}

impl Extent {
    /// Allocates at least `bytes` bytes, aligned to 256 and zeroed.
    ///
    /// # Errors
    /// There is no such free extent; this is a forked child; or a process is suspended while it allocates.
    pub fn allocate(shm: &'static Shm, bytes: usize) -> Result<Self, DeviceError> {
        if !shm.is_ours() {
            return Err(FORKED);
        }
        let granules = bytes.div_ceil(GRANULE).max(1);
        let full = no_memory(bytes);
        let first = take(shm, granules)?.ok_or(full)?;
        let extent = Self { shm, first, granules };
        let words = granules * GRANULE / size_of::<u64>();
        for word in shm.memory().slice::<AtomicU64>(first * GRANULE, words).ok_or(full)? {
            sync::store(word, 0);
        }
        Ok(extent)
    }

    /// Leaves the memory allocated until the process has ended.
    pub fn leave(&mut self) {
        self.granules = 0;
    }

    /// The offset in the memory.
    pub const fn offset(&self) -> u32 {
        (self.first * GRANULE) as u32
    }
}

impl Drop for Extent {
    fn drop(&mut self) {
        self.shm.arena.give_back(self.first, self.granules);
    }
}

/// Takes `granules` contiguous granules; returns the first, if there are so many.
fn take(shm: &'static Shm, granules: usize) -> Result<Option<usize>, Stuck> {
    let arena = &shm.arena;
    // What a dead holder had marked stays its own: it is freed with the rest that it had.
    let _guard = shm.lock(&shm.own.common.arena, || {}, || {})?;
    let seen = sync::load(arena.next);
    let hint = (seen as usize).clamp(arena.first, arena.granules.len());
    let from = |at| arena.granules.take(at, granules, shm.attachment().get() as u8 + 1);
    let first = from(hint).or_else(|| from(arena.first));
    if let Some(first) = first {
        arena.continue_at(seen, first + granules);
    }
    Ok(first)
}

impl Arena {
    /// The arena of these granules, from offset `at` on.
    pub const fn new(next: &'static AtomicU32, owners: &'static [AtomicU8], at: usize) -> Self {
        Self { next, granules: Granules::new(owners), first: at.div_ceil(GRANULE) }
    }

    /// The offset in the memory.
    pub const fn offset(&self) -> usize {
        self.first * GRANULE
    }

    /// The next search begins at a granule, unless one that was freed since the hint was `seen` has changed it.
    fn continue_at(&self, seen: u32, granule: usize) {
        let _lowered = sync::cas(self.next, seen, granule as u32);
    }

    /// Frees granules of this process.
    fn give_back(&self, first: usize, count: usize) {
        self.granules.give_back(first, count);
        if count > 0 {
            self.search_from(first);
        }
    }

    /// Frees all granules of a dead attachment.
    fn recover(&self, attachment: AttachmentId) {
        if let Some(first) = self.granules.recover(attachment.get() as u8 + 1) {
            self.search_from(first);
        }
    }

    /// A granule was freed: the next search begins there, or before it.
    fn search_from(&self, granule: usize) {
        sync::fetch_update(self.next, |seen| (seen as usize > granule).then_some(granule as u32));
    }

    /// The attachment that has each granule that is taken.
    #[cfg(test)]
    pub fn holders(&self) -> impl Iterator<Item = AttachmentId> {
        self.granules.owners().map(|owner| AttachmentId::new(u16::from(owner) - 1))
    }
}

/// The granules, and the lock under which they are allocated.
impl DeathRecovery for Shm {
    fn inherit(&self, dead: AttachmentKey) {
        let lock = &self.own.common.arena;
        if lock.holder() == Some(dead) {
            drop(self.try_lock(lock));
        }
    }

    fn free(&self, attachment: AttachmentId) {
        self.arena.recover(attachment);
        steps::done(Step::Recovered);
    }
}

#[cfg(test)]
mod tests;
