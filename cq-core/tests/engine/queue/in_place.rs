//! Batches that are taken in place.

use std::mem;
use std::panic::{self, AssertUnwindSafe};

use cq_core::entry::Entry;

use super::*;

/// A queue of 4 that has passed so many entries before, and then holds those numbered from 1 on.
fn holding(passed: usize, held: u64) -> (Producer<'static, u64>, Consumer<'static, u64>) {
    let (mut producer, mut consumer) = HeapCq::of_entries(4).unwrap().split();
    for _ in 0..passed {
        producer.push(&0).unwrap();
        assert_eq!(consumer.poll_into(&mut [0]), Ok(1));
    }
    (1..=held).for_each(|number| producer.push(&number).unwrap());
    (producer, consumer)
}

/// All that a poll returns.
fn polled(consumer: &mut Consumer<'_, u64>) -> Vec<u64> {
    let mut out = [0; 8];
    let count = consumer.poll_into(&mut out).unwrap();
    out[..count].to_vec()
}

#[test]
fn s07_a_batch_has_what_a_poll_would_return() {
    for (passed, held, most) in (0..5).flat_map(|passed| {
        (0..5).flat_map(move |held| (0..6).map(move |most| (passed, held, most)))
    }) {
        let (producer, mut consumer) = holding(passed, held);
        let count = most.min(held as usize);
        let batch = consumer.poll_in_place(most).unwrap();
        assert_eq!((batch.len(), batch.is_empty()), (count, count == 0));
        let all: Vec<_> = (1..=held).collect();
        assert_eq!(batch.iter().copied().collect::<Vec<_>>(), all[..count]);
        let (first, second) = batch.as_slices();
        assert_eq!(first.len(), count.min(4 - passed % 4), "up to the end of the memory");
        assert_eq!([first, second].concat(), all[..count]);
        assert_eq!(producer.available(), 4 - held as usize, "not released yet");
        drop(batch);
        assert_eq!(producer.available(), 4 - held as usize + count);
        assert_eq!(polled(&mut consumer), all[count..]);
    }
}

#[test]
fn s07_a_consumer_says_how_many_it_took() {
    for (held, taken) in (0..5).flat_map(|held| (0..6).map(move |taken| (held, taken))) {
        let (producer, mut consumer) = holding(3, held);
        consumer.poll_in_place(4).unwrap().truncate(taken);
        let left: Vec<_> = (1..=held).skip(taken).collect();
        assert_eq!(producer.len(), left.len());
        assert_eq!(polled(&mut consumer), left);
    }
}

#[test]
fn s07_a_batch_that_is_leaked_is_polled_again() {
    let (producer, mut consumer) = holding(2, 3);
    mem::forget(consumer.poll_in_place(2).unwrap());
    assert_eq!(producer.available(), 1);
    assert_eq!(consumer.poll_in_place(1).unwrap().as_slices().0, [1]);
    assert_eq!(polled(&mut consumer), [2, 3]);
}

#[test]
fn s07_a_batch_that_a_panic_drops_is_taken() {
    let (producer, mut consumer) = holding(0, 3);
    let look = || {
        for number in &consumer.poll_in_place(2).unwrap() {
            assert_eq!(*number, 7, "a consumer that panics");
        }
    };
    panic::catch_unwind(AssertUnwindSafe(look)).unwrap_err();
    assert_eq!(producer.len(), 1);
    assert_eq!(polled(&mut consumer), [3]);
}

/// O7, O1: until it is released, a batch takes up slots.
#[test]
fn o01_a_batch_in_place_counts_as_unpolled() {
    let (mut producer, mut consumer) = holding(1, 4);
    let batch = consumer.poll_in_place(4).unwrap();
    assert_eq!(producer.push(&5), Err(PushError::Full));
    assert!(producer.push_or_overrun(&5).is_err());
    drop(batch);
    let error = PollError::Overrun { dropped: Some(1) };
    assert_eq!(consumer.poll_in_place(1).unwrap_err(), error);
}

