//! Queues that own their storage (O1).

use super::*;

/// What it then holds is the models' to judge.
#[test]
fn o01_a_queue_of_any_capacity_has_that_and_slots_for_it() {
    macro_rules! holds {
        ($queue:path) => {
            for capacity in [1, 2, 3, 4, 5, 1000, 1024] {
                let (producer, consumer) = <$queue>::new(capacity).unwrap().split();
                assert_eq!(consumer.capacity(), capacity);
                assert_eq!(producer.available(), (capacity as usize).next_power_of_two());
            }
        };
    }
    holds!(HeapCq);
    #[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
    holds!(cq_core::queue::mpsc::HeapCq);
}

#[test]
fn o01_what_can_not_be_is_refused() {
    let refused =
        |capacity, slots| HeapCq::<Wc>::with_slots(capacity, slots).map(drop).unwrap_err();
    assert_eq!(refused(3, 3), CapacityError::NotPowerOfTwo(3));
    assert_eq!(refused(5, 4), CapacityError::MoreThanStorage { promised: 5, storage: 4 });
    let too_many = [MAX_STORAGE + 1, (1 << 31) + 1, usize::MAX];
    macro_rules! refuses {
        ($queue:path) => {
            assert_eq!(<$queue>::new(0).unwrap_err(), CapacityError::Zero);
            for capacity in too_many {
                let refused = <$queue>::new(capacity).unwrap_err();
                assert!(matches!(refused, CapacityError::TooLarge(_)));
            }
        };
    }
    refuses!(HeapCq);
    #[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
    refuses!(cq_core::queue::mpsc::HeapCq);
}

#[test]
#[cfg_attr(miri, ignore = "32,768 slots are touched, and Miri has a stack of its own")]
fn a_queue_of_32768_needs_no_stack() {
    let many = || {
        let (mut producer, mut consumer) = HeapCq::new(32768).unwrap().split();
        (0..32768).for_each(|nth| producer.push(&send(nth)).unwrap());
        assert_eq!(producer.push(&send(0)), Err(PushError::Full));
        let mut out = [Wc::default(); 64];
        assert_eq!(consumer.poll_into(&mut out), Ok(64));
        assert_eq!(out[63].wr_id(), 63);
        #[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
        drop(cq_core::queue::mpsc::HeapCq::new(32768).unwrap().split());
    };
    thread::Builder::new().stack_size(64 << 10).spawn(many).unwrap().join().unwrap();
}

/// In which order they are dropped, and what the other one then finds, is in `model`.
#[test]
fn sides_may_be_swapped_between_queues_and_replaced() {
    macro_rules! swaps {
        ($queue:path) => {
            let event_count = EventCount::default();
            let (mut one, mut a) = <$queue>::new(4).unwrap().split_with(&event_count);
            let (mut two, mut b) = <$queue>::new(2).unwrap().split_with(&event_count);
            one.push(&send(1)).unwrap();
            std::mem::swap(&mut one, &mut two);
            one.push(&send(2)).unwrap();
            two.push(&send(11)).unwrap();
            assert_eq!(drain(&mut a), Ok(vec![1, 11]), "each side stays with its queue");
            assert_eq!(drain(&mut b), Ok(vec![2]));
            std::mem::swap(&mut a, &mut b);
            assert_eq!(a.arm(Notify::Next), Ok(Armed::Armed));
            one.push(&send(3)).unwrap();
            assert_eq!(event_count.take(), 1);
            one = <$queue>::new(1).unwrap().split_with(&event_count).0;
            assert_eq!(one.end(), Some(End::Abandoned));
            assert_eq!(drain(&mut a), Ok(vec![3]));
            assert_eq!(drain(&mut a), Err(PollError::Closed));
            two.push(&send(4)).unwrap();
            assert_eq!(drain(&mut b), Ok(vec![4]), "what is left goes on");
        };
    }
    swaps!(HeapCq);
    #[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
    {
        swaps!(cq_core::queue::mpsc::HeapCq);
    }
}

/// Sides that own their storage do where others are asked for that borrow theirs.
#[test]
fn sides_that_last_do_where_shorter_ones_are_asked_for() {
    type Waits<'a> = Consumer<'a, Wc, OnChannel<&'a EventCount>>;
    struct Waiter<'a>(Producer<'a, Wc, &'a EventCount>, Waits<'a>, &'a EventCount);
    let event_count = EventCount::default();
    let (producer, consumer) = HeapCq::new(2).unwrap().split_with(&event_count);
    let mut waiter = Waiter(producer, consumer, &event_count);
    let _ = waiter.1.arm(Notify::Next).unwrap();
    waiter.0.push(&send(0)).unwrap();
    assert_eq!(waiter.2.take(), 1);

    fn shorter<'a>(
        sides: [raw::RawConsumer<'static>; 1],
        _: &'a EventCount,
    ) -> [raw::RawConsumer<'a>; 1] {
        sides
    }
    let _ = shorter;
}

/// So many entries of this size are more than there are addresses.
#[cfg(target_pointer_width = "32")]
#[test]
fn o01_what_no_memory_can_hold_is_refused() {
    let refused = HeapCq::<[u64; 16]>::of_entries(MAX_STORAGE).unwrap_err();
    assert_eq!(refused, CapacityError::TooLarge(MAX_STORAGE));
}
