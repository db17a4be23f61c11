//! Overrun, storage and positions, one thread (O1, O3, P6).

use cq_core::queue::mpsc::{HeapCq, SoftCq};
use cq_core::queue::{Position, TryPushError};
use cq_core::testing::shared_queue_at;
use cq_core::transport::{Arm, Notify, PollCq, PollError};
use cq_core::wc::Wc;

use super::super::{Bell, KEY, drain, send};
use super::{dropped, wraps};

#[test]
fn o01_capacity_unpolled_is_no_overrun_and_o03_one_more_is_whoever_pushes() {
    let mut storage = SoftCq::<4>::new();
    let (mut one, mut consumer) = storage.split();
    let mut other = one.clone();
    assert_eq!(consumer.capacity(), 4);
    for wr_id in [0, 2] {
        one.push(&send(wr_id)).unwrap();
        other.push(&send(wr_id + 1)).unwrap();
    }
    assert_eq!(one.push(&send(4)), dropped(1, 1));
    assert_eq!(other.push(&send(5)), dropped(1, 2));
    assert_eq!(other.try_push(&send(5)), Err(TryPushError::Ended));
    assert_eq!(drain(&mut consumer), Ok(vec![0, 1, 2, 3]));
    assert_eq!(one.push(&send(6)), dropped(1, 3), "for ever, though there is room now");
    for _ in 0..3 {
        assert_eq!(drain(&mut consumer), Err(PollError::Overrun { dropped: Some(3) }));
        assert_eq!(consumer.poll(&mut []), Ok(0), "P6");
    }
    assert_eq!(one.clone().push_batch(&[7, 8].map(send)), dropped(2, 5));
}

#[test]
fn o01_slack_never_hastens_the_overrun() {
    for promised in 1..=16_u32 {
        let (producer, mut consumer) = HeapCq::new(promised).unwrap().split();
        let slots = producer.free_slots();
        let mut producers = [producer.clone(), producer];
        for round in 0..50_u32 {
            for nth in 0..promised {
                producers[(round + nth) as usize % 2].push(&send(nth.into())).unwrap();
            }
            let mut out = vec![Wc::default(); promised as usize];
            assert_eq!(consumer.poll(&mut out), Ok(promised as usize), "round {round}");
        }
        let stored = (0..99).take_while(|nth| producers[0].push(&send(*nth)).is_ok()).count();
        assert!((promised as usize..=slots).contains(&stored), "{promised}, {stored} stored");
        assert_eq!(producers[1].push(&send(0)), dropped(1, 2));
    }
}

#[test]
fn o03_what_a_batch_drops_is_counted_by_whichever_producer_pushes() {
    let mut storage = SoftCq::<4>::new();
    let (mut one, mut consumer) = storage.split();
    let mut other = one.clone();
    one.push_batch(&[0, 1, 2].map(send)).unwrap();
    assert_eq!(other.push_batch(&[3, 4, 5].map(send)), dropped(2, 2));
    assert_eq!(one.push_batch(&[6, 7, 8].map(send)), dropped(3, 5));
    assert_eq!(other.push(&send(9)), dropped(1, 6));
    assert_eq!(drain(&mut consumer), Ok(vec![0, 1, 2, 3]));
    assert_eq!(drain(&mut consumer), Err(PollError::Overrun { dropped: Some(6) }));
}

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

#[test]
fn s01_a_slot_that_one_producer_does_not_get_another_gets() {
    let mut storage = SoftCq::<2>::new();
    let (mut one, mut consumer) = storage.split();
    let mut other = one.clone();
    assert_eq!(one.try_push_batch(&[0, 1, 2].map(send)), Ok(2));
    assert_eq!(other.try_push(&send(2)), Err(TryPushError::Full));
    assert_eq!((one.len(), other.free_slots()), (2, 0));
    assert_eq!(consumer.poll(&mut [Wc::default()]), Ok(1));
    assert_eq!((one.len(), other.free_slots()), (1, 1));
    other.try_push(&send(2)).unwrap();
    assert_eq!(one.try_push(&send(3)), Err(TryPushError::Full));
    assert_eq!(drain(&mut consumer), Ok(vec![1, 2]));
    one.push(&send(3)).unwrap();
    assert_eq!(drain(&mut consumer), Ok(vec![3]), "it never overran");
}

#[test]
fn splitting_again_begins_at_the_first_slot_wherever_the_last_sides_stopped() {
    for polled in 0..=3 {
        let (mut storage, bell) = (SoftCq::<2>::new(), Bell::default());
        let (mut producer, mut consumer) = storage.split_with(KEY, &bell);
        for wr_id in 0..polled {
            producer.push(&send(wr_id)).unwrap();
            assert_eq!(drain(&mut consumer), Ok(vec![wr_id]));
        }
        producer.push(&send(9)).unwrap();
        let _ = consumer.arm(Notify::Next).unwrap();
        // One is never dropped; the new sides don't count it.
        std::mem::forget(producer.clone());
        drop((producer, consumer));
        assert_eq!(bell.take(), 0);
        let (mut producer, mut consumer) = storage.split_with(KEY, &bell);
        assert_eq!(drain(&mut consumer), Ok(vec![]), "what was not polled is gone");
        producer.push_batch(&[10, 11].map(send)).unwrap();
        assert_eq!(bell.take(), 0, "not armed");
        assert_eq!(drain(&mut consumer), Ok(vec![10, 11]));
        producer.push_batch(&[12, 13].map(send)).unwrap();
        assert_eq!(producer.push(&send(14)), dropped(1, 1));
        drop((producer, consumer));
        let (producer, mut consumer) = storage.split();
        assert_eq!(drain(&mut consumer), Ok(vec![]), "nor has it overrun");
        drop(producer);
        assert_eq!(drain(&mut consumer), Err(PollError::Closed));
    }
}

#[test]
fn a_queue_may_begin_at_any_position_modulo_2_to_the_62() {
    for position in [5, (1 << 62) + 5, u64::MAX, (1 << 62) - 1, 1 << 63] {
        let mut storage = shared_queue_at::<4>(position);
        let (mut producer, mut consumer) = storage.split();
        assert_eq!((producer.len(), producer.free_slots()), (0, 4));
        producer.push_batch(&[0, 1, 2].map(send)).unwrap();
        assert_eq!((producer.len(), producer.free_slots()), (3, 1));
        producer.push(&send(3)).unwrap();
        assert_eq!(producer.try_push(&send(4)), Err(TryPushError::Full));
        assert_eq!(producer.push(&send(4)), dropped(1, 1));
        assert_eq!(drain(&mut consumer), Ok(vec![0, 1, 2, 3]));
        assert!(drain(&mut consumer).is_err());
    }
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