#[test]
fn o03_stored_entries_are_taken_in_place_before_the_end() {
    let (producer, mut consumer) = holding(1, 3);
    drop(producer);
    assert!(consumer.poll_in_place(0).unwrap().is_empty(), "P6");
    assert_eq!(consumer.poll_in_place(2).unwrap().len(), 2);
    assert_eq!(consumer.poll_in_place(2).unwrap().iter().sum::<u64>(), 3);
    for _ in 0..2 {
        assert_eq!(consumer.poll_in_place(2).unwrap_err(), PollError::Closed);
        assert_eq!(consumer.poll_into(&mut [0]), Err(PollError::Closed));
        assert!(consumer.poll_in_place(0).unwrap().is_empty(), "P6");
    }
}

#[test]
fn o03_nothing_is_taken_once_the_end_is_reported() {
    let (mut producer, mut consumer) = holding(0, 0);
    consumer.fail();
    assert_eq!(consumer.poll_in_place(1).unwrap_err(), PollError::Failed);
    assert!(producer.push(&1).is_err());
    assert_eq!(consumer.poll_in_place(1).unwrap_err(), PollError::Failed);
}

/// Slots beyond the capacity are released late, also behind batches in place.
#[test]
fn o01_polled_slots_are_released_late_where_there_are_more_than_promised() {
    let (mut producer, mut consumer) = HeapCq::<u32>::with_slots(6, 8).unwrap().split();
    for number in 0..100 {
        producer.push(&number).unwrap();
        assert_eq!(*consumer.poll_in_place(9).unwrap().iter().next().unwrap(), number);
        assert!(producer.len() <= 2, "the lag is the rest of the slots, at most a quarter");
    }
}

/// An arm after a batch finds the queue as a poll leaves it.
#[test]
fn n02_arming_sees_what_is_behind_a_batch() {
    let mut storage = SoftCq::<4, u32>::of_entries();
    let event_count = EventCount::default();
    let (mut producer, mut consumer) = storage.split_with(&event_count);
    producer.push_batch(&[1, 2]).unwrap();
    consumer.poll_in_place(4).unwrap().truncate(1);
    assert_eq!(consumer.arm(Notify::Next), Ok(Armed::MayHaveMissed));
    drop(consumer.poll_in_place(4).unwrap());
    assert_eq!(consumer.arm(Notify::Next), Ok(Armed::Armed));
}

/// The padding holds a generation in place, which no part of a completion shows.
#[test]
fn c01_a_completion_in_place_equals_what_was_pushed() {
    let mut storage = SoftCq::<1>::new();
    let (mut producer, mut consumer) = storage.split();
    for number in 0..3 {
        producer.push(&recv(number)).unwrap();
        let batch = consumer.poll_in_place(1).unwrap();
        let [wc] = batch.as_slices().0 else { panic!("one") };
        assert_eq!(*wc, recv(number));
        assert_eq!(wc.to_bytes(), recv(number).to_bytes());
        assert_ne!(bytemuck::bytes_of(wc)[46..], [0; 2], "the generation");
        assert_eq!(format!("{batch:?}"), format!("[{:?}]", recv(number)));
        assert!(!Entry::is_urgent(wc));
    }
}

/// For Miri and ThreadSanitizer: what is read in place is not written meanwhile.
#[test]
fn s07_batches_are_read_while_a_thread_pushes() {
    let (mut producer, mut consumer) = HeapCq::of_entries(4).unwrap().split();
    let pushes = std::thread::spawn(move || {
        (1..=500_u64).for_each(|number| {
            producer.push_or_wait(&[number, !number], std::thread::yield_now).unwrap();
        });
    });
    let mut last = 0;
    let end = loop {
        match consumer.poll_in_place(3) {
            Ok(batch) => {
                for entry in &batch {
                    last += 1;
                    assert_eq!(*entry, [last, !last]);
                }
                if batch.is_empty() {
                    std::thread::yield_now();
                }
            }
            Err(end) => break end,
        }
    };
    assert_eq!((last, end), (500, PollError::Closed));
    pushes.join().unwrap();
}
