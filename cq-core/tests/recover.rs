//! A producer that stopped at any instant, and the next one, which goes on (C8, O3). And pushing several.
#![cfg(not(loom))]

use std::cell::Cell;

use cq_core::health::State;
use cq_core::ring::{Position, Slot, Tail};
use cq_core::soft::{Control, Entry, Overrun, Parts, Tag};
use cq_core::sync::Word;
use cq_core::transport::{Arm, CqKey, NoSignal, Notify, Poll, PollError, Signal};
use cq_core::wc::{Wc, WcOpcode, WcStatus};

const KEY: CqKey = CqKey { index: 3, generation: 9 };
const STORAGE: usize = 4;

struct Memory {
    control: Control,
    slots: [Slot; STORAGE],
    tags: [Tag; STORAGE],
}

impl Memory {
    fn new() -> Self {
        Self {
            control: Control::new(),
            slots: [const { Slot::new() }; STORAGE],
            tags: [const { Tag::new() }; STORAGE],
        }
    }

    fn parts(&self) -> Parts<'_> {
        Parts::new(&self.control, &self.slots, &self.tags, STORAGE as u32).unwrap()
    }

    /// Where the next producer goes on, and what it was shown.
    fn recover(&self, tail: Tail) -> (Tail, Vec<(u64, u32)>) {
        let mut found = Vec::new();
        let tail = self.parts().recover(tail, |wc, tag| found.push((wc.wr_id(), tag)));
        (tail, found)
    }
}

fn entry(number: u32) -> Entry {
    let wc = Wc::new(number.into(), WcStatus::SUCCESS, 1).with_opcode(WcOpcode::RECV);
    Entry { wc, tag: number + 100, solicited: false }
}

fn push(parts: Parts<'_>, tail: Tail, numbers: std::ops::Range<u32>) -> Tail {
    let mut producer = parts.producer(tail, KEY, None::<NoSignal>);
    for number in numbers {
        let Entry { wc, tag, solicited } = entry(number);
        producer.push_with(&wc, tag, solicited).unwrap();
    }
    producer.tail()
}

fn drain(consumer: &mut impl Poll) -> Vec<u64> {
    let mut out = [Wc::default(); 16];
    let count = consumer.poll(&mut out).unwrap();
    out[..count].iter().map(Wc::wr_id).collect()
}

#[test]
fn c08_what_was_published_since_the_tail_is_shown_once_and_stepped_over() {
    for start in [0, 3, 1 << 20, Word::MAX - 1] {
        for published in 0..=STORAGE as u32 {
            let (memory, kept) = (Memory::new(), Tail::at(start));
            let mut consumer = memory.parts().consumer(start, KEY, false);
            push(memory.parts(), kept, 0..published);

            let (tail, found) = memory.recover(kept);
            assert_eq!(found, (0..published).map(|n| (n.into(), n + 100)).collect::<Vec<_>>());
            assert_eq!(tail.position(), start.wrapping_add(Position::from(published)));
            assert_eq!(memory.recover(tail), (tail, vec![]), "again, from there");

            assert_eq!(drain(&mut consumer).len(), published as usize);
            push(memory.parts(), tail, 10..14);
            assert_eq!(drain(&mut consumer), [10, 11, 12, 13]);
        }
    }
}

#[test]
fn c08_what_was_polled_already_is_shown_too() {
    let memory = Memory::new();
    let mut consumer = memory.parts().consumer(0, KEY, false);
    let kept = push(memory.parts(), Tail::default(), 0..2);
    push(memory.parts(), kept, 2..4);
    assert_eq!(drain(&mut consumer), [0, 1, 2, 3]);
    let (tail, found) = memory.recover(kept);
    assert_eq!(found, [(2, 102), (3, 103)]);
    push(memory.parts(), tail, 4..8);
    assert_eq!(drain(&mut consumer), [4, 5, 6, 7]);
}

#[test]
fn o03_a_recovered_producer_neither_overruns_early_nor_late() {
    let memory = Memory::new();
    let mut consumer = memory.parts().consumer(0, KEY, false);
    push(memory.parts(), Tail::default(), 0..4);
    let (tail, _) = memory.recover(Tail::default());
    assert_eq!(drain(&mut consumer).len(), 4);
    let mut producer = memory.parts().producer(tail, KEY, None::<NoSignal>);
    for number in 0..4 {
        producer.push(&entry(number).wc).expect("there is room");
    }
    assert_eq!(producer.push(&entry(4).wc), Err(Overrun { dropped: 1 }));
}

