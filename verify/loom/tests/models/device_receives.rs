//! Receives are handed over without a lock: none is lost, none is taken before its words are there or twice,
//! and a sender that waits for one is rescheduled (Q7).

use std::sync::Arc;

use cq_core::transport::Signal;
use transport_rxe_loop::protocol::number::Position;
use transport_rxe_loop::protocol::receives::Receives;
use transport_rxe_loop::protocol::tag;
use transport_rxe_loop::sync::Site;
use verify_loom::channel::{Channel, LOST};
use verify_loom::harness::{UNORDERED, model};
use verify_loom::threads::{Watched, spawn};

const CAPACITY: u32 = 2;

/// A receive queue, and the words of its requests: which receive was put there.
#[derive(Default)]
struct Queue {
    receives: Receives,
    requests: [Watched<u64>; CAPACITY as usize],
}

impl Queue {
    fn request(&self, position: u64) -> &Watched<u64> {
        &self.requests[position as usize % self.requests.len()]
    }

    /// Puts as many receives as fit, up to `all` of them; true if the peer is to be rescheduled.
    fn post_up_to(&self, all: u64) -> bool {
        let mut end = self.receives.posted();
        while end.get() < all && end.since(self.receives.completed_acquire()) < CAPACITY.into() {
            // There is room, so whatever was here was read.
            self.request(end.get()).set(end.get());
            end = end.next();
        }
        end != self.receives.posted() && self.receives.post(end)
    }

    /// Takes the receive at a position, as its taker and who pushes its completion do.
    fn take(&self, position: u64) {
        assert_eq!(self.request(position).get(), position, "lost or doubled");
        self.receives.settle(tag::of_recv(Position::new(position + 1)), CAPACITY);
        assert_eq!(self.receives.completed(), Position::new(position + 1), "lost or doubled");
    }
}

/// The peer takes receives until it has `all`, sleeping where there is none, while the owner posts each of
/// `batches` at once. A batch that finds no room is given up.
fn hand_over(all: u64, batches: &'static [u64]) {
    let (queue, mut wakes) = (Arc::new(Queue::default()), Channel::new(1));
    let owner = spawn((&queue, &wakes), move |(queue, wakes)| {
        for &batch in batches {
            if queue.post_up_to(batch) {
                wakes.raise();
            }
        }
        let posted = queue.receives.posted();
        wakes.hang_up();
        posted
    });
    let mut cached_posted = Position::default();
    for position in 0..all {
        while !queue.receives.has_or_starve(Position::new(position), &mut cached_posted, CAPACITY) {
            wakes.sleep();
        }
        queue.take(position);
    }
    assert!(owner.join().unwrap().get() >= all);
}

#[test]
fn q07_who_waits_for_a_receive_is_kicked() {
    model("one receive each time", || hand_over(2, &[1, 2]))
        .must_fail_without([Site::PostFence, Site::StarveFence, Site::LookAgain], LOST)
        .must_fail_without([Site::StoreFenced, Site::SeePosted], UNORDERED);
    model("two receives, then one", || hand_over(2, &[2, 3]))
        .must_fail_without([Site::PostFence], LOST);
}

/// The peer takes what there is, while the owner fills the queue as often as it finds room.
fn reuse() {
    let queue = Arc::new(Queue::default());
    assert!(!queue.post_up_to(2));
    let owner = spawn(&queue, |queue| {
        assert!(!queue.post_up_to(3) && !queue.post_up_to(4), "nobody starves")
    });
    let mut cached_posted = Position::default();
    let taken = (0..2).filter(|&position| {
        let has = queue.receives.has(Position::new(position), &mut cached_posted, CAPACITY);
        has.then(|| queue.take(position)).is_some()
    });
    assert_eq!(taken.count(), 2, "lost or doubled");
    owner.join().unwrap();
    let posted = queue.receives.posted();
    for position in 2..posted.get() {
        assert!(queue.receives.has(Position::new(position), &mut cached_posted, CAPACITY));
        queue.take(position);
    }
    assert_eq!(queue.receives.left(CAPACITY).count(), 0);
}

#[test]
fn q05_a_receive_is_overwritten_only_once_it_was_read() {
    model("a full receive queue", reuse)
        .must_fail_without([Site::Settle, Site::SeeCompleted], UNORDERED);
}

/// Somebody flushes what is left while the owner posts one more.
fn flush() {
    let queue = Arc::new(Queue::default());
    let other = spawn(&queue, |queue| {
        queue.receives.left(CAPACITY).for_each(|position| queue.take(position.get()))
    });
    assert!(!queue.post_up_to(1), "nobody starves");
    other.join().unwrap();
}

#[test]
fn q02_a_receive_is_flushed_as_it_was_posted() {
    model("a receive is posted and flushed", flush)
        .must_fail_without([Site::StoreFenced, Site::SeePosted], UNORDERED);
}

/// The peer asks for so many receives, one by one, while the owner posts one; and then one more.
fn find_after_all(asks: u64) {
    let queue = Arc::new(Queue::default());
    let peer = spawn(&queue, move |queue| {
        let mut cached_posted = Position::default();
        let has = |&position: &u64| {
            queue.receives.has_or_starve(Position::new(position), &mut cached_posted, CAPACITY)
        };
        (0..asks).take_while(has).count() > 0
    });
    queue.post_up_to(1);
    if peer.join().unwrap() {
        assert!(!queue.post_up_to(2), "a spurious reschedule");
    }
}

#[test]
fn who_finds_a_receive_after_all_does_not_wait_for_the_next() {
    model("a receive comes while it is missed", || find_after_all(1)).must_fail_as(
        "enough",
        "a spurious reschedule",
        || find_after_all(2),
    );
}
