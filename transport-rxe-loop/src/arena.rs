//! Memory for rings and queues: a bitmap of granules, under one lock, first fit.

use crate::error::CreateError;
use crate::fabric::Fabric;
use crate::layout::{ARENA, SIZE};
use crate::lock::Lock;
use crate::sync::{self, AtomicU64};

const GRANULE: usize = 256;
const GRANULES: usize = SIZE / GRANULE;
const BITS: usize = u64::BITS as usize;

/// Which granules are taken. One bit each for the whole memory, so that a bit's number is an offset.
#[repr(C)]
pub struct Arena {
    lock: Lock,
    taken: [AtomicU64; GRANULES / BITS],
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
    /// There is none so long.
    pub fn allocate(fabric: &'static Fabric, bytes: usize) -> Result<Self, CreateError> {
        let granules = bytes.div_ceil(GRANULE);
        let full = CreateError::NoMemory { bytes };
        let first = fabric.tables().arena.take(granules).ok_or(full)?;
        let extent = Self { fabric, first, granules };
        let words = granules * GRANULE / size_of::<u64>();
        for word in fabric.memory().slice::<AtomicU64>(first * GRANULE, words).ok_or(full)? {
            sync::store(word, 0);
        }
        Ok(extent)
    }

    /// Where it starts in the memory.
    pub const fn offset(&self) -> u32 {
        (self.first * GRANULE) as u32
    }
}

impl Drop for Extent {
    fn drop(&mut self) {
        let arena = &self.fabric.tables().arena;
        let _guard = arena.lock.lock();
        arena.mark(self.first, self.granules, false);
    }
}

impl Arena {
    fn take(&self, granules: usize) -> Option<usize> {
        let _guard = self.lock.lock();
        let first = self.find(granules)?;
        self.mark(first, granules, true);
        Some(first)
    }

    fn find(&self, granules: usize) -> Option<usize> {
        let mut run = 0;
        for bit in ARENA / GRANULE..GRANULES {
            run = if self.is_taken(bit) { 0 } else { run + 1 };
            if run == granules.max(1) {
                return Some(bit + 1 - run);
            }
        }
        None
    }

    fn is_taken(&self, bit: usize) -> bool {
        sync::load(&self.taken[bit / BITS]) >> (bit % BITS) & 1 != 0
    }

    fn mark(&self, first: usize, granules: usize, taken: bool) {
        for bit in first..first + granules {
            let word = &self.taken[bit / BITS];
            let mask = 1 << (bit % BITS);
            let seen = sync::load(word);
            sync::store(word, if taken { seen | mask } else { seen & !mask });
        }
    }
}
