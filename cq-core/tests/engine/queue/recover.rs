//! What a producer finds that goes on from a tail that cannot be right, or behind a gap (S6, X4).

use super::*;

const STORAGE: usize = 4;

/// Where the next producer goes on, and what it was shown.
fn recover(parts: &Parts, tail: Tail) -> (Tail, Vec<(u64, u32)>) {
    let mut found = Vec::new();
    let tail = parts.queue().recover(tail, |wc, tag| found.push((wc.wr_id(), tag)));
    (tail, found)
}

fn push(parts: &Parts, tail: Tail, numbers: std::ops::Range<u32>) -> Tail {
    let mut producer = parts.producer(tail);
    numbers.for_each(|number| producer.push(&entry(number)).unwrap());
    producer.tail()
}

#[test]
fn x04_a_tail_that_a_stranger_wrote_ends_after_one_round() {
    let parts = Parts::tagged(STORAGE);
    push(&parts, Tail::at(0), 0..4);
    for words in [[0; 2], [Position::MAX; 2], [0, Position::MAX], [2, 5], [Position::MAX, 0]] {
        let (tail, found) = recover(&parts, Tail::from_words(words));
        assert!(found.len() <= STORAGE);
        assert_eq!(tail, Tail::at(tail.position()), "the room is to be looked at");
        assert_eq!(parts.control.state(), State::Running);
    }
}

/// A batch is published from its second on, and then its first: a producer that dies in between leaves a gap.
#[test]
fn s06_what_was_published_behind_a_gap_never_comes() {
    for start in [0, 3, Position::MAX - 1] {
        let (parts, kept) = (Parts::tagged(STORAGE), Tail::at(start));
        let mut consumer = parts.consumer(start);
        push(&parts, Tail::at(start.wrapping_add(1)), 1..3);
        assert_eq!(recover(&parts, kept), (kept, vec![]));
        let tail = push(&parts, kept, 10..11);
        assert_eq!(drain(&mut consumer), Ok(vec![10]));
        push(&parts, tail, 11..15);
        assert_eq!(drain(&mut consumer), Ok(vec![11, 12, 13, 14]));
    }
}
