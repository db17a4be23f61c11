//! How a queue with several producers ends without an overrun (O3, N6).

use cq_core::queue::mpsc::HeapCq;

use super::*;

#[test]
fn s02_the_last_producer_that_is_dropped_closes_the_queue_and_no_other() {
    for last in 0..3 {
        let event_count = EventCount::default();
        let (producer, mut consumer) = HeapCq::new(4).unwrap().split_with(&event_count);
        let mut producers = [Some(producer.clone()), Some(producer.clone()), Some(producer)];
        assert_eq!(consumer.arm(Notify::Next), Ok(Armed::Armed));
        for nth in (0..3).filter(|nth| *nth != last) {
            producers[nth] = None;
            assert_eq!(event_count.take(), 0);
            assert_eq!(consumer.arm(Notify::Next), Ok(Armed::Armed));
            assert_eq!(drain(&mut consumer), Ok(vec![]));
        }
        // Who is left can have company again.
        drop(producers[last].clone());
        producers[last].as_mut().unwrap().push(&send(7)).unwrap();
        assert_eq!(event_count.take(), 1);
        let _ = consumer.arm(Notify::Solicited).unwrap();
        producers[last] = None;
        assert_eq!(event_count.take(), 1, "who sleeps is woken");
        assert_eq!(drain(&mut consumer), Ok(vec![7]));
        for _ in 0..2 {
            assert_eq!(drain(&mut consumer), Err(PollError::Closed));
            assert_eq!(consumer.poll_into(&mut []), Ok(0), "P6");
            assert_eq!(consumer.arm(Notify::Next), Ok(Armed::MayHaveMissed));
        }
    }
}

/// S2: so a queue that has had that many producers is never closed.
#[test]
fn s02_a_count_that_has_saturated_stays_so() {
    use cq_core::sync::{AtomicU32, join, leave, load_u32};
    let count = AtomicU32::new(u32::MAX - 2);
    assert!(!leave(&count), "not the last one");
    (0..3).for_each(|_| join(&count));
    assert!([(); 4].map(|()| leave(&count)).iter().all(|is_last| !is_last), "nobody knows");
    assert_eq!(load_u32(&count), u32::MAX);
    let count = AtomicU32::new(0);
    (0..2).for_each(|_| join(&count));
    assert_eq!([(); 3].map(|()| leave(&count)), [false, true, false]);
}

#[test]
fn n06_a_channel_that_can_not_be_cloned_keeps_no_queue_open() {
    /// But for the consumer.
    struct Unclonable(Cell<bool>);
    impl Signal for Unclonable {
        fn key(&self) -> CqKey {
            KEY
        }

        fn raise(&self) {}
    }
    impl Clone for Unclonable {
        fn clone(&self) -> Self {
            assert!(!self.0.replace(true), "as it should");
            Self(Cell::new(true))
        }
    }
    let signal = Unclonable(Cell::new(false));
    let (producer, mut consumer) = HeapCq::new(2).unwrap().split_with(signal);
    assert!(catch_unwind(AssertUnwindSafe(|| producer.clone())).is_err());
    assert_eq!(drain(&mut consumer), Ok(vec![]));
    drop(producer);
    assert_eq!(drain(&mut consumer), Err(PollError::Closed));
}

#[test]
fn n06_a_signal_that_panics_is_raised_again_by_the_next_completion() {
    let (signal, raised) = crate::queue::events::panicking();
    let (mut producer, mut consumer) = HeapCq::new(4).unwrap().split_with(signal);
    assert_eq!(consumer.arm(Notify::Next), Ok(Armed::Armed));
    assert!(catch_unwind(AssertUnwindSafe(|| producer.push(&send(1)))).is_err());
    (2..4).for_each(|wr_id| producer.push(&send(wr_id)).unwrap());
    assert_eq!((raised.load(SeqCst), drain(&mut consumer)), (2, Ok(vec![1, 2, 3])));
}
