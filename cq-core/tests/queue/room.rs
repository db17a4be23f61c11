//! Capacity: what is guaranteed, when slots are released, and who waits for one (O1, S1).

use std::cell::RefCell;

use cq_core::queue::{HeapCq, Position, TryPushError};
use cq_core::transport::PollCq;
use cq_core::wc::Wc;

use super::{Parts, each_lone, entry, send};

#[test]
fn o01_slack_never_hastens_the_overrun() {
    for promised in 1..=16_u32 {
        let parts = Parts::promising(promised, 16);
        let (mut producer, mut consumer) = parts.sides(0);
        assert_eq!((consumer.capacity(), producer.storage()), (promised, 16));
        // Wherever the consumer has stopped, what was promised fits.
        for round in 0..50 {
            (0..promised).for_each(|wr_id| producer.push(&send(wr_id.into())).unwrap());
            let mut out = vec![Wc::default(); promised as usize];
            assert_eq!(consumer.poll(&mut out), Ok(promised as usize), "round {round}");
        }
        let stored = (0..99).take_while(|wr_id| producer.push(&send(*wr_id)).is_ok()).count();
        assert!((promised as usize..=16).contains(&stored), "{promised} promised, {stored} stored");
    }
}

#[test]
fn o01_slots_come_back_as_late_as_the_promise_allows_but_no_later_than_a_quarter_of_the_ring() {
    for (storage, promised, lag) in
        [(16, 16, 0), (16, 14, 2), (16, 12, 4), (16, 8, 4), (16, 1, 4), (4, 1, 1), (2, 1, 0)]
    {
        let parts = Parts::promising(promised, storage);
        let (mut producer, mut consumer) = parts.sides(0);
        let many = vec![send(0); storage + 1];
        assert_eq!(producer.try_push_batch(&many), Ok(storage));
        for round in 0..3 {
            for polled in 1..=lag {
                assert_eq!(consumer.poll(&mut [Wc::default()]), Ok(1));
                let full = producer.try_push(&many[0]);
                assert_eq!(full, Err(TryPushError::Full), "back after {polled} in {round}");
                assert_eq!((producer.len(), producer.free_slots()), (storage, 0));
            }
            assert_eq!(consumer.poll(&mut [Wc::default()]), Ok(1));
            assert_eq!(producer.free_slots(), lag + 1);
            let back = producer.try_push_batch(&many);
            assert_eq!(back, Ok(lag + 1), "{promised} of {storage}: all at once");
        }
    }
}

#[test]
fn o01_a_consumer_that_goes_on_gives_back_everything_before_it() {
    let parts = Parts::promising(12, 16);
    let (mut producer, mut consumer) = parts.sides(0);
    assert_eq!(producer.try_push_batch(&[send(0); 16]), Ok(16));
    consumer.poll(&mut [Wc::default(); 3]).unwrap();
    assert_eq!(producer.try_push(&send(0)), Err(TryPushError::Full));
    assert_eq!(consumer.position(), 3);
    let mut next = parts.consumer(consumer.position());
    assert_eq!(producer.try_push_batch(&[send(1); 16]), Ok(3));
    let mut out = [Wc::default(); 20];
    assert_eq!(next.poll(&mut out), Ok(16));
    assert!(out[..16].iter().map(Wc::wr_id).eq((0..16).map(|nth| u64::from(nth >= 13))));
}

#[test]
fn the_high_water_is_the_most_that_was_found_unpolled() {
    each_lone!(|producer, consumer, _bell| {
        assert_eq!(producer.high_water(), 0);
        producer.push(&entry(0)).unwrap();
        assert_eq!(producer.high_water(), 1, "now");
        consumer.poll(&mut [Wc::default()]).unwrap();
        (1..4).for_each(|number| producer.push(&entry(number)).unwrap());
        consumer.poll(&mut [Wc::default()]).unwrap();
        // What was seen to be free is filled: the producer looks, and finds two.
        producer.push(&entry(4)).unwrap();
        assert_eq!(producer.high_water(), 3);
        consumer.poll(&mut [Wc::default(); 4]).unwrap();
        assert_eq!(producer.len(), 0);
        assert_eq!(producer.high_water(), 3, "a mark does not fall");
        (0..4).for_each(|number| producer.push(&entry(number)).unwrap());
        assert_eq!(producer.high_water(), 4);
        consumer.poll(&mut [Wc::default(); 4]).unwrap();
        producer.push(&entry(4)).unwrap();
        assert_eq!(producer.high_water(), 4);
    });
}

#[test]
fn the_high_water_is_also_what_was_found_when_nobody_asked() {
    each_lone!(|producer, consumer, _bell| {
        (0..4).for_each(|number| producer.push(&entry(number)).unwrap());
        consumer.poll(&mut [Wc::default()]).unwrap();
        // Here the producer looks, and finds three.
        producer.push(&entry(4)).unwrap();
        consumer.poll(&mut [Wc::default(); 4]).unwrap();
        assert_eq!(producer.high_water(), 3);
    });
}

#[test]
fn s01_a_push_that_waits_waits_as_long_as_the_queue_is_full() {
    let (mut producer, consumer) = HeapCq::new(2).unwrap().split();
    let (consumer, mut waits) = (RefCell::new(Some(consumer)), 0);
    for number in 0..4 {
        let wait = || {
            waits += 1;
            if waits % 3 == 0 {
                let mut consumer = consumer.borrow_mut();
                consumer.as_mut().unwrap().poll(&mut [Wc::default()]).unwrap();
            }
        };
        assert_eq!(producer.push_or_wait(&entry(number), wait), Ok(()));
    }
    assert_eq!(waits, 6);
    let gone = producer.push_or_wait(&entry(4), || drop(consumer.take()));
    assert_eq!(gone, Err(TryPushError::Ended), "it does not wait for ever");
}

#[test]
fn a_consumer_knows_how_many_completions_wait() {
    for start in [0, 6, Position::MAX - 1] {
        let parts = Parts::promising(4, 4);
        let (mut producer, mut consumer) = parts.sides(start);
        for stored in 0..4 {
            assert_eq!(consumer.len(), stored);
            producer.push(&entry(stored as u32)).unwrap();
        }
        assert_eq!(consumer.poll(&mut [Wc::default(); 3]), Ok(3));
        producer.push(&entry(4)).unwrap();
        assert_eq!((consumer.len(), consumer.is_empty()), (2, false));
        producer.overrun(1);
        assert_eq!(consumer.poll(&mut [Wc::default(); 3]), Ok(2));
        assert!(consumer.poll(&mut [Wc::default()]).is_err());
        assert_eq!((consumer.len(), consumer.is_empty()), (0, true));
    }
}
