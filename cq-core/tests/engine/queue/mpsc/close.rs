//! How a queue with several producers ends without an overrun (O3, N6).

use cq_core::queue::mpsc::{HeapCq, Ring};

use super::*;

#[test]
fn s02_the_last_producer_that_is_dropped_closes_the_queue_and_no_other() {
    for last in 0..3 {
        let bell = Bell::default();
        let (producer, mut consumer) = HeapCq::new(4).unwrap().split_with(KEY, &bell);
        let mut producers = [Some(producer.clone()), Some(producer.clone()), Some(producer)];
        assert_eq!(consumer.arm(Notify::Next), Ok(Armed::Armed));
        for nth in (0..3).filter(|nth| *nth != last) {
            producers[nth] = None;
            assert_eq!(bell.take(), 0);
            assert_eq!(consumer.arm(Notify::Next), Ok(Armed::Armed));
            assert_eq!(drain(&mut consumer), Ok(vec![]));
        }
        // Who is left can have company again.
        drop(producers[last].clone());
        producers[last].as_mut().unwrap().push(&send(7)).unwrap();
        assert_eq!(bell.take(), 1);
        let _ = consumer.arm(Notify::Solicited).unwrap();
        producers[last] = None;
        assert_eq!(bell.take(), 1, "who sleeps is woken");
        assert_eq!(drain(&mut consumer), Ok(vec![7]));
        for _ in 0..2 {
            assert_eq!(drain(&mut consumer), Err(PollError::Closed));
            assert_eq!(consumer.poll(&mut []), Ok(0), "P6");
            assert_eq!(consumer.arm(Notify::Next), Ok(Armed::MayHaveMissed));
        }
    }
}

#[test]
fn o03_a_queue_that_is_closed_while_it_is_resized_hands_out_both_rings_first() {
    for polled in 0..=4 {
        let mut ring = Ring::<4>::new();
        let (mut producer, mut consumer) = HeapCq::new(2).unwrap().split();
        producer.push_batch(&[0, 1].map(send)).unwrap();
        // One that never follows.
        let other = producer.clone();
        producer.follow(&consumer.resize(ring.spare()).unwrap());
        producer.push_batch(&[2, 3].map(send)).unwrap();
        let mut out = [Wc::default(); 4];
        assert_eq!(consumer.poll(&mut out[..polled]), Ok(polled));
        drop((producer, other));
        let left: Vec<_> = (polled as u64..4).collect();
        if !left.is_empty() {
            assert_eq!(drain(&mut consumer), Ok(left));
        }
        assert_eq!(drain(&mut consumer), Err(PollError::Closed), "after {polled}");
    }
}

#[test]
fn n06_a_channel_that_can_not_be_cloned_keeps_no_queue_open() {
    struct Unclonable;
    impl Signal for Unclonable {
        fn raise(&self, _: CqKey) {}
    }
    impl Clone for Unclonable {
        fn clone(&self) -> Self {
            panic!("as it should");
        }
    }
    let (producer, mut consumer) = HeapCq::new(2).unwrap().split_with(KEY, Unclonable);
    assert!(catch_unwind(AssertUnwindSafe(|| producer.clone())).is_err());
    assert_eq!(drain(&mut consumer), Ok(vec![]));
    drop(producer);
    assert_eq!(drain(&mut consumer), Err(PollError::Closed));
}
