//! Memory for rings and queues: [granules](crate::protocol::arena), each with its owner. First fit from where the last
//! one was found, under one lock.

use crate::error::CreateError;
use crate::fabric::Fabric;
use crate::lock::Stuck;
use crate::protocol::arena::Granules;
use crate::sweep;
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
        self.fabric.tables().arena.granules.give_back(self.first, self.granules);
    }
}

/// The first of so many granules, if there are so many; or somebody who lives keeps everybody out.
fn take(fabric: &'static Fabric, granules: usize) -> Result<Option<usize>, Stuck> {
    let arena = &fabric.tables().arena;
    // What a dead holder had marked is its own: whoever sweeps up after it gives it back.
    let _guard = fabric.lock(&fabric.tables().common.arena, || {})?;
    let hint = (sync::load(arena.next) as usize).clamp(arena.first, arena.granules.len());
    let from = |at| arena.granules.take(at, granules, fabric.place() as u8 + 1);
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
    pub fn sweep(&self, place: u16) {
        self.granules.sweep(place as u8 + 1);
    }

    /// At which place the process is that has each granule that is taken.
    #[cfg(test)]
    pub fn holders(&self) -> impl Iterator<Item = u16> {
        self.granules.owners().map(|owner| u16::from(owner) - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::open::OpenOptions;
    use crate::protocol::lock::Owner;

    /// A place where nobody lives.
    const PLACE: u16 = 38;

    fn taken(fabric: &'static Fabric) -> usize {
        let mut holders: Vec<_> = fabric.tables().arena.holders().collect();
        holders.retain(|&place| place == fabric.place());
        holders.len()
    }

    #[test]
    fn x03_what_is_taken_has_its_owner_until_it_is_given_back() {
        let (_context, fabric) = OpenOptions::new().alone();
        let before = taken(fabric);
        let mut left = Extent::allocate(fabric, 3 * GRANULE).unwrap();
        let other = Extent::allocate(fabric, GRANULE + 1).unwrap();
        assert_eq!(taken(fabric), before + 5);
        assert!(other.offset() as usize >= left.offset() as usize + 3 * GRANULE);
        drop(other);
        assert_eq!(taken(fabric), before + 3);
        left.leave();
        drop(left);
        assert_eq!(taken(fabric), before + 3, "it was left");
    }

    #[test]
    fn x03_who_takes_memory_inherits_the_lock_of_a_dead_one() {
        let (_context, fabric) = OpenOptions::new().alone();
        let lock = &fabric.tables().common.arena;
        assert!(lock.try_enter(Owner::new(PLACE, 1)));
        let _extent = Extent::allocate(fabric, GRANULE).unwrap();
        assert_eq!(lock.holder(), None);
    }

    #[test]
    fn what_was_given_back_is_left_alone_while_there_is_other_memory() {
        let (_context, fabric) = OpenOptions::new().alone();
        let mut last = 0;
        for _ in 0..3 {
            let extent = Extent::allocate(fabric, GRANULE).unwrap();
            assert!(extent.offset() > last);
            last = extent.offset();
        }
    }

    #[test]
    fn what_is_taken_again_is_zeroed() {
        let (_context, fabric) = OpenOptions::new().alone();
        let arena = &fabric.tables().arena;
        let take = || {
            sync::store(arena.next, 0);
            Extent::allocate(fabric, GRANULE).unwrap()
        };
        let words = |extent: &Extent| {
            let at = extent.offset() as usize;
            fabric.memory().slice::<AtomicU64>(at, GRANULE / size_of::<u64>()).unwrap()
        };
        let first = take();
        let at = first.offset();
        words(&first).iter().for_each(|word| sync::store(word, u64::MAX));
        drop(first);
        let again = take();
        assert_eq!(again.offset(), at);
        assert!(words(&again).iter().all(|word| sync::load(word) == 0));
    }

    #[test]
    fn x03_what_a_dead_process_had_is_free_and_nothing_else() {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        static OWNERS: [AtomicU8; 8] = [const { AtomicU8::new(0) }; 8];
        let arena = Arena::new(&NEXT, &OWNERS, GRANULE);
        for (first, place) in [(1, 40), (2, 41), (4, 42), (6, 41)] {
            assert_eq!(arena.granules.take(first, 1, place + 1), Some(first));
        }
        arena.sweep(41);
        assert!(arena.holders().eq([40, 42]));
    }
}
