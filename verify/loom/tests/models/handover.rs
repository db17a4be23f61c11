//! Producers that take turns under a lock, each going on at the tail that the other left, against a
//! consumer that takes no lock: it gets everything (N6), or the error, once and for ever (O3, O5).

use std::sync::Arc;

use cq_core::queue::{Position, Tail};
use cq_core::sync::Site;
use cq_core::transport::Notify;
use cq_core::wc::Wc;
use loom::sync::Mutex;
use loom::thread;
use verify_loom::channel::{Channel, LOST, take_all};
use verify_loom::harness::model;
use verify_loom::queue::{Queue, numbered};

const PRODUCERS: u32 = 2;

#[derive(Clone, Copy)]
struct Shape {
    capacity: u32,
    pushes_each: u64,
}

fn hand_over(shape: Shape) {
    let (queue, mut channel) = (Queue::new(shape.capacity), Channel::new(PRODUCERS));
    let consumer = queue.armable();
    let tail = Arc::new(Mutex::new(Tail::at(0).to_words()));
    let producers: Vec<_> = (0..PRODUCERS)
        .map(|_| {
            let (queue, channel, tail) = (Arc::clone(&queue), channel.clone(), Arc::clone(&tail));
            thread::spawn(move || {
                let refused = |_: &u64| !push_one(&queue, &channel, &tail);
                let dropped = (0..shape.pushes_each).filter(refused).count() as u64;
                channel.hang_up();
                dropped
            })
        })
        .collect();

    let pushes = u64::from(PRODUCERS) * shape.pushes_each;
    let mut room = [Wc::default(); 2];
    let taken = take_all(consumer, &mut channel, Notify::Next, &mut room, pushes);
    let dropped: u64 = producers.into_iter().map(|producer| producer.join().unwrap()).sum();
    assert_eq!(taken + dropped, pushes, "stored, and never handed out");
}

/// Pushes the completion with the next number; false if it was refused.
fn push_one(queue: &Queue, channel: &Channel, tail: &Mutex<[Position; 2]>) -> bool {
    let mut tail = tail.lock().unwrap();
    let mut producer = queue.producer_with(Tail::from_words(*tail), channel.clone());
    let stored = producer.push(&numbered(tail[0] + 1)).is_ok();
    *tail = producer.tail().to_words();
    stored
}

#[test]
fn n06_producers_that_take_turns_lose_no_wake_up() {
    let shape = Shape { capacity: 2, pushes_each: 1 };
    model("two producers, one lock", move || hand_over(shape))
        .must_fail_without(Site::PushFence, LOST)
        .must_fail_without(Site::ArmFence, LOST);
}

#[test]
fn o03_the_overrun_is_handed_over() {
    let shape = Shape { capacity: 1, pushes_each: 2 };
    model("two producers overrun", move || hand_over(shape));
}
