//! Who owns a send queue: one thread at a time works on it, and nothing that was posted is left when all have gone.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;
use transport_rxe_loop::protocol::in_flight::InFlight;
use transport_rxe_loop::protocol::ownership::Ownership;
use transport_rxe_loop::sync::{self, AtomicU64, Site};
use verify_loom::harness::{UNORDERED, model};

const LEFT: &str = "a request is left";

/// A send queue: how many requests were posted, and how many were carried out.
#[derive(Default)]
struct SendQueue {
    ownership: Ownership,
    /// The in-flight markers of the thread that posts: the private one, and the one in shared memory.
    marker: InFlight,
    in_flight: InFlight,
    posted: [AtomicU64; 3],
    /// The owner's.
    done: UnsafeCell<u64>,
}

// SAFETY: loom watches each access to the cell.
unsafe impl Sync for SendQueue {}

impl SendQueue {
    fn posted(&self) -> u64 {
        self.posted.iter().map(sync::load).sum()
    }

    /// What the owner does.
    fn work(&self) {
        let posted = self.posted();
        // SAFETY: loom finds whoever else is at it.
        self.done.with_mut(|done| unsafe { *done = posted });
    }

    fn done(&self) -> u64 {
        // SAFETY: loom finds whoever else is at it.
        self.done.with(|done| unsafe { *done })
    }

    /// Posts one, by the thread of this number, and has it carried out.
    fn post(&self, which: usize, drive: fn(&Self)) {
        let posted = &self.posted[which];
        sync::store(posted, sync::load(posted) + 1);
        drive(self);
    }

    fn drive(&self) {
        if self.ownership.enter(&self.marker) {
            self.work_until_left();
        }
    }

    fn work_until_left(&self) {
        loop {
            self.work();
            if self.ownership.leave() {
                return;
            }
        }
    }

    /// As the thread that posts, with its marker set. With `halts`, a request has halted, and that thread owns the queue.
    fn carry_out(&self, care: Care, halts: bool) {
        self.marker.open_first();
        self.in_flight.open();
        let is_free = self.ownership.is_free() || care == Care::DoesNotLook;
        if is_free {
            self.work();
        }
        let keeps = is_free && halts;
        if keeps {
            while !self.ownership.try_keep() {
                thread::yield_now();
            }
        }
        self.marker.close_first();
        self.in_flight.close();
        if keeps {
            // The request waits for what others do.
            if !self.ownership.leave() {
                self.work_until_left();
            }
            return;
        }
        let is_over = is_free && (self.ownership.is_free() || care == Care::DoesNotLookAgain);
        if !is_over && self.ownership.enter_to_post() {
            self.work_until_left();
        }
    }

    /// As one that does not look again.
    fn drive_once(&self) {
        if self.ownership.enter(&self.marker) {
            self.work();
            self.ownership.abandon();
        }
    }

    /// As one that does not ask whether another thread is the owner.
    fn drive_at_once(&self) {
        self.work();
    }
}

/// What the thread that posts does not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Care {
    Right,
    /// Works, whether or not the word is free.
    DoesNotLook,
    /// Does not look at the word once its marker is cleared.
    DoesNotLookAgain,
}

/// The thread that posts does so, as others post something else for it to do.
fn post_with_the_marker(times: u64, others: usize, care: Care, halts: bool) {
    let queue = Arc::new(SendQueue::default());
    let threads: Vec<_> = (0..others)
        .map(|nth| {
            let queue = Arc::clone(&queue);
            thread::spawn(move || queue.post(1 + nth, SendQueue::drive))
        })
        .collect();
    for _ in 0..times {
        let posted = &queue.posted[0];
        sync::store(posted, sync::load(posted) + 1);
        queue.carry_out(care, halts);
    }
    threads.into_iter().for_each(|other| other.join().unwrap());
    assert_eq!(queue.done(), times + others as u64, "{LEFT}");
}

