//! Moving to other storage (Q12).

use cq_core::queue::mpsc::{HeapCq, PushError, Ring, SoftCq, Spare, WhyNot};
use cq_core::testing::ring_at;

use super::*;

#[test]
fn q12_resizing_keeps_everything() {
    let (mut small, mut large, mut last) = (SoftCq::<2>::new(), Ring::<8>::new(), Ring::<4>::new());
    let bell = Bell::default();
    let (mut one, mut consumer) = small.split_with(KEY, &bell);
    let mut other = one.clone();
    one.push(&send(0)).unwrap();
    other.push(&send(1)).unwrap();
    let _ = consumer.arm(Notify::Solicited).unwrap();
    let new = consumer.resize(large.spare()).unwrap();
    assert_eq!(consumer.capacity(), 8);

    assert_eq!(one.push(&send(2)), Err(PushError::Resized));
    assert_eq!(one.try_push(&send(2)), Err(TryPushError::Resized));
    assert_eq!(other.push_batch(&[send(2), send(3)]), Err(PushError::Resized));
    assert_eq!(other.try_push_batch(&[send(2), send(3)]), Err(TryPushError::Resized));
    assert_eq!(other.push_batch::<Wc>(&[]), Ok(()));
    one.follow(&new);
    other.follow(&new);
    assert_eq!((one.len(), one.free_slots()), (0, 8), "of the ring that it pushes to");
    one.push(&send(2)).unwrap();
    assert_eq!(bell.take(), 0);
    other.push(&failed(3)).unwrap();
    assert_eq!(bell.take(), 1, "the arm is still in force");

    let refused = consumer.resize(last.spare()).unwrap_err();
    assert_eq!(refused.why, WhyNot::UnderWay);
    assert_eq!(drain(&mut consumer), Ok(vec![0, 1, 2, 3]), "both rings in one poll (P2)");
    // The storage came back, and it is over now.
    one.follow(&consumer.resize(refused.spare).unwrap());
    assert_eq!(consumer.capacity(), 4);
    one.push(&send(4)).unwrap();
    assert_eq!(drain(&mut consumer), Ok(vec![4]));
}

#[test]
fn q12_storage_on_the_heap_lives_as_long_as_a_side_is_in_it() {
    let (mut one, mut consumer) = HeapCq::new(2).unwrap().split();
    let mut late = one.clone();
    let mut number = 0;
    for capacity in [3, 8, 5] {
        let new = consumer.resize(Spare::new(capacity).unwrap()).unwrap();
        one.follow(&new);
        drop(new);
        assert_eq!(consumer.capacity(), capacity);
        assert_eq!(late.push(&send(99)), Err(PushError::Resized), "it has not followed");
        let batch: Vec<_> = (number..number + u64::from(capacity)).map(send).collect();
        number += u64::from(capacity);
        one.push_batch(&batch).unwrap();
        let polled: Vec<_> = batch.iter().map(Wc::wr_id).collect();
        assert_eq!(drain(&mut consumer), Ok(polled));
    }
    // The producers outlive the consumer, and the one that never followed the rings that it never saw.
    drop(consumer);
    drop(one);
    assert_eq!(late.free_slots(), 2);
    assert!(Spare::new(0).is_err());
}

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
fn q12_below_the_unpolled_count_is_refused() {
    let (mut large, mut small) = (SoftCq::<8>::new(), Ring::<2>::new());
    let (mut producer, mut consumer) = large.split();
    producer.push_batch(&[0, 1, 2].map(send)).unwrap();
    let refused = consumer.resize(small.spare()).unwrap_err();
    assert_eq!(refused.why, WhyNot::BelowUnpolled { promised: 2, unpolled: 3 });
    assert!(refused.why.to_string().starts_with("3 completions are not polled yet"));
    assert_eq!(consumer.capacity(), 8, "nothing is changed");
    producer.push(&send(3)).unwrap();
    assert_eq!(consumer.poll(&mut [Wc::default(); 2]), Ok(2));
    producer.follow(&consumer.resize(refused.spare).unwrap());
    assert_eq!(drain(&mut consumer), Ok(vec![2, 3]));
    producer.push_batch(&[4, 5].map(send)).unwrap();
    assert_eq!(drain(&mut consumer), Ok(vec![4, 5]));
}

