//! Entries that a queue pair has reserved and gives back: nobody uses them before its last completion was polled (O7).

use std::convert::Infallible;
use std::sync::Arc;

use cq_core::queue::Tail;
use cq_core::transport::PollCq;
use cq_core::wc::Wc;
use cq_verbs::budget::{Budget, Budgeted, OverdrawnError, Reserved};
use cq_verbs::post::{Post, PostError};
use cq_verbs::sync::Site;
use cq_verbs::wr::{RecvWr, SendWr};
use verify_loom::harness::model;
use verify_loom::queue::{Queue, expect, numbered};
use verify_loom::threads::spawn;

const OVERRUN: &str = "the queue is full";
const UNTOLD: &str = "neither free nor pending";

type Shared = Arc<Budget>;

/// A queue pair whose completions the model stores.
struct Pair;

impl Post for Pair {
    fn post_send(&mut self, _: &[SendWr<'_>]) -> Result<(), PostError> {
        Ok(())
    }

    fn post_recv(&mut self, _: &[RecvWr<'_>]) -> Result<(), PostError> {
        Ok(())
    }

    fn quiesce(&mut self) -> bool {
        true
    }
}

/// A queue pair with one request.
fn create(budget: &Shared) -> Result<Reserved<Pair, Shared, 1>, OverdrawnError> {
    Reserved::create([(budget, 1)], || Ok::<_, Infallible>(Pair)).map(|Ok(created)| created)
}

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
        let count = cq.poll_into(&mut buffer).expect("the queue never overruns");
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
        let last = create(budget).ok().unwrap();
        spawn(&queue, move |queue| {
            push(&queue, 1);
            drop(last);
        });
        spawn((&queue, budget), |(queue, budget)| {
            if let Ok(_another) = create(&budget) {
                push(&queue, 2);
            }
        });
    });
}

/// A queue pair goes to RESET, and posts again as soon as it may.
fn reset() {
    let queue = Queue::new(1);
    poll(&queue, |budget| {
        let mut pair = create(budget).ok().unwrap();
        spawn(&queue, move |queue| {
            push(&queue, 1);
            let Ok(()) = pair.reset([1], |_| Ok::<_, Infallible>(()));
            if pair.usable() == [1] {
                push(&queue, 2);
            }
        });
    });
}

/// Who has given entries back is not told that there are none: they are free, or pending.
fn refused() {
    let queue = Queue::new(1);
    poll(&queue, |budget| {
        let last = create(budget).ok().unwrap();
        spawn(budget, move |budget| {
            drop(last);
            let again = create(&budget);
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
