//! Tags that a raw queue keeps beside its completions, and how polling hands them out (P1, P2, O7).

use std::panic::{AssertUnwindSafe, catch_unwind};

use cq_core::queue::{Dropped, Entry, Position, Tail};
use cq_core::transport::{PollCq, PollError};
use cq_core::wc::Wc;

use super::{Parts, drain, entry, recv, send};

fn tagged(wr_id: u64, tag: u32) -> Entry {
    Entry { wc: send(wr_id), tag, solicited: false }
}

#[test]
fn tags_come_back_with_their_entries_where_there_are_tags() {
    for (parts, is_tagged) in [(Parts::tagged(2), true), (Parts::new(2), false)] {
        // The second queue goes on in the slots that the first one has used.
        for start in [0, 100] {
            let (mut producer, mut consumer) = parts.sides(start);
            for number in 0..50_u32 {
                producer.push(&tagged(number.into(), number ^ 0xF0F0)).unwrap();
                let (mut got, mut out) = (Vec::new(), [Wc::default(); 2]);
                let count = consumer.poll_with(&mut out, |wc, tag| got.push((wc.wr_id(), tag)));
                assert_eq!(count, Ok(1));
                let expected = if is_tagged { number ^ 0xF0F0 } else { 0 };
                assert_eq!(got, [(number.into(), expected)]);
            }
        }
    }
}

#[test]
fn tags_keep_to_their_entries_in_batches_of_any_length() {
    const STORAGE: usize = 128;
    for batched in [false, true] {
        let parts = Parts::tagged(STORAGE);
        let (mut producer, mut consumer) = parts.sides(Position::MAX - 50);
        let (mut pushed, mut polled) = (0, 0);
        for length in [1, 2, 31, 32, 33, 63, 64, 65, 100, 128] {
            let entries: Vec<_> =
                (pushed..pushed + length).map(|nth| tagged(nth, nth as u32 ^ 0xf0f0)).collect();
            match batched {
                true => producer.push_batch(&entries).unwrap(),
                false => entries.iter().for_each(|entry| producer.push(entry).unwrap()),
            }
            pushed += length;
            let mut out = vec![Wc::default(); length as usize];
            let count = consumer.poll_with(&mut out, |wc, tag| {
                assert_eq!((wc.wr_id(), tag), (polled, polled as u32 ^ 0xf0f0));
                polled += 1;
            });
            assert_eq!((count, polled), (Ok(length as usize), pushed));
            assert_eq!(out.last().map(Wc::wr_id), Some(pushed - 1));
        }
    }
}

#[test]
fn a_plain_completion_takes_away_the_tag_that_its_slot_had() {
    let parts = Parts::tagged(4);
    let (mut producer, mut consumer) = parts.sides(0);
    for round in 0..3 {
        producer.push_batch(&[0, 1, 2, 3].map(entry)).unwrap();
        assert_eq!(drain(&mut consumer).unwrap().len(), 4);
        producer.push(&recv(0)).unwrap();
        producer.push_batch(&[1, 2].map(recv)).unwrap();
        producer.try_push(&recv(3)).unwrap();
        let mut tags = Vec::new();
        consumer.poll_with(&mut [Wc::default(); 4], |_, tag| tags.push(tag)).unwrap();
        assert_eq!(tags, [0; 4], "round {round}");
    }
}

#[test]
fn o03_tags_are_handed_out_before_the_overrun_is_reported() {
    let parts = Parts::tagged(4);
    let (mut producer, mut consumer) = parts.sides(0);
    for number in 0..4 {
        let entry = Entry { wc: send(number), tag: number as u32 + 10, solicited: false };
        producer.push(&entry).unwrap();
    }
    assert_eq!(producer.push(&send(4)), Err(Dropped { lost: 1, total: 1 }));
    for (most, expected) in [(1, &[(0, 10)][..]), (4, &[(1, 11), (2, 12), (3, 13)])] {
        let mut got = Vec::new();
        let mut out = vec![Wc::default(); most];
        let count = consumer.poll_with(&mut out, |wc, tag| got.push((wc.wr_id(), tag)));
        assert_eq!((count, &got[..]), (Ok(expected.len()), expected));
    }
    let error = Err(PollError::Overrun { dropped: Some(1) });
    for _ in 0..2 {
        let nothing = |_: &Wc, _| panic!("empty");
        assert_eq!(consumer.poll_with(&mut [Wc::default()], nothing), error);
        assert_eq!(consumer.poll_with(&mut [], nothing), Ok(0), "P6");
    }
}

#[test]
fn p03_nothing_is_handed_out_of_an_empty_queue() {
    let parts = Parts::tagged(4);
    let mut consumer = parts.consumer(0);
    for out in [&mut [][..], &mut [Wc::default()], &mut [Wc::default(); 3]] {
        assert_eq!(consumer.poll_with(out, |_, _| panic!("there is nothing")), Ok(0));
    }
}

#[test]
fn p01_what_is_pushed_while_handing_out_leaves_no_gap() {
    for before in [1, 31, 32, 33, 64, 65] {
        let parts = Parts::new(256);
        let (mut producer, mut consumer) = parts.sides(256 * before as Position);
        (0..before).for_each(|wr_id| producer.push(&send(wr_id)).unwrap());
        let (mut out, mut pushed, mut polled) = (vec![Wc::default(); 100], before, 0);
        while polled < 200 {
            let count = consumer.poll_with(&mut out, |_, _| {
                producer.push(&send(pushed)).unwrap();
                pushed += 1;
            });
            for wc in &out[..count.unwrap()] {
                assert_eq!(wc.wr_id(), polled, "{before} before");
                polled += 1;
            }
        }
    }
}

#[test]
fn o07_what_is_handed_out_can_be_replaced_at_once_in_a_full_queue() {
    for storage in [1, 2, 32, 64, 128] {
        let parts = Parts::tagged(storage);
        let (mut producer, mut consumer) = parts.sides(0);
        (0..storage as u64).for_each(|wr_id| producer.push(&send(wr_id)).unwrap());
        let (mut out, mut pushed) = (vec![Wc::default(); storage], storage as u64);
        for _ in 0..5 {
            let count = consumer.poll_with(&mut out, |_, _| {
                producer.push(&send(pushed)).expect("a completion gave its slot back");
                pushed += 1;
            });
            assert!(count.unwrap() > 0);
        }
    }
}

#[test]
fn p02_a_panic_while_handing_out_delivers_nothing_twice() {
    let parts = Parts::new(4);
    let (mut producer, mut consumer) = parts.sides(0);
    (0..3).for_each(|wr_id| producer.push(&send(wr_id)).unwrap());
    let mut out = [Wc::default(); 2];
    let poll = AssertUnwindSafe(|| consumer.poll_with(&mut out, |_, _| panic!("as it should")));
    assert!(catch_unwind(poll).is_err());
    assert_eq!(consumer.position(), 2);
    assert_eq!(drain(&mut consumer), Ok(vec![2]));
    assert_eq!(consumer.poll(&mut out), Ok(0));
    let mut next = parts.producer(Tail::at(3));
    assert_eq!(next.try_push_batch(&[send(3); 5]), Ok(4), "all was given back");
}
