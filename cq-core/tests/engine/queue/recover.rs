//! What a producer finds that goes on behind a gap (S6).

use super::*;

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

/// A batch is published from its second on, and then its first: a producer that dies in between leaves a gap.
#[test]
fn s06_what_was_published_behind_a_gap_never_comes() {
    for start in [0, 3, Position::MAX - 1] {
        let (parts, kept) = (Parts::tagged(4), Tail::at(start));
        let mut consumer = parts.consumer(start);
        push(&parts, Tail::at(start.wrapping_add(1)), 1..3);
        assert_eq!(recover(&parts, kept), (kept, vec![]));
        let tail = push(&parts, kept, 10..11);
        assert_eq!(drain(&mut consumer), Ok(vec![10]));
        push(&parts, tail, 11..15);
        assert_eq!(drain(&mut consumer), Ok(vec![11, 12, 13, 14]));
    }
}

#[test]
fn looking_through_a_queue_changes_nothing() {
    let parts = Parts::tagged(4);
    let mut consumer = parts.consumer(0);
    // Behind a gap, as a batch is that is being published.
    push(&parts, Tail::at(1), 1..3);
    let look = |from| {
        let mut found = Vec::new();
        let end = parts.queue().look_through(from, |wc, tag| found.push((wc.wr_id(), tag)));
        (end, found)
    };
    assert_eq!(look(0), (0, vec![]));
    assert_eq!(look(1), (3, vec![(1, 101), (2, 102)]));
    push(&parts, Tail::at(0), 0..1);
    assert_eq!(look(0).0, 3);
    assert_eq!(drain(&mut consumer), Ok(vec![0, 1, 2]));
}
