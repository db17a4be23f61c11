//! Who owns a send queue: one thread at a time works on it, and nothing that was posted is left when all have gone.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;
use transport_rxe_loop::protocol::ownership::Ownership;
use transport_rxe_loop::sync::{self, AtomicU64, Site};
use verify_loom::harness::{UNORDERED, model};

const LEFT: &str = "a request is left";

/// A send queue: how many requests were posted, and how many were carried out.
#[derive(Default)]
struct SendQueue {
    ownership: Ownership,
    posted: [AtomicU64; 2],
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
        if self.ownership.enter() {
            loop {
                self.work();
                if self.ownership.leave() {
                    return;
                }
            }
        }
    }

    /// As one that does not look again.
    fn drive_once(&self) {
        if self.ownership.enter() {
            self.work();
            self.ownership.abandon();
        }
    }

    /// As one that does not ask whether another thread is the owner.
    fn drive_at_once(&self) {
        self.work();
    }
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
    if queue.ownership.enter() {
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
