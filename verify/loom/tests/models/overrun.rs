//! The overrun: what was stored is handed out first and in order, then polling fails for ever and counts
//! what was dropped (O3); what was promised is never refused (O1), nor what was reserved (O7).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use cq_core::queue::{DroppedError, End, HeapCq, Tail};
use cq_core::sync::Site;
use cq_core::transport::{PollCq, PollError};
use cq_core::wc::Wc;
use cq_testing::entries::{Bytes4, Bytes16, Spare2};
use loom::sync::atomic::{
    AtomicU64 as Credits,
    Ordering::{Acquire, Release},
};
use loom::thread;
use verify_loom::harness::{UNORDERED, model};
use verify_loom::queue::{Modelled, Queue, expect, numbered};
use verify_loom::threads::spawn;

const TOO_EARLY: &str = "the error came before a stored completion";

#[derive(Clone, Copy)]
struct Shape {
    promised: u32,
    storage: usize,
    pushes: u64,
    batch: usize,
}

/// A raw queue. Completions and tags come numbered.
fn raw(shape: Shape) {
    let queue = Queue::with_storage(shape.promised, shape.storage);
    let producers = Arc::clone(&queue);
    let mut tail = Tail::at(0);
    let push = move |number| {
        let mut producer = producers.producer(tail);
        let pushed = producer.push_or_overrun(&Wc::tagged(number, false));
        tail = producer.tail();
        pushed
    };
    let mut consumer = queue.consumer(0);
    overrun::<Wc, _>(shape, push, |buffer, taken| {
        consumer.poll_with(buffer, |wc, tag| {
            *taken += 1;
            expect(wc, *taken);
            assert_eq!(u64::from(tag), *taken, "the tag of another completion");
        })
    });
}

/// A queue in memory of its own. Entries come numbered.
fn own<E: Modelled>(shape: Shape) {
    let queue = HeapCq::<E>::with_slots(shape.promised as usize, shape.storage).unwrap();
    let (mut producer, mut consumer) = queue.split();
    let push = move |number| producer.push_or_overrun(&E::numbered(number));
    overrun::<E, _>(shape, push, |buffer, taken| {
        let count = consumer.poll_into(buffer)?;
        for entry in &buffer[..count] {
            *taken += 1;
            expect(entry, *taken);
        }
        Ok(count)
    });
}

fn overrun<E: Modelled, P: FnMut(u64) -> Result<(), DroppedError> + 'static>(
    shape: Shape,
    push: P,
    mut take: impl FnMut(&mut [E], &mut u64) -> Result<usize, PollError>,
) {
    // Beside the protocol: loom does not see it.
    let stored = Arc::new(AtomicU64::new(0));
    let producer = spawn(&stored, move |stored| produce(push, &stored, shape));

    let mut buffer = vec![E::numbered(0); shape.batch];
    let (mut taken, mut errors) = (0, 0);
    while taken < shape.pushes && errors < 2 {
        match take(&mut buffer, &mut taken) {
            Ok(0) if errors == 0 => thread::yield_now(),
            Ok(_) => assert_eq!(errors, 0, "the overrun was forgotten"),
            Err(_) => {
                assert_eq!(taken, stored.load(SeqCst), "{TOO_EARLY}");
                errors += 1;
            }
        }
    }
    let (dropped, _producer) = producer.join().unwrap();
    assert_eq!(taken + u64::from(dropped), shape.pushes, "lost without being counted");
    let end = if dropped == 0 { Ok(0) } else { Err(PollError::Overrun { dropped: Some(dropped) }) };
    assert_eq!(take(&mut buffer, &mut taken), end);
}

/// Says how many were dropped, and gives back who pushed, so that the queue is not closed.
fn produce<P: FnMut(u64) -> Result<(), DroppedError>>(
    mut push: P,
    stored: &AtomicU64,
    shape: Shape,
) -> (u32, P) {
    let mut refused = 0;
    for number in 1..=shape.pushes {
        match push(number) {
            Ok(()) => {
                assert_eq!(refused, 0, "stored after the overrun");
                stored.fetch_add(1, SeqCst);
            }
            Err(DroppedError { lost, end }) => {
                refused += 1;
                let overrun = End::Overrun { dropped: refused };
                assert_eq!((lost, end), (1, overrun), "counted wrongly");
                assert!(number > u64::from(shape.promised), "refused what was promised");
            }
        }
    }
    (refused, push)
}

#[test]
fn o03_stored_entries_come_before_the_error() {
    for (capacity, pushes, batch) in [(1, 3, 1), (2, 4, 2)] {
        let shape = Shape { promised: capacity, storage: capacity as usize, pushes, batch };
        model(format!("overrun of {capacity}"), move || raw(shape))
            .must_fail_without([Site::Latch, Site::ReadLatch], TOO_EARLY);
    }
    type Body = fn(Shape);
    let bodies: [(&str, Body); 3] =
        [("16 bytes", own::<Bytes16>), ("4 bytes", own::<Bytes4>), ("2 spare bits", own::<Spare2>)];
    for (entry, body) in bodies {
        let shape = Shape { promised: 1, storage: 1, pushes: 3, batch: 1 };
        model(format!("overrun of 1, {entry}"), move || body(shape))
            .must_fail_without([Site::Latch, Site::ReadLatch], TOO_EARLY)
            .must_fail_without([Site::Publish, Site::Observe], UNORDERED);
    }
}

#[test]
fn o01_the_promise_is_kept() {
    for (promised, storage) in [(1, 1), (2, 2), (3, 4)] {
        let shape = Shape { promised, storage, pushes: promised.into(), batch: 1 };
        model(format!("exactly {promised} in {storage} slots"), move || raw(shape))
            .must_fail_without([Site::Publish], UNORDERED);
    }
}

/// The producer waits for a credit before it exceeds the promise; each completion gives one.
fn reserved(shape: Shape) {
    let queue = Queue::with_storage(shape.promised, shape.storage);
    let credits = Arc::new(Credits::new(shape.promised.into()));
    let mut consumer = queue.consumer(0);
    let producer = spawn((&queue, &credits), move |(queue, credits)| {
        let mut producer = queue.producer(Tail::at(0));
        for number in 1..=shape.pushes {
            while number > credits.load(Acquire) {
                thread::yield_now();
            }
            producer.push(&numbered(number)).expect("overrun within the credits");
        }
    });

    let mut buffer = vec![Wc::default(); shape.batch];
    let mut taken = 0;
    while taken < shape.pushes {
        let count = consumer.poll_with(&mut buffer, |wc, _| {
            taken += 1;
            expect(wc, taken);
            credits.store(u64::from(shape.promised) + taken, Release);
        });
        if count.unwrap() == 0 {
            thread::yield_now();
        }
    }
    producer.join().unwrap();
}

#[test]
fn o07_what_was_reserved_never_overruns() {
    for (promised, storage, pushes) in [(1, 1, 3), (2, 2, 4), (3, 4, 6)] {
        let shape = Shape { promised, storage, pushes, batch: 2 };
        model(format!("credits for {promised} of {storage} slots"), move || reserved(shape));
    }
}
