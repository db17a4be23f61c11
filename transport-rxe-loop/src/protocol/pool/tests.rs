//! Tests of a pool step by step; the models cover concurrency.

use std::collections::BTreeSet;

use super::*;

const QP: QpNumber = QpNumber::new(0x1001);
const OTHER: QpNumber = QpNumber::new(0x2002);
const ME: AttachmentId = AttachmentId::new(7);
const SLOTS: usize = 3;

struct Memory {
    pool: Pool,
    slots: [AtomicU64; SLOTS],
    order: [AtomicU32; 4],
}

impl Memory {
    /// A pool whose positions begin at `position`.
    fn at(position: u64) -> Self {
        let memory = Self {
            pool: Pool::default(),
            slots: [const { AtomicU64::new(0) }; SLOTS],
            order: [const { AtomicU32::new(u32::MAX) }; 4],
        };
        sync::store(&memory.pool.owner.posted, position);
        sync::store(&memory.pool.takers.taken, position);
        memory
    }

    fn new() -> (&'static Self, Queue<'static>) {
        let memory: &_ = Box::leak(Box::new(Self::at(0)));
        (memory, memory.queue())
    }

    fn queue(&self) -> Queue<'_> {
        Queue::new(&self.pool, &self.slots, &self.order).unwrap()
    }
}

/// Posts a receive; returns its slot, and whether waiting senders are to be run.
fn post(queue: &Queue<'_>, from: u32) -> Option<(u32, bool)> {
    let slot = queue.find_free(from)?;
    queue.put(slot, queue.posted());
    Some((slot, queue.post(queue.posted().next())))
}

fn fill(queue: &Queue<'_>) {
    assert!((0..SLOTS as u32).all(|slot| post(queue, slot) == Some((slot, false))));
}

fn take(queue: &Queue<'_>) -> Taken {
    queue.take(ME, QP).unwrap()
}

#[test]
fn q09_receives_are_taken_in_their_order_and_come_back_in_any() {
    for start in [0, u64::MAX - 1] {
        let memory = Memory::at(start);
        let queue = memory.queue();
        fill(&queue);
        assert_eq!(post(&queue, 0), None, "it is full");
        let taken: Vec<_> = (0..SLOTS).map(|_| take(&queue)).collect();
        assert!(taken.iter().map(|taken| taken.slot).eq(0..SLOTS as u32));
        assert!(queue.front() == queue.posted() && queue.take(ME, QP).is_none());
        for at in [2, 0, 1] {
            queue.settle(taken[at].tag(), QP);
            assert_eq!(post(&queue, 0), Some((taken[at].slot, false)));
        }
        assert!((0..SLOTS).map(|_| take(&queue).slot).eq([2, 0, 1]));
    }
}

#[test]
fn q09_a_completion_settles_its_receive_once() {
    let (_, queue) = Memory::new();
    post(&queue, 0);
    let first = take(&queue);
    queue.settle(first.tag(), OTHER);
    assert!(queue.taken().eq([first]), "it was not taken for that one");
    queue.settle(first.tag(), QP);
    post(&queue, 0);
    queue.settle(first.tag(), QP);
    let again = take(&queue);
    queue.settle(first.tag(), QP);
    assert!(queue.taken().eq([again]), "that is of its last life");
    assert_eq!((again.by(), again.target()), (ME, QP));
}

#[test]
fn q09_what_was_not_used_is_the_next_again() {
    let (_, queue) = Memory::new();
    fill(&queue);
    let (first, second) = (take(&queue), take(&queue));
    assert_eq!(queue.give_back(&second), Some(false));
    assert_eq!(queue.give_back(&first), Some(false));
    assert_eq!(queue.give_back(&first), None, "it is not taken");
    queue.settle(second.tag(), QP);
    assert!((0..SLOTS).map(|_| take(&queue).slot).eq([0, 1, 2]));
}

#[test]
fn q09_the_limit_is_reached_once() {
    let (memory, queue) = Memory::new();
    fill(&queue);
    memory.pool.arm(2);
    assert!(!take(&queue).reached_limit, "two are left");
    assert_eq!((take(&queue).reached_limit, memory.pool.limit()), (true, 0));
    assert_eq!(memory.pool.reporter(), Some(ME));
    memory.pool.reported(AttachmentId::new(ME.get() + 1));
    assert_eq!(memory.pool.reporter(), Some(ME), "that is another one");
    memory.pool.reported(ME);
    assert_eq!(memory.pool.reporter(), None);
    assert!(!take(&queue).reached_limit);
}

#[test]
fn x03_any_number_of_dead_holders_leave_the_rest_to_be_taken() {
    let (memory, queue) = Memory::new();
    fill(&queue);
    for _ in 0..2 * SLOTS {
        let dead = take(&queue);
        sync::store(&memory.pool.takers.taken, 0);
        // As if its completion queue were unusable.
        queue.free(&dead);
        assert!(post(&queue, 0).is_some(), "it is not full");
    }
    assert!((0..SLOTS).all(|_| queue.take(ME, QP).is_some()));
    assert_eq!(queue.take(ME, QP), None);
}

#[test]
fn x04_words_that_cannot_be_lead_nowhere() {
    let (memory, queue) = Memory::new();
    for strange in [5, 1 << 40, u64::MAX] {
        sync::store(&memory.pool.owner.posted, strange);
        assert_eq!(queue.take_or_starve(ME, QP), None, "{strange}");
    }
    sync::store(&memory.pool.owner.posted, 4);
    assert_eq!(queue.take(ME, QP), None, "no such slots");
    for slot in [1, u32::MAX, 0, 1] {
        sync::store(&memory.order[slot as usize % 4], slot);
    }
    for word in [3, 0xff, u64::MAX, POSTED | 0xff00] {
        memory.slots.iter().for_each(|slot| sync::store(slot, word));
        let taken = queue.take(ME, QP);
        assert_eq!(taken.is_some(), word & STATE == POSTED);
        queue.settle(u32::MAX, QP);
        queue.settle(tag::of_pool(0, u16::MAX), QpNumber::new(0xff_ffff));
        assert_eq!(queue.find_free(u32::MAX), None);
    }
    assert!(Queue::new(&memory.pool, &memory.slots, &memory.order[..3]).is_none());
    assert!(Queue::new(&memory.pool, &memory.slots, &memory.order[..2]).is_none());
    assert!(Queue::new(&memory.pool, &[], &memory.order).is_none());
}

#[test]
fn q09_what_was_left_is_looked_for_once_and_is_another_taking() {
    let (memory, queue) = Memory::new();
    let is_left = || sync::load(&memory.pool.takers.left) != 0;
    assert!(post(&queue, 0).is_some());
    let mut tags = BTreeSet::new();
    for _ in 0..3 {
        let taken = take(&queue);
        assert!(!is_left() && tags.insert(taken.tag()));
        assert!(queue.leave(&taken) && is_left());
        assert!(!queue.leave(&taken));
        let taken = take(&queue);
        assert!(!is_left() && tags.insert(taken.tag()));
        assert!(queue.give_back(&taken).is_some());
        let taken = take(&queue);
        assert!(tags.insert(taken.tag()));
        queue.settle(taken.tag(), QP);
        assert!(post(&queue, 0).is_some());
    }
    let elsewhere = Taken { slot: SLOTS as u32, ..take(&queue) };
    assert!(!queue.leave(&elsewhere));
}
