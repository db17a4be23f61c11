//! High-water marks and positions, one thread (O1, P2).

use cq_core::queue::mpsc::SoftCq;
use cq_core::testing::shared_queue_at;

use super::*;

#[test]
fn the_high_water_is_the_most_that_this_producer_has_found_unpolled() {
    let mut storage = SoftCq::<4>::new();
    let (mut one, mut consumer) = storage.split();
    let mut other = one.clone();
    assert_eq!((one.high_water(), other.high_water()), (0, 0));
    one.push_batch(&[0, 1].map(send)).unwrap();
    other.push(&send(2)).unwrap();
    assert_eq!(one.high_water(), 3, "now");
    consumer.poll(&mut [Wc::default(); 2]).unwrap();
    // It has seen one free slot: it looks, and finds one completion before its own.
    other.push_batch(&[3, 4, 5].map(send)).unwrap();
    consumer.poll(&mut [Wc::default(); 4]).unwrap();
    assert_eq!((one.high_water(), other.high_water()), (3, 1), "a mark does not fall");
    other.push_batch(&[6, 7, 8, 9].map(send)).unwrap();
    assert_eq!(other.try_push(&send(10)), Err(TryPushError::Full));
    consumer.poll(&mut [Wc::default(); 4]).unwrap();
    assert_eq!(other.high_water(), 4, "found when it was full, though nobody asked");
}

fn wraps_at<const N: usize>() {
    for wrap in wraps(N) {
        for before in [1, N as Position + 1] {
            let mut storage = shared_queue_at::<N>(wrap - before);
            let (mut producer, mut consumer) = storage.split();
            let mut out = vec![Wc::default(); N + 1];
            for round in 0..8 {
                let wcs: Vec<_> = (0..N as u64).map(|nth| send(100 * round + nth)).collect();
                producer.push_batch(&wcs).unwrap();
                assert_eq!(producer.free_slots(), 0);
                assert_eq!(consumer.poll(&mut out), Ok(N), "{N} slots, {wrap}");
                assert_eq!(out[..N], wcs);
                assert_eq!(producer.len(), 0);
                assert_eq!(consumer.poll(&mut out), Ok(0), "a false entry");
            }
            assert_eq!(producer.push_batch(&vec![send(0); N + 1]), dropped(1, 1));
            assert_eq!(consumer.poll(&mut out), Ok(N));
            assert!(consumer.poll(&mut out).is_err());
        }
    }
}

#[test]
fn positions_and_generations_wrap_unnoticed() {
    wraps_at::<1>();
    wraps_at::<2>();
    wraps_at::<4>();
    wraps_at::<64>();
}

#[test]
fn debug_output_does_not_grow_with_the_queue() {
    let mut storage = SoftCq::<1024>::default();
    assert!(format!("{:?}", storage.split()).len() < 3000);
}
