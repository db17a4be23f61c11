use super::*;
use crate::inside::prelude::*;

fn allocate(device: &'static Device, bytes: usize) -> Extent {
    Extent::allocate(device.shm, bytes).unwrap()
}

#[test]
fn x03_what_is_taken_has_its_owner_until_it_is_given_back() {
    let (_context, device) = OpenOptions::new().alone();
    let taken = || {
        let me = device.shm.attachment();
        device.shm.arena.holders().filter(|&place| place == me).count()
    };
    let before = taken();
    let (mut left, other) = (allocate(device, 3 * GRANULE), allocate(device, GRANULE + 1));
    assert_eq!(taken(), before + 5);
    let at = other.offset();
    assert!(left.offset() > 0 && at as usize >= left.offset() as usize + 3 * GRANULE);
    drop(other);
    assert_eq!(allocate(device, GRANULE).offset(), at, "it is taken again");
    assert_eq!(taken(), before + 3);
    left.leave();
    drop(left);
    assert_eq!(taken(), before + 3, "it was left");
}

#[test]
fn what_is_taken_again_is_zeroed() {
    let (_context, device) = OpenOptions::new().alone();
    let arena = &device.shm.arena;
    let take = || {
        sync::store(arena.next, 0);
        allocate(device, GRANULE)
    };
    let words = |extent: &Extent| {
        let at = extent.offset() as usize;
        device.shm.memory().slice::<AtomicU64>(at, GRANULE / size_of::<u64>()).unwrap()
    };
    let first = take();
    let at = first.offset();
    words(&first).iter().for_each(|word| sync::store(word, u64::MAX));
    drop(first);
    let again = take();
    assert_eq!(again.offset(), at);
    assert!(words(&again).iter().all(|word| sync::load(word) == 0));
}

/// The highest granule that rounds of allocations touch, each of which frees everything that it has taken.
fn highest_of(rounds: u32, mut round: impl FnMut(u32) -> u32) -> u32 {
    (0..rounds).map(&mut round).max().unwrap() / GRANULE as u32
}

#[test]
fn what_was_freed_is_taken_before_memory_that_was_never_used() {
    let (_context, device) = OpenOptions::new().alone();
    let round = |nth| {
        let [first, second, third] = [1, 7, 2].map(|count| allocate(device, count * GRANULE));
        let highest = third.offset();
        // In any order.
        if nth % 2 == 0 {
            drop([first, third, second])
        } else {
            drop([second, first, third])
        }
        highest
    };
    let start = highest_of(1, round);
    assert!(highest_of(1000, round) <= start + 16, "from {start} on");
    // Clients that come while others stay, and of which two are there at a time.
    let _stays = allocate(device, 3 * GRANULE);
    let mut last = allocate(device, 5 * GRANULE);
    let overlapping = |_| {
        last = allocate(device, 5 * GRANULE);
        last.offset()
    };
    assert!(highest_of(1000, overlapping) <= start + 32, "from {start} on");
}

#[test]
fn x03_what_a_dead_process_had_is_taken_before_memory_that_was_never_used() {
    let (_context, device) = OpenOptions::new().alone();
    let arena = &device.shm.arena;
    let next = || sync::load(arena.next) as usize;
    let lowest = next();
    assert_eq!(arena.granules.take(lowest, 3, ANOTHER.get() as u8 + 1), Some(lowest));
    sync::store(arena.next, lowest as u32 + 3);
    arena.recover(ANOTHER);
    assert_eq!(next(), lowest);
}

#[test]
fn what_is_freed_while_another_process_takes_is_found_again() {
    static NEXT: AtomicU32 = AtomicU32::new(5);
    static OWNERS: [AtomicU8; 8] = [const { AtomicU8::new(0) }; 8];
    let arena = Arena::new(&NEXT, &OWNERS, GRANULE);
    let seen = sync::load(&NEXT);
    arena.give_back(2, 1);
    arena.continue_at(seen, 6);
    assert_eq!(sync::load(&NEXT), 2);
    arena.give_back(4, 1);
    assert_eq!(sync::load(&NEXT), 2, "the lowest");
}

#[test]
fn x03_what_a_dead_process_had_is_free_and_nothing_else() {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    static OWNERS: [AtomicU8; 8] = [const { AtomicU8::new(0) }; 8];
    let arena = Arena::new(&NEXT, &OWNERS, GRANULE);
    for (first, place) in [(1, 40), (2, 41), (4, 42), (6, 41)] {
        assert_eq!(arena.granules.take(first, 1, place + 1), Some(first));
    }
    arena.recover(AttachmentId::new(41));
    assert!(arena.holders().eq([40, 42].map(AttachmentId::new)));
}
