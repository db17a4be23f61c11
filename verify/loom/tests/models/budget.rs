//! Entries that a queue pair has reserved and gives back: nobody uses them before its last completion was polled (O7).

use std::sync::Arc;

use cq_core::queue::Tail;
use cq_core::transport::PollCq;
use cq_core::wc::Wc;
use cq_verbs::budget::{Budget, Budgeted, Reservation};
use cq_verbs::sync::Site;
use verify_loom::harness::model;
use verify_loom::queue::{Queue, expect, numbered};
use verify_loom::threads::spawn;

const OVERRUN: &str = "the queue is full";
const UNTOLD: &str = "neither free nor pending";

type Shared = Arc<Budget>;

/// Stores the completion with this number; the ring has one slot.
fn push(queue: &Queue, number: u64) {
    let mut producer = queue.producer(Tail::at(number - 1));
    assert!(producer.push(&numbered(number)).is_ok(), "{OVERRUN}");
}

/// Polls twice, and each time may find the queue empty.
fn poll(queue: &Queue, budget: impl FnOnce(&Shared)) {
    let mut cq = Budgeted::with_capacity(queue.consumer(0), 1);
    budget(cq.budget());
    let (mut buffer, mut next) = ([Wc::default(); 2], 1);
    for _ in 0..2 {
        let count = cq.poll(&mut buffer).expect("the queue never overruns");
        for wc in &buffer[..count] {
            expect(wc, next);
            next += 1;
        }
    }
}

/// A queue pair completes its last request and is destroyed; another one is created as soon as it can reserve.
fn destroyed() {
    let queue = Queue::new(1);
    poll(&queue, |budget| {
        let last = Reservation::new(budget, 1).unwrap();
        spawn(&queue, move |queue| {
            push(&queue, 1);
            drop(last);
        });
        spawn((&queue, budget), |(queue, budget)| {
            if Reservation::new(&budget, 1).is_ok() {
                push(&queue, 2);
            }
        });
    });
}

/// A queue pair goes to RESET, and posts again as soon as it may.
fn reset() {
    let queue = Queue::new(1);
    poll(&queue, |budget| {
        let mut entries = Reservation::new(budget, 1).unwrap();
        spawn(&queue, move |queue| {
            push(&queue, 1);
            entries.discard(1);
            if entries.usable() == 1 {
                push(&queue, 2);
            }
        });
    });
}

/// Who has given entries back is not told that there are none: they are free, or pending.
fn refused() {
    let queue = Queue::new(1);
    poll(&queue, |budget| {
        let last = Reservation::new(budget, 1).unwrap();
        spawn(budget, move |budget| {
            drop(last);
            let again = Reservation::new(&budget, 1);
            assert!(again.map_or_else(|overdrawn| overdrawn.pending, |_| true), "{UNTOLD}");
        });
    });
}

#[test]
fn entries_that_were_given_back_are_free_or_pending() {
    model("entries are given back and reserved again", refused)
        .must_fail_without([Site::Answer, Site::SeeAnswer], UNTOLD);
}

#[test]
fn entries_return_after_the_last_completion_was_polled() {
    model("a queue pair is destroyed, another one reserves", destroyed)
        .must_fail_without([Site::Ask, Site::SeeAsked, Site::Give, Site::Take], OVERRUN);
    model("a queue pair goes to RESET and posts again", reset)
        .must_fail_without([Site::Ask, Site::SeeAsked, Site::Answer, Site::SeeAnswer], OVERRUN);
}
