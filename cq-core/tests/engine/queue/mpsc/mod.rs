//! The software completion queue with several producers. Here are high-water marks (O1); `close` has the rules of the end,
//! `resize` Q12, `threads` what many threads at once come to (C10, P2, N6). What holds for one producer
//! too is tested on each kind of queue.

mod close;
mod resize;
mod resize_model;
mod threads;

use cq_core::queue::mpsc::{OverrunError, PushError, SoftCq};

use super::*;

fn dropped<T>(lost: u32, total: u32) -> Result<T, OverrunError> {
    Err(OverrunError::Dropped(DroppedError { lost, end: End::Overrun { dropped: total } }))
}

/// Places where something wraps, for a ring of this many slots: positions of 32 and of 62 bits, generations
/// of 15 and of 16.
fn wraps(storage: usize) -> [Position; 5] {
    let storage = storage as Position;
    [1 << 32, 1 << 62, storage << 15, storage << 16, (storage << 16) + (1 << 62)]
}

#[test]
fn the_high_water_is_the_most_that_this_producer_has_found_unpolled() {
    let mut storage = SoftCq::<4>::new();
    let (mut one, mut consumer) = storage.split();
    let mut other = one.clone();
    assert_eq!((one.measure_high_water(), other.measure_high_water()), (0, 0));
    one.push_batch(&[0, 1].map(send)).unwrap();
    other.push(&send(2)).unwrap();
    assert_eq!(one.measure_high_water(), 3, "now");
    assert!(!consumer.is_empty());
    consumer.poll_into(&mut [Wc::default(); 2]).unwrap();
    // It has seen one free slot: it looks, and finds one completion before its own.
    other.push_batch(&[3, 4, 5].map(send)).unwrap();
    consumer.poll_into(&mut [Wc::default(); 4]).unwrap();
    assert_eq!(
        (one.measure_high_water(), other.measure_high_water()),
        (3, 1),
        "a mark does not fall"
    );
    other.push_batch(&[6, 7, 8, 9].map(send)).unwrap();
    assert_eq!(other.push(&send(10)), Err(PushError::Full));
    consumer.poll_into(&mut [Wc::default(); 4]).unwrap();
    assert!(consumer.is_empty());
    assert_eq!(other.measure_high_water(), 4, "found when it was full, though nobody asked");
}

#[test]
fn debug_output_does_not_grow_with_the_queue() {
    let mut storage = SoftCq::<1024>::default();
    assert!(format!("{:?}", storage.split()).len() < 3000);
}
