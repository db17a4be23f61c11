//! Counts that are at their ends.

use core::convert::Infallible;

use super::*;
use crate::ledger::{Array, Items};

/// A poll finds nothing.
struct Empty;

impl PollCq for Empty {
    type Entry = Wc;

    fn poll_into(&mut self, _: &mut [Wc]) -> Result<usize, PollError> {
        Ok(0)
    }
}

type Queue<'b> = Budgeted<Empty, &'b Budget>;

/// A queue of two entries after so many requests, all of which were answered.
fn queue(storage: &mut Budget, asked: u32) -> Queue<'_> {
    let mut queue = Budgeted::new_in(Empty, 2, storage);
    pass(&mut queue, asked);
    queue
}

/// So many requests are asked, and answered.
fn pass(queue: &mut Queue<'_>, asked: u32) {
    sync::ask(&queue.budget.asked, asked);
    poll(queue);
}

fn poll(queue: &mut Queue<'_>) {
    assert_eq!(queue.poll_into(&mut [Wc::default()]), Ok(0));
}

fn reserve<'b>(queue: &Queue<'b>, entries: u32) -> Result<Reservation<&'b Budget>, OverdrawnError> {
    let (queues, create) = ([(queue.budget(), entries)].into_iter(), || Ok::<_, Infallible>(()));
    let created = Reservation::for_created::<Array<1>, _, _>(queues, create);
    created.map(|Ok(((), Items([reservation])))| reservation)
}

/// Requests that are asked shortly before a count of 32 or 31 bits ends.
const STARTS: [u32; 4] = [0, (1 << 31) - 2, u32::MAX - 1, u32::MAX];

#[test]
fn o07_a_request_is_answered_once_whatever_its_number_is() {
    for start in STARTS {
        let mut storage = Budget::new();
        let mut queue = queue(&mut storage, start);
        let mut entries = reserve(&queue, 2).unwrap();
        for _ in 0..5 {
            entries.discard(1);
            assert_eq!((entries.usable(), entries.usable()), (1, 1), "from {start}");
            poll(&mut queue);
            assert_eq!(entries.usable(), 2, "from {start}");
        }
    }
}

#[test]
fn o07_an_answer_lasts_however_many_requests_follow() {
    for start in STARTS {
        for more in [1, (1 << 31) - 1, 1 << 31, (1 << 31) + 1, u32::MAX] {
            let mut storage = Budget::new();
            let mut queue = queue(&mut storage, start);
            let mut entries = reserve(&queue, 2).unwrap();
            entries.discard(2);
            poll(&mut queue);
            pass(&mut queue, more);
            assert_eq!(entries.usable(), 2, "{more} more from {start}");
        }
    }
}

#[test]
fn o07_a_request_waits_for_its_answer_however_many_follow() {
    for start in STARTS {
        for more in [1, (1 << 31) - 1, 1 << 31, u32::MAX - 1] {
            let mut storage = Budget::new();
            let mut queue = queue(&mut storage, start);
            let mut entries = reserve(&queue, 2).unwrap();
            entries.discard(2);
            sync::ask(&queue.budget.asked, more);
            assert_eq!(entries.usable(), 0, "{more} more from {start}");
            poll(&mut queue);
            assert_eq!(entries.usable(), 2, "{more} more from {start}");
        }
    }
}

#[test]
fn o07_entries_return_when_the_count_of_those_that_were_given_back_ends() {
    for start in STARTS {
        let mut storage = Budget::new();
        let mut queue = queue(&mut storage, start);
        sync::store_u32(&queue.budget.released, start);
        queue.released = start;
        for _ in 0..5 {
            drop(reserve(&queue, 2).unwrap());
            let refused = OverdrawnError { asked: 1, available: 0, pending: true };
            assert_eq!(reserve(&queue, 1).unwrap_err(), refused, "from {start}");
            poll(&mut queue);
            assert_eq!(queue.budget.available(), 2, "from {start}");
        }
    }
}