#[test]
fn c08_who_posts_works_without_owning_the_queue_and_misses_nobody() {
    let run = |care| post_with_the_marker(1, 1, care, false);
    model("a thread posts a request", move || run(Care::Right))
        .must_fail_without(Site::EnterFence, UNORDERED)
        .must_fail_without(Site::OpenFence, UNORDERED)
        .must_fail_without(Site::CloseFirst, UNORDERED)
        .must_fail_without(Site::SeeClosed, UNORDERED)
        .must_fail_without(Site::SeeOwner, UNORDERED)
        .must_fail_without(Site::CloseFence, LEFT)
        .must_fail_as("looking whether it is owned", UNORDERED, move || run(Care::DoesNotLook))
        .must_fail_as("looking again", LEFT, move || run(Care::DoesNotLookAgain));
    model("a thread posts two requests", || post_with_the_marker(2, 1, Care::Right, false))
        .must_fail_without(Site::CloseFence, LEFT);
    model("a thread posts, and two others", || post_with_the_marker(1, 2, Care::Right, false))
        .must_fail_without(Site::CloseFence, LEFT);
}

#[test]
fn c08_who_posts_owns_the_queue_once_a_request_has_halted() {
    let run = |care| post_with_the_marker(1, 1, care, true);
    model("a thread posts a request that halts", move || run(Care::Right))
        .must_fail_without(Site::Reschedule, LEFT)
        .must_fail_without(Site::EnterFence, UNORDERED)
        .must_fail_without(Site::OpenFence, UNORDERED)
        .must_fail_without(Site::SeeOwner, UNORDERED)
        .must_fail_as("looking whether it is owned", UNORDERED, move || run(Care::DoesNotLook));
    model("a thread posts two requests that halt", || {
        post_with_the_marker(2, 1, Care::Right, true);
    })
    .must_fail_without(Site::EnterFence, UNORDERED);
}

/// Each of two threads posts.
fn post_at_once(drive: fn(&SendQueue)) {
    let queue = Arc::new(SendQueue::default());
    let other = thread::spawn({
        let queue = Arc::clone(&queue);
        move || queue.post(1, drive)
    });
    queue.post(0, drive);
    queue.post(0, drive);
    other.join().unwrap();
    assert_eq!(queue.done(), 3, "{LEFT}");
}

#[test]
fn c08_whoever_posts_while_another_works_has_it_carried_out() {
    model("two threads post", || post_at_once(SendQueue::drive))
        .must_fail_without(Site::Reschedule, LEFT)
        .must_fail_as("looking again", LEFT, || post_at_once(SendQueue::drive_once))
        .must_fail_as("entering", UNORDERED, || post_at_once(SendQueue::drive_at_once));
}

/// One hands its work to the service thread after a while, as another posts on; it may have been rescheduled by then.
fn hand_over(abandons_first: bool) {
    let queue = Arc::new(SendQueue::default());
    let poster = thread::spawn({
        let queue = Arc::clone(&queue);
        move || queue.post(1, SendQueue::drive)
    });
    let service = |queue: &Arc<SendQueue>| {
        let queue = Arc::clone(queue);
        thread::spawn(move || queue.drive())
    };
    sync::store(&queue.posted[0], 1);
    let mut handed = None;
    if queue.ownership.enter(&queue.marker) {
        queue.work();
        if abandons_first {
            queue.ownership.abandon();
        }
        handed = Some(service(&queue));
        if !abandons_first {
            queue.ownership.abandon();
        }
    }
    poster.join().unwrap();
    handed.into_iter().for_each(|service| service.join().unwrap());
    assert_eq!(queue.done(), 2, "{LEFT}");
}

#[test]
fn c08_work_that_is_handed_over_is_carried_out() {
    model("a send queue is handed over", || hand_over(true)).must_fail_as(
        "abandoning it first",
        LEFT,
        || hand_over(false),
    );
}

/// One seizes it, and drops what was posted, as its state says by then; the other posts, and is not kept.
fn seize(seizes: fn(&Ownership) -> bool) {
    let queue = Arc::new(SendQueue::default());
    let poster = thread::spawn({
        let queue = Arc::clone(&queue);
        move || queue.post(1, SendQueue::drive)
    });
    while !seizes(&queue.ownership) {
        thread::yield_now();
    }
    queue.work();
    queue.ownership.abandon();
    poster.join().unwrap();
    // Nobody has it, and the next one works as ever.
    queue.post(0, SendQueue::drive);
    assert_eq!(queue.done(), 2, "{LEFT}");
}

#[test]
fn q02_who_seizes_it_is_alone_and_gives_it_back() {
    model("a send queue is seized", || seize(Ownership::try_seize)).must_fail_as(
        "seizing it",
        UNORDERED,
        || seize(|_| true),
    );
}
