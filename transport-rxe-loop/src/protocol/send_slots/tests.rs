use super::*;

const CAPACITY: u32 = 4;

/// How many slots are free, of a queue whose next request gets a position.
fn count(free: &FreeSlots, posted: Position) -> u64 {
    (0..).find(|&more| !free.has_one(posted.plus(more), CAPACITY)).unwrap()
}

#[test]
fn q05_slots_come_back_up_to_the_last_completion_that_was_polled() {
    for start in [0, (1 << 31) - 2, u64::MAX - 1] {
        let words: [AtomicU64; CAPACITY as usize] = Default::default();
        let (slots, start) = (SendSlots(&words), Position::new(start));
        let (posted, mut free) = (start.plus(4), FreeSlots::all(start));
        let mut left = |polled| {
            free.look(&slots, posted, polled);
            count(&free, posted)
        };
        (0..4).for_each(|nth| slots.pending(start.plus(nth)));
        assert_eq!(left(u64::MAX >> 1), 0, "nothing has completed");
        slots.completes_at(start, 10);
        slots.unsignaled(start.plus(1));
        assert_eq!(left(10), 0);
        assert_eq!(left(11), 1);
        slots.completes_at(start.plus(2), 11);
        slots.unsignaled(start.plus(3));
        assert_eq!(left(11), 1);
        assert_eq!(left(12), 3, "nothing covers the last one");
    }
}

#[test]
fn q05_slots_are_freed_whatever_was_polled() {
    let words: [AtomicU64; CAPACITY as usize] = Default::default();
    let (slots, start) = (SendSlots(&words), Position::new(u64::MAX));
    let mut free = FreeSlots::all(start);
    (0..4).for_each(|nth| slots.completes_at(start.plus(nth), 10 + nth));
    free.free_up_to(start.plus(2), start.plus(4));
    assert_eq!(count(&free, start.plus(4)), 2);
    free.free_up_to(start.plus(1), start.plus(4));
    assert_eq!(count(&free, start.plus(4)), 2, "none is taken back");
    free.free_up_to(start.plus(5), start.plus(4));
    assert_eq!(count(&free, start.plus(4)), 2, "nothing was posted there");
    free.look(&slots, start.plus(4), 13);
    assert_eq!(count(&free, start.plus(4)), 3);
}

#[test]
fn x04_a_corrupted_position_does_not_keep_the_poster_looking() {
    let words: [AtomicU64; CAPACITY as usize] = Default::default();
    let (slots, mut free) = (SendSlots(&words), FreeSlots::all(Position::new(0)));
    free.look(&slots, Position::new(1 << 62), 1);
    assert_eq!(free.free, Position::new(4));
}