#[test]
fn q12_an_overrun_queue_stays_one() {
    let (mut old, mut new) = (SoftCq::<1>::new(), Ring::<8>::new());
    let (mut producer, mut consumer) = old.split();
    assert!(producer.push_batch(&[0, 1].map(send)).is_err());
    let refused = consumer.resize(new.spare()).unwrap_err();
    assert_eq!(refused.why, WhyNot::Overrun);
    assert_eq!(drain(&mut consumer), Ok(vec![0]));
    assert!(drain(&mut consumer).is_err());
    assert_eq!(consumer.resize(refused.spare).unwrap_err().why, WhyNot::Overrun);
    assert!(drain(&mut consumer).is_err());
}

#[test]
fn o03_an_overrun_after_a_resize_comes_after_both_rings() {
    let (mut old, mut new, mut last) = (SoftCq::<2>::new(), Ring::<2>::new(), Ring::<2>::new());
    let (mut producer, mut consumer) = old.split();
    producer.push_batch(&[0, 1].map(send)).unwrap();
    producer.follow(&consumer.resize(new.spare()).unwrap());
    assert_eq!(producer.push_batch(&[2, 3, 4].map(send)), dropped(1, 1));
    let mut one = [Wc::default()];
    for wr_id in 0..4 {
        assert_eq!(consumer.poll(&mut one), Ok(1));
        assert_eq!(one[0].wr_id(), wr_id);
    }
    assert_eq!(consumer.poll(&mut one), Err(PollError::Overrun { dropped: Some(1) }));
    assert_eq!(consumer.resize(last.spare()).unwrap_err().why, WhyNot::Overrun);
}

#[test]
fn o01_a_resized_queue_stores_what_it_promises_now_and_gives_each_slot_back_at_once() {
    // Of four slots of the old ring, one comes back late.
    let mut new = Ring::<16>::new();
    let (mut producer, mut consumer) = HeapCq::new(3).unwrap().split();
    assert_eq!(consumer.capacity(), 3);
    producer.push_batch(&[0, 1, 2].map(send)).unwrap();
    assert_eq!(consumer.poll(&mut [Wc::default()]), Ok(1));
    assert_eq!(producer.free_slots(), 1);
    producer.follow(&consumer.resize(new.spare()).unwrap());
    assert_eq!(consumer.capacity(), 16);
    assert_eq!(drain(&mut consumer), Ok(vec![1, 2]));
    for round in 0..20 {
        let wcs: Vec<_> = (0..16).map(|nth| send(16 * round + nth)).collect();
        producer.push_batch(&wcs).unwrap();
        assert_eq!(consumer.poll(&mut [Wc::default()]), Ok(1));
        assert_eq!(producer.free_slots(), 1);
        assert_eq!(drain(&mut consumer).unwrap().len(), 15, "round {round}");
    }
}

#[test]
fn n06_who_arms_while_the_old_ring_is_drained_is_told_of_the_new_one() {
    for resized_again in [false, true] {
        let (mut old, mut new, mut last) = (SoftCq::<2>::new(), Ring::<2>::new(), Ring::<4>::new());
        let bell = Bell::default();
        let (mut producer, mut consumer) = old.split_with(KEY, &bell);
        producer.push_batch(&[0, 1].map(send)).unwrap();
        producer.follow(&consumer.resize(new.spare()).unwrap());
        producer.push(&send(2)).unwrap();
        assert_eq!(consumer.poll(&mut [Wc::default(); 2]), Ok(2));
        if resized_again {
            assert!(consumer.resize(last.spare()).is_ok(), "the old ring is drained");
        } else {
            assert_eq!(consumer.arm(Notify::Next), Ok(Armed::MayHaveMissed), "there is one");
        }
        assert_eq!(drain(&mut consumer), Ok(vec![2]));
        assert_eq!(consumer.key(), KEY, "N8");
        assert_eq!(consumer.poll(&mut []), Ok(0), "P6");
    }
}

#[test]
fn q12_a_producer_that_missed_a_resize_is_sent_on_again() {
    let (mut old, mut second, mut third) = (SoftCq::<2>::new(), Ring::<2>::new(), Ring::<2>::new());
    let (mut one, mut consumer) = old.split();
    let mut other = one.clone();
    let first = consumer.resize(second.spare()).unwrap();
    let next = consumer.resize(third.spare()).unwrap();
    one.follow(&first);
    assert_eq!(one.push(&send(0)), Err(PushError::Resized));
    one.follow(&next);
    other.follow(&next);
    one.push(&send(0)).unwrap();
    other.push(&send(1)).unwrap();
    // Back to a ring that is over: refused, and no harm done.
    other.follow(&first);
    assert_eq!(other.try_push(&send(2)), Err(TryPushError::Resized));
    assert_eq!(drain(&mut consumer), Ok(vec![0, 1]));
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
