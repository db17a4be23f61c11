//! The ring: nothing is lost, doubled or torn, order is kept, and no slot is written before it was given
//! back (P1, P2), across every wrap of positions and generations.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use cq_core::queue::{BatchError, HeapCq, Position, PushError, Tail};
use cq_core::sync::Site;
use cq_core::transport::PollCq;
use cq_core::wc::Wc;
use cq_testing::entries::{Bytes4, Bytes16, Spare2};
use loom::thread;
use verify_loom::harness::{UNORDERED, model};
use verify_loom::queue::{Modelled, Queue, expect};
use verify_loom::threads::spawn;

const OVERWRITTEN: &str = "overwritten before it was given back";

#[derive(Clone, Copy)]
struct Shape {
    capacity: usize,
    /// The position of the first entry.
    start: Position,
    entries: u64,
    /// How many are pushed at once.
    run: usize,
    /// How many are polled at once.
    batch: usize,
    lag: u32,
    /// Whether another consumer goes on after each batch.
    renewed: bool,
}

impl Shape {
    fn promised(&self) -> u32 {
        self.capacity as u32 - self.lag
    }
}

/// A queue in memory of its own.
fn fifo<E: Modelled>(shape: Shape) {
    let queue = HeapCq::<E>::with_slots(shape.promised() as usize, shape.capacity).unwrap();
    let (mut producer, consumer) = queue.split();
    run(shape, move |batch: &[E]| producer.push_batch(batch), consumer, |consumer| consumer);
}

/// A raw queue.
fn raw_fifo(shape: Shape) {
    let queue = Queue::with_storage(shape.promised(), shape.capacity);
    let (producers, consumers) = (Arc::clone(&queue), queue);
    let mut tail = Tail::at(shape.start);
    let push = move |batch: &[Wc]| {
        let mut producer = producers.producer(tail);
        let pushed = producer.push_batch(batch);
        tail = producer.tail();
        pushed
    };
    run(shape, push, consumers.consumer(shape.start), |consumer| match shape.renewed {
        true => consumers.consumer(consumer.position()),
        false => consumer,
    });
}

fn run<C: PollCq<Entry: Modelled>>(
    shape: Shape,
    push: impl FnMut(&[C::Entry]) -> Result<(), BatchError> + 'static,
    mut consumer: C,
    renew: impl Fn(C) -> C,
) {
    // Beside the protocol: loom does not see it.
    let handed_out = Arc::new(AtomicU64::new(0));
    let producer = spawn(&handed_out, move |handed_out| produce(push, &handed_out, shape));

    let mut buffer = vec![C::Entry::numbered(0); shape.batch];
    let mut last = 0;
    while last < shape.entries {
        let count = consumer.poll_into(&mut buffer).unwrap();
        for entry in &buffer[..count] {
            last += 1;
            expect(entry, last);
        }
        handed_out.store(last, SeqCst);
        if count == 0 {
            thread::yield_now();
        } else {
            consumer = renew(consumer);
        }
    }
    let _producer = producer.join().unwrap();
    assert_eq!(consumer.poll_into(&mut buffer), Ok(0), "an entry that nobody pushed");
}

/// Gives back who pushed, so that the queue is not closed yet.
fn produce<E: Modelled, P: FnMut(&[E]) -> Result<(), BatchError>>(
    mut push: P,
    handed_out: &AtomicU64,
    shape: Shape,
) -> P {
    let all: Vec<_> = (1..=shape.entries).map(E::numbered).collect();
    for mut run in all.chunks(shape.run) {
        while let Some(last) = run.last() {
            match push(run) {
                Ok(()) => run = &[],
                Err(BatchError { stored, why: PushError::Full }) => {
                    run = &run[stored..];
                    thread::yield_now();
                }
                Err(other) => panic!("{other}"),
            }
            let (pushed, taken) = (last.number() - run.len() as u64, handed_out.load(SeqCst));
            // A batch may have been given back that is not handed out yet.
            let most = (shape.capacity + shape.batch) as u64;
            assert!(pushed <= taken + most, "{OVERWRITTEN}");
        }
    }
    push
}

/// Runs the shape in memory of the queue's own; and raw, from three places: the beginning, two entries before the
/// generation starts again, and two before the position does. What differs there is arithmetic only.
fn fifo_across_wraps(name: &str, shape: Shape) {
    if !shape.renewed {
        right(format!("{name}, own memory"), fifo::<Wc>, shape);
    }
    right(name.into(), raw_fifo, shape);
    let end_of_generations = (shape.capacity as Position) << 15;
    for (wraps, end) in [("generation", end_of_generations), ("position", 0)] {
        let shape = Shape { start: end.wrapping_sub(2), ..shape };
        model(format!("{name}, {wraps} wraps"), move || raw_fifo(shape));
    }
}

/// Runs the shape, and without each ordering.
fn right(name: String, body: fn(Shape), shape: Shape) {
    model(name, move || body(shape)).must_fail_without(
        [Site::Publish, Site::Observe, Site::ReleaseHead, Site::AcquireHead],
        UNORDERED,
    );
}

/// Runs the shape with other entries than completions: generations in an array, and in the fewest spare bits.
fn fifo_of_entries(name: &str, shape: Shape) {
    right(format!("{name}, 16 bytes"), fifo::<Bytes16>, shape);
    right(format!("{name}, 4 bytes"), fifo::<Bytes4>, shape);
    right(format!("{name}, 2 spare bits"), fifo::<Spare2>, shape);
}

/// Batches of one, from the beginning, no lag.
const fn ring_of(capacity: usize, entries: u64) -> Shape {
    Shape { capacity, start: 0, entries, run: 1, batch: 1, lag: 0, renewed: false }
}

#[test]
fn ring_of_one() {
    fifo_across_wraps("ring of 1", ring_of(1, 4));
}

#[test]
fn ring_of_two() {
    fifo_across_wraps("ring of 2", ring_of(2, 5));
}

#[test]
fn ring_of_two_in_batches() {
    fifo_across_wraps("ring of 2, batches of 2", Shape { batch: 2, ..ring_of(2, 5) });
}

#[test]
fn ring_of_two_pushed_in_batches() {
    let shape = Shape { run: 2, batch: 2, ..ring_of(2, 5) };
    fifo_across_wraps("ring of 2, pushed in batches of 2", shape);
}

#[test]
fn ring_whose_head_lags() {
    let shape = Shape { lag: 1, ..ring_of(4, 7) };
    fifo_across_wraps("ring of 4, lag 1", shape);
    fifo_across_wraps("ring of 4, lag 1, batches of 2", Shape { batch: 2, ..shape });
}

#[test]
fn ring_whose_consumers_take_turns() {
    let shape = Shape { renewed: true, ..ring_of(1, 4) };
    fifo_across_wraps("ring of 1, consumers take turns", shape);
}

/// At least three rounds, after which a generation of two bits comes again.
#[test]
fn rings_of_other_entries() {
    fifo_of_entries("ring of 1", ring_of(1, 4));
    fifo_of_entries("ring of 2, batches of 2", Shape { batch: 2, ..ring_of(2, 7) });
}
