//! Pollers that share a queue by its lock, against a producer that takes none: each completion goes to
//! exactly one of them, and from poll to poll they come in order (P1, P8).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use cq_core::cq::CompletionQueue;
use cq_core::queue::{Position, Tail};
use cq_core::shared_cq::SharedCq;
use cq_core::sync::Site;
use cq_core::transport::{PollCq, PollError};
use cq_core::wc::Wc;
use loom::thread;
use verify_loom::harness::{UNORDERED, model};
use verify_loom::queue::{Queue, expect, numbered};
use verify_loom::threads::spawn;

/// A queue, and how many of its entries were handed out; loom does not see the number.
struct Storage {
    queue: Arc<Queue>,
    taken: AtomicU64,
}

/// The queue's consumer, wherever it is polled from: its place is what the lock hands over.
#[derive(Clone)]
struct Transport {
    storage: Arc<Storage>,
    position: Position,
}

impl PollCq for Transport {
    type Entry = Wc;

    fn poll_into(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
        let mut consumer = self.storage.queue.consumer(self.position);
        let count = consumer.poll_into(out)?;
        self.position = consumer.position();
        for wc in &out[..count] {
            expect(wc, self.storage.taken.fetch_add(1, SeqCst) + 1);
        }
        Ok(count)
    }
}

#[derive(Clone, Copy)]
struct Shape {
    capacity: usize,
    entries: u64,
    batch: usize,
    polls_each: usize,
    /// Whether the pollers have one queue between them, instead of one consumer each.
    shared: bool,
    /// Whether they wait for the lock, instead of giving the poll up.
    wait: bool,
}

fn take_turns(shape: Shape) {
    let queue = Queue::new(shape.capacity as u32);
    let storage = Arc::new(Storage { queue, taken: AtomicU64::new(0) });
    let producer = spawn(&storage, move |storage| {
        let mut producer = storage.queue.producer(Tail::at(0));
        (1..=shape.entries).take_while(|&number| producer.push(&numbered(number)).is_ok()).count()
    });
    let transport = Transport { storage: Arc::clone(&storage), position: 0 };
    let share = || Arc::new(SharedCq::new(CompletionQueue::new(transport.clone())));
    let mine = share();
    let theirs = if shape.shared { Arc::clone(&mine) } else { share() };

    let poller = thread::spawn(move || poll(&theirs, shape));
    let here = poll(&mine, shape);
    let there = poller.join().unwrap();
    let stored = producer.join().unwrap();
    let rest = mine.lock().poll(&mut vec![Wc::default(); shape.capacity]).unwrap().len();
    assert_eq!(here + there + rest, stored, "lost");
}

/// Polls so many times; says how many completions came.
fn poll(shared: &SharedCq<Transport>, shape: Shape) -> usize {
    let mut buffer = vec![Wc::default(); shape.batch];
    let poll = |_| {
        let guard = if shape.wait { Some(shared.lock()) } else { shared.try_lock() };
        guard.map_or(0, |mut cq| cq.poll(&mut buffer).unwrap().len())
    };
    (0..shape.polls_each).map(poll).sum()
}

#[test]
fn p08_each_completion_goes_to_one_poller() {
    for (name, capacity, batch, polls_each, wait) in [
        ("two pollers, one lock", 2, 1, 1, true),
        ("two pollers, one lock, batches of 2", 2, 2, 1, true),
        ("two pollers try one lock", 1, 1, 2, false),
    ] {
        let shape = Shape { capacity, entries: 2, batch, polls_each, shared: true, wait };
        model(name, move || take_turns(shape))
            .must_fail_without([Site::Lock, Site::Unlock], UNORDERED)
            .must_fail_as("a consumer each, instead of the lock", "lost, doubled", move || {
                take_turns(Shape { shared: false, ..shape })
            });
    }
}
