//! The ring: nothing is lost, doubled or torn, order is kept, and no slot is written before it was given
//! back (P1, P2), across every wrap of positions and generations.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use cq_core::ring::{Head, Position, Ring, Slot, Tail};
use cq_core::sync::Site;
use cq_core::wc::Wc;
use loom::thread;
use verify_loom::harness::{UNORDERED, model};
use verify_loom::queue::{expect, numbered};

const OVERWRITTEN: &str = "overwritten before it was given back";

#[derive(Clone, Copy)]
struct Shape {
    capacity: usize,
    /// The position of the first entry.
    start: Position,
    entries: u64,
    batch: usize,
    lag: u32,
    /// Whether another consumer goes on after each batch.
    renewed: bool,
}

struct Shared {
    slots: Vec<Slot>,
    head: Head,
    /// Beside the protocol: loom does not see it.
    handed_out: AtomicU64,
}

impl Shared {
    fn ring(&self) -> Ring<'_> {
        Ring::new(&self.slots, &self.head).unwrap()
    }
}

fn fifo(shape: Shape) {
    let shared = Arc::new(Shared {
        slots: (0..shape.capacity).map(|_| Slot::new()).collect(),
        head: Head::new(),
        handed_out: AtomicU64::new(0),
    });
    let mut consumer = shared.ring().consumer(shape.start, shape.lag);
    let producer = thread::spawn({
        let shared = Arc::clone(&shared);
        move || produce(&shared, shape)
    });

    let mut room = vec![Wc::default(); shape.batch];
    let mut last = 0;
    while last < shape.entries {
        let count = consumer.pop(&mut room);
        for wc in &room[..count] {
            last += 1;
            expect(wc, last);
        }
        shared.handed_out.store(last, SeqCst);
        if count == 0 {
            thread::yield_now();
        } else if shape.renewed {
            consumer = shared.ring().consumer(consumer.position(), shape.lag);
        }
    }
    producer.join().unwrap();
    assert_eq!(consumer.pop(&mut room), 0, "an entry that nobody pushed");
}

fn produce(shared: &Shared, shape: Shape) {
    let mut producer = shared.ring().producer(Tail::at(shape.start));
    for number in 1..=shape.entries {
        while producer.push(&numbered(number)).is_err() {
            thread::yield_now();
        }
        let stored = number - shared.handed_out.load(SeqCst);
        // A batch may have been given back that is not handed out yet.
        assert!(stored <= (shape.capacity + shape.batch) as u64, "{OVERWRITTEN}");
    }
}

/// Runs the shape from three places: the beginning, two entries before the generation starts again, and
/// two before the position does. What differs there is arithmetic only.
fn fifo_across_wraps(name: &str, shape: Shape) {
    model(name, move || fifo(shape))
        .must_fail_without(Site::Publish, UNORDERED)
        .must_fail_without(Site::Observe, UNORDERED)
        .must_fail_without(Site::ReleaseHead, UNORDERED)
        .must_fail_without(Site::AcquireHead, UNORDERED)
        .must_fail_without(Site::FullCheck, OVERWRITTEN);
    let end_of_generations = (shape.capacity as Position) << 15;
    for (wraps, end) in [("generation", end_of_generations), ("position", 0)] {
        let shape = Shape { start: end.wrapping_sub(2), ..shape };
        model(format!("{name}, {wraps} wraps"), move || fifo(shape))
            .must_fail_without(Site::FullCheck, OVERWRITTEN);
    }
}

#[test]
fn ring_of_one() {
    let shape = Shape { capacity: 1, start: 0, entries: 4, batch: 1, lag: 0, renewed: false };
    fifo_across_wraps("ring of 1", shape);
}

#[test]
fn ring_of_two() {
    let shape = Shape { capacity: 2, start: 0, entries: 5, batch: 1, lag: 0, renewed: false };
    fifo_across_wraps("ring of 2", shape);
}

#[test]
fn ring_of_two_in_batches() {
    let shape = Shape { capacity: 2, start: 0, entries: 5, batch: 2, lag: 0, renewed: false };
    fifo_across_wraps("ring of 2, batches of 2", shape);
}

#[test]
fn ring_whose_head_lags() {
    let shape = Shape { capacity: 4, start: 0, entries: 7, batch: 1, lag: 1, renewed: false };
    fifo_across_wraps("ring of 4, lag 1", shape);
    fifo_across_wraps("ring of 4, lag 1, batches of 2", Shape { batch: 2, ..shape });
}

#[test]
fn ring_whose_consumers_take_turns() {
    let shape = Shape { capacity: 1, start: 0, entries: 4, batch: 1, lag: 0, renewed: true };
    fifo_across_wraps("ring of 1, consumers take turns", shape);
}
