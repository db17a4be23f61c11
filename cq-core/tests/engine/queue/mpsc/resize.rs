//! Moving to other storage (Q12).

use cq_core::queue::mpsc::{HeapCq, Ring, SoftCq, Spare};
use cq_core::testing::ring_at;

use super::*;

#[test]
fn the_ring_of_a_queue_that_is_gone_is_no_other_queue_s() {
    for _ in 0..100 {
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

#[test]
fn a_ring_that_was_used_may_be_used_again() {
    let mut ring = Ring::<4>::new();
    for round in 0..5 {
        let mut queue = SoftCq::<2>::new();
        let (mut producer, mut consumer) = queue.split();
        producer.push(&send(0)).unwrap();
        producer.follow(&consumer.resize(ring.spare()).unwrap());
        producer.push_batch(&[1, 2, 3, 4].map(send)).unwrap();
        // Left unpolled, and overrun, by turns.
        if round % 2 == 0 {
            assert_eq!(producer.push(&send(5)), dropped(1, 1));
        } else {
            assert_eq!(drain(&mut consumer), Ok(vec![0, 1, 2, 3, 4]), "round {round}");
        }
    }
}

fn moves_across<const N: usize>() {
    for (from, to) in wraps(N).into_iter().zip(wraps(N).into_iter().rev()) {
        let (mut ring, bell) = (ring_at::<N>(to - 1), Bell::default());
        let mut old = cq_core::testing::shared_queue_at::<N>(from - 1);
        let (mut producer, mut consumer) = old.split_with(KEY, &bell);
        let numbers: Vec<_> = (0..4 * N as u64).collect();
        for batch in numbers[..2 * N].chunks(N) {
            producer.push_batch(&batch.iter().map(|n| send(*n)).collect::<Vec<_>>()).unwrap();
            if batch[0] == 0 {
                assert_eq!(drain(&mut consumer), Ok(batch.to_vec()));
            }
        }
        producer.follow(&consumer.resize(ring.spare()).unwrap());
        let batch: Vec<_> = numbers[2 * N..3 * N].iter().map(|n| send(*n)).collect();
        producer.push_batch(&batch).unwrap();
        assert_eq!(producer.try_push(&send(0)), Err(TryPushError::Full));
        assert_eq!(drain(&mut consumer), Ok(numbers[N..3 * N].to_vec()), "{from}, {to}");
        let batch: Vec<_> = numbers[3 * N..].iter().map(|n| send(*n)).collect();
        producer.push_batch(&batch).unwrap();
        assert_eq!(drain(&mut consumer), Ok(numbers[3 * N..].to_vec()));
        drop(producer);
        assert_eq!(drain(&mut consumer), Err(PollError::Closed));
    }
}

#[test]
fn q12_queues_move_between_rings_wherever_their_positions_wrap() {
    moves_across::<1>();
    moves_across::<2>();
    moves_across::<16>();
}
