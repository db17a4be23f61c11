//! Moving to other storage (Q12).

use cq_core::queue::mpsc::{HeapCq, Ring, SoftCq, Spare};

use super::*;

#[test]
fn the_ring_of_a_queue_that_is_gone_is_no_other_queue_s() {
    for _ in 0..many(100) {
        let (producer, mut consumer) = HeapCq::new(8).unwrap().split();
        let stale = consumer.resize(Spare::new(4).unwrap()).unwrap();
        drop((producer, consumer));
        // Often at the address of the one before.
        let (mut producer, _consumer) = HeapCq::new(8).unwrap().split();
        assert!(catch_unwind(AssertUnwindSafe(|| producer.follow(&stale))).is_err());
    }
}

#[test]
fn a_producer_does_not_follow_another_queue() {
    let (mut one, mut other, mut ring) = (SoftCq::<2>::new(), SoftCq::<2>::new(), Ring::<2>::new());
    let (mut producer, _consumer) = one.split();
    let (_producer, mut consumer) = other.split();
    let foreign = consumer.resize(ring.spare()).unwrap();
    assert!(catch_unwind(AssertUnwindSafe(|| producer.follow(&foreign))).is_err());
    assert_eq!(producer.push(&send(0)), Ok(()), "it stays where it was");
}

#[test]
fn a_new_ring_that_outlives_its_queue_does_not_look_at_it() {
    let mut ring = Ring::<2>::new();
    let (producer, mut consumer) = HeapCq::new(2).unwrap().split();
    let new = consumer.resize(ring.spare()).unwrap();
    drop((producer, consumer));
    let text = format!("{new:?}");
    assert!(!text.contains("Alerts"), "that memory is gone: {text}");
}