#[test]
fn o03_an_overrun_is_for_ever_whatever_tail_was_kept() {
    let memory = Memory::new();
    let mut consumer = memory.parts().consumer(0, KEY, false);
    let kept = push(memory.parts(), Tail::default(), 0..4);
    let mut killed = memory.parts().producer(kept, KEY, None::<NoSignal>);
    killed.push(&entry(4).wc).unwrap_err();
    assert_eq!(drain(&mut consumer).len(), 4);

    let (tail, _) = memory.recover(kept);
    let mut producer = memory.parts().producer(tail, KEY, None::<NoSignal>);
    assert_eq!(producer.push(&entry(5).wc), Err(Overrun { dropped: 2 }));
    let overrun = Err(PollError::Overrun { dropped: Some(2) });
    assert_eq!(consumer.poll(&mut [Wc::default(); 4]), overrun);
}

#[test]
fn x04_a_tail_that_a_stranger_wrote_ends_after_one_round() {
    let memory = Memory::new();
    push(memory.parts(), Tail::default(), 0..4);
    for words in [[0; 3], [Word::MAX; 3], [0, Word::MAX, 1], [2, 5, 7], [Word::MAX, 0, 0]] {
        let (tail, found) = memory.recover(Tail::from_words(words));
        assert!(found.len() <= STORAGE);
        assert_eq!(tail.to_words()[2], 0, "closed is what the health says");
        assert_eq!(memory.control.state(), State::Running);
    }
}

struct Bell(Cell<u32>);

impl Signal for Bell {
    fn raise(&self, cq: CqKey) {
        assert_eq!(cq, KEY);
        self.0.set(self.0.get() + 1);
    }
}

#[test]
fn n01_a_batch_raises_one_event() {
    let (memory, bell) = (Memory::new(), Bell(Cell::new(0)));
    let mut consumer = memory.parts().consumer(0, KEY, true);
    let mut producer = memory.parts().producer(Tail::default(), KEY, Some(&bell));
    let armed = consumer.arm(Notify::Next).unwrap();
    assert_eq!(armed, cq_core::transport::Armed::Armed);
    producer.push_batch(&[0, 1, 2].map(entry)).unwrap();
    assert_eq!(bell.0.get(), 1);
    producer.push_batch(&[]).unwrap();
    let mut tags = Vec::new();
    let count = consumer.poll_with(&mut [Wc::default(); 8], |_, tag| tags.push(tag));
    assert_eq!((count, tags), (Ok(3), vec![100, 101, 102]));
}

#[test]
fn n03_one_solicited_in_a_batch_is_enough() {
    for (solicited, events) in
        [([false; 3], 0), ([true, false, false], 1), ([false, true, true], 1)]
    {
        let (memory, bell) = (Memory::new(), Bell(Cell::new(0)));
        let mut consumer = memory.parts().consumer(0, KEY, true);
        let mut producer = memory.parts().producer(Tail::default(), KEY, Some(&bell));
        let _armed = consumer.arm(Notify::Solicited).unwrap();
        let batch = solicited.map(|solicited| Entry { solicited, ..entry(1) });
        producer.push_batch(&batch).unwrap();
        assert_eq!(bell.0.get(), events, "{solicited:?}");
    }
}

#[test]
fn o03_a_batch_stores_what_fits_and_counts_the_rest() {
    let (memory, bell) = (Memory::new(), Bell(Cell::new(0)));
    let mut consumer = memory.parts().consumer(0, KEY, true);
    let mut producer = memory.parts().producer(Tail::default(), KEY, Some(&bell));
    let _armed = consumer.arm(Notify::Solicited).unwrap();
    let overrun = producer.push_batch(&[0, 1, 2, 3, 4, 5].map(entry));
    assert_eq!(overrun, Err(Overrun { dropped: 1 }), "the first of those dropped");
    assert_eq!(memory.control.state(), State::Overrun { dropped: 2 });
    assert_eq!(bell.0.get(), 1, "O5");
    assert_eq!(drain(&mut consumer), [0, 1, 2, 3]);
}
