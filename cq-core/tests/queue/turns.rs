//! Producers that take turns on one queue, and store at the tail that the last one left (P1, O3, S4).

use cq_core::queue::raw::{RawQueue, Slot};
use cq_core::queue::{Control, NoChannel, Position, Tail};
use cq_core::testing::raw_queue;
use cq_core::transport::PollCq;
use cq_core::wc::Wc;

use super::{drain, send};

const SLOTS: usize = 4;

/// The memory of a queue without tags.
struct Memory {
    control: Control,
    slots: [Slot; SLOTS],
}

impl Memory {
    fn new() -> Self {
        Self { control: Control::new(), slots: [const { Slot::new() }; SLOTS] }
    }

    fn queue(&self) -> RawQueue<'_> {
        raw_queue(&self.control, &self.slots, &[], SLOTS as u32).unwrap()
    }
}

/// Pushes by a producer, which looks for free slots.
fn push(queue: &mut RawQueue<'_>, tail: Tail, wr_id: u64) -> Tail {
    let mut producer = queue.producer(tail, NoChannel);
    producer.push(&send(wr_id)).unwrap();
    producer.tail()
}

#[test]
fn p01_what_is_stored_at_a_tail_that_knows_of_room_follows_what_was_pushed() {
    let memory = Memory::new();
    let (mut queue, mut consumer) = (memory.queue(), memory.queue().into_consumer(0, NoChannel));
    assert_eq!(queue.store_at(Tail::at(0), &send(0)), None, "it knows of none");
    let mut tail = push(&mut queue, Tail::at(0), 0);
    for wr_id in 1..SLOTS as u64 {
        tail = queue.store_at(tail, &send(wr_id)).unwrap();
        assert_eq!(tail.position(), wr_id as Position + 1);
    }
    assert_eq!(queue.store_at(tail, &send(9)), None, "it is full");
    assert_eq!(drain(&mut consumer), Ok(vec![0, 1, 2, 3]));
    assert_eq!(queue.store_at(tail, &send(9)), None, "it knows of no more");
    let tail = push(&mut queue, tail, 4);
    assert!(queue.store_at(tail, &send(5)).is_some());
    assert_eq!(drain(&mut consumer), Ok(vec![4, 5]));
}

#[test]
fn s04_nothing_is_stored_in_a_queue_that_has_failed_whatever_its_tail_knows() {
    let memory = Memory::new();
    let (mut queue, mut consumer) = (memory.queue(), memory.queue().into_consumer(0, NoChannel));
    let tail = push(&mut queue, Tail::at(0), 0);
    consumer.fail();
    assert_eq!(queue.store_at(tail, &send(1)), None);
    assert_eq!(consumer.poll(&mut [Wc::default(); 4]), Ok(1));
}

#[test]
fn p01_the_slot_of_a_position_is_where_its_completion_is() {
    let memory = Memory::new();
    let queue = memory.queue();
    for position in [0, 1, 3, 4, 7, Position::MAX] {
        let slot = &memory.slots[position as usize % SLOTS];
        assert!(std::ptr::eq(queue.slot(position), slot), "{position}");
    }
}
