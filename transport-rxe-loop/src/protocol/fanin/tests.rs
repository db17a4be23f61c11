//! Tests of what the models do not cover: sizes, ring switches, and corrupted words.

use cq_core::queue::raw::{Slot, Tag};
use cq_core::queue::{Control, End};
use cq_core::transport::PollCq;
use cq_core::wc::WcStatus;
use cq_testing::raw_queue;

use super::*;
use crate::protocol::number::Position;
use crate::protocol::tag;

/// The tag of the send before a position.
fn of_send(end: u64) -> u32 {
    tag::of_send(Position::new(end))
}

/// The tag of the receive before a position.
fn of_recv(end: u64) -> u32 {
    tag::of_recv(Position::new(end))
}

struct Memory {
    control: Control,
    slots: Vec<Slot>,
    tags: Vec<Tag>,
}

impl Memory {
    fn new(storage: usize) -> Self {
        Self {
            control: Control::new(),
            slots: (0..storage).map(|_| Slot::new()).collect(),
            tags: (0..storage).map(|_| Tag::new()).collect(),
        }
    }

    fn queue(&self) -> RawQueue<'_> {
        raw_queue(&self.control, &self.slots, &self.tags, self.slots.len() as u32).unwrap()
    }
}

fn entry(qp: u32, tag: u32) -> Tagged {
    Tagged { wc: Wc::new(u64::from(tag), WcStatus::SUCCESS, qp), tag, solicited: false }
}

fn push(fanin: &Fanin, memory: &Memory, entries: &[Tagged]) {
    let mut queue = memory.queue();
    let mut producer = fanin.producer(&mut queue, NoChannel);
    fanin.push_all(&mut producer, entries, |_| ()).unwrap();
}

fn tags(consumer: &mut RawConsumer<'_>) -> Vec<u32> {
    let mut tags = Vec::new();
    consumer.poll_with(&mut [Wc::default(); 64], |_, tag| tags.push(tag)).unwrap();
    tags
}

#[test]
fn a_location_is_one_word() {
    for location in [
        Location::default(),
        Location { offset: u32::MAX, log2: 24, promised: 1 << 24, is_exact: true },
        Location { offset: 1 << 12, log2: 0, promised: 1, is_exact: false },
    ] {
        let fanin = Fanin::default();
        fanin.begin(location);
        assert_eq!(fanin.location(), location);
        fanin.end();
        assert_eq!(fanin.location(), Location::default());
    }
}

#[test]
fn c08_more_than_the_ring_stores_are_settled_and_kept_in_between() {
    let (fanin, memory) = (Fanin::default(), Memory::new(4));
    let mut consumer = memory.queue().into_consumer(0, NoChannel);
    let mut queue = memory.queue();
    let mut producer = fanin.producer(&mut queue, NoChannel);
    let entries: Vec<_> = (1..=10).map(|end| entry(1, of_recv(end))).collect();
    let (mut settled, mut kept, mut polled) = (Vec::new(), Vec::new(), Vec::new());
    let pushed = fanin.push_all(&mut producer, &entries, |part| {
        settled.push(part.iter().map(|entry| entry.tag).collect::<Vec<_>>());
        kept.push(fanin.unpolled(&consumer));
        polled.extend(tags(&mut consumer));
    });
    assert_eq!(pushed, Ok(()));
    assert_eq!(settled, [&[1, 2, 3, 4][..], &[5, 6, 7, 8], &[9, 10]]);
    assert_eq!(kept, [0, 0, 0], "what was polled before the part is all that was kept");
    assert_eq!(polled, (1..=10).collect::<Vec<_>>());
    assert_eq!(fanin.unpolled(&consumer), 0);
}

#[test]
fn o03_what_is_dropped_is_settled_all_the_same() {
    let (fanin, memory) = (Fanin::default(), Memory::new(2));
    let mut queue = memory.queue();
    let mut producer = fanin.producer(&mut queue, NoChannel);
    let entries: Vec<_> = (1..=5).map(|end| entry(1, of_recv(end))).collect();
    let mut last = 0;
    let mut settle = |part: &[Tagged]| last = part.last().unwrap().tag;
    let pushed = fanin.push_all(&mut producer, &entries, &mut settle);
    assert_eq!(pushed, Err(DroppedError { lost: 2, end: End::Overrun { dropped: 2 } }));
    let mut queue = memory.queue();
    let again = fanin.push(&mut queue, NoChannel, &entry(1, of_recv(6)), &mut settle);
    assert_eq!((again, last), (Err(DroppedError { lost: 1, end: End::Overrun { dropped: 4 } }), 6));
}

#[test]
fn q12_tags_and_order_move_with_what_waits() {
    let (fanin, old, new) = (Fanin::default(), Memory::new(128), Memory::new(64));
    fanin.begin(Location { offset: 1, log2: 7, promised: 128, is_exact: false });
    let mut consumer = old.queue().into_consumer(0, NoChannel);
    let all: Vec<_> = (1..=50).map(|end| entry(1, of_send(end))).collect();
    push(&fanin, &old, &all);
    consumer.poll_into(&mut [Wc::default(); 3]).unwrap();
    assert_eq!(fanin.unpolled(&consumer), 47);

    let location = Location { offset: 2, log2: 6, promised: 64, is_exact: false };
    let mut consumer =
        fanin.move_to((&mut consumer, &old.queue()), (location, new.queue()), NoChannel);
    assert_eq!(fanin.location(), location);
    assert_eq!(fanin.unpolled(&consumer), 47);
    push(&fanin, &new, &[entry(1, of_send(51))]);
    assert_eq!(tags(&mut consumer), (4..=51).map(of_send).collect::<Vec<_>>());
    let round: Vec<_> = (52..=115).map(|end| entry(1, of_send(end))).collect();
    push(&fanin, &new, &round);
    assert_eq!(tags(&mut consumer).len(), 64, "as many as it holds");
}

#[test]
fn x04_a_corrupted_tail_does_not_move() {
    let (fanin, old, new) = (Fanin::default(), Memory::new(8), Memory::new(16));
    let mut consumer = old.queue().into_consumer(0, NoChannel);
    push(&fanin, &old, &[entry(1, of_recv(1)), entry(1, of_recv(2))]);
    sync::store(&fanin.tail[0], 5);
    let to = (Location::default(), new.queue());
    let mut consumer = fanin.move_to((&mut consumer, &old.queue()), to, NoChannel);
    assert_eq!(fanin.unpolled(&consumer), 2, "as many as could be read");
    push(&fanin, &new, &[entry(1, of_recv(3))]);
    assert_eq!(tags(&mut consumer), [1, 2, 3].map(of_recv));
}

#[test]
fn x04_corrupted_words_are_harmless() {
    for word in [0, 1, 1 << 40, u64::MAX] {
        let (fanin, memory, new) = (Fanin::default(), Memory::new(4), Memory::new(4));
        fanin.tail.iter().for_each(|tail| sync::store(tail, word));
        let mut settled = 0;
        let _state = fanin.repair(&memory.queue(), |_, _| settled += 1);
        assert!(settled <= 4);
        let mut queue = memory.queue();
        let _lost_or_overrun = fanin.push(&mut queue, NoChannel, &entry(1, of_recv(1)), |_| ());
        let mut consumer = memory.queue().into_consumer(0, NoChannel);
        let to = (Location::default(), new.queue());
        let _consumer = fanin.move_to((&mut consumer, &memory.queue()), to, NoChannel);
    }
}
