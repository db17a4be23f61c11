//! Batches that are read in place: no entry is written again before its batch is dropped (S7).

use cq_core::entry::Entry;
use cq_core::queue::{HeapCq, PushError};
use cq_core::sync::Site;
use cq_core::wc::Wc;
use loom::thread;
use verify_loom::harness::{UNORDERED, model};
use verify_loom::queue::numbered;

/// What the producer pushes: entries made of the numbers from 1 on.
#[derive(Clone, Copy)]
struct Shape<E> {
    capacity: u32,
    entries: u64,
    /// How many are taken at once.
    batch: usize,
    make: fn(u64) -> E,
}

/// One of 16 bytes.
fn pair(number: u64) -> [u64; 2] {
    [number, !number]
}

fn taken_in_place<E: Entry + PartialEq>(shape: Shape<E>) {
    let Shape { capacity, entries, batch, make } = shape;
    let (mut producer, mut consumer) = HeapCq::of_entries(capacity as usize).unwrap().split();
    let producer = thread::spawn(move || {
        for number in 1..=entries {
            while let Err(error) = producer.push(&make(number)) {
                assert_eq!(error, PushError::Full);
                thread::yield_now();
            }
        }
        producer
    });
    let mut last = 0;
    while last < entries {
        let mut taken = consumer.poll_in_place(batch).unwrap();
        if taken.is_empty() {
            thread::yield_now();
        }
        // The first is taken by itself, if there are two: the other one comes again.
        let count = if last == 0 { taken.len().min(1) } else { taken.len() };
        for entry in taken.iter().take(count) {
            last += 1;
            assert!(*entry == make(last), "lost, doubled, torn or out of order");
        }
        taken.truncate(count);
    }
    let _producer = producer.join().unwrap();
    assert!(consumer.poll_in_place(batch).unwrap().is_empty(), "an entry that nobody pushed");
}

fn holds<E: Entry + PartialEq>(name: &str, shape: Shape<E>) {
    model(format!("in place, {name}"), move || taken_in_place(shape)).must_fail_without(
        [Site::Publish, Site::Observe, Site::ReleaseHead, Site::AcquireHead],
        UNORDERED,
    );
}

#[test]
fn s07_no_entry_is_overwritten_before_its_batch_is_dropped() {
    let of = |capacity, entries, batch| Shape { capacity, entries, batch, make: numbered };
    holds::<Wc>("ring of 1", of(1, 3, 1));
    holds::<Wc>("ring of 2", of(2, 4, 1));
    holds::<Wc>("ring of 2, batches of 2", of(2, 4, 2));
    holds("ring of 2, 16 bytes", Shape { capacity: 2, entries: 4, batch: 2, make: pair });
}
