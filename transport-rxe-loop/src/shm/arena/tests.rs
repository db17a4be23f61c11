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
        device.shm.arena().holders().filter(|&place| place == me).count()
    };
    let before = taken();
    let (mut left, other) = (allocate(device, 3 * GRANULE), allocate(device, GRANULE + 1));
    assert_eq!(taken(), before + 5);
    let at = other.offset();
    assert!(left.offset() > 0 && at as usize >= left.offset() as usize + 3 * GRANULE);
    drop(other);
    assert!(allocate(device, GRANULE).offset() > at, "there is other memory");
    assert_eq!(taken(), before + 3);
    left.leave();
    drop(left);
    assert_eq!(taken(), before + 3, "it was left");
}

#[test]
fn what_is_taken_again_is_zeroed() {
    let (_context, device) = OpenOptions::new().alone();
    let arena = device.shm.arena();
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
