//! Who owns a send queue: one thread at a time works on it, and nothing that was posted is left when all have gone.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;
use transport_rxe_loop::protocol::ownership::Ownership;
use transport_rxe_loop::sync::{self, AtomicU64, Site};
use verify_loom::harness::{UNORDERED, model};
use verify_loom::initiator::{Care, Initiator};
use verify_loom::threads::spawn;

const LEFT: &str = "a request is left";

/// A send queue: how many requests were posted, and how many were carried out.
#[derive(Default)]
struct SendQueue {
    initiator: Initiator,
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
        self.initiator.run(|| self.work(), || ());
    }

    /// As the thread that posts.
    fn drive_to_post(&self) {
        if !self.initiator.post(Care::Looks, || self.work(), || ()) {
            self.drive();
        }
    }

    /// The same, with more to do than one run.
    fn drive_to_post_much(&self) {
        if !self.initiator.post(Care::GoesOn, || self.work(), || ()) {
            self.drive();
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
    let other = spawn(&queue, move |queue| queue.post(1, drive));
    queue.post(0, drive);
    queue.post(0, drive);
    other.join().unwrap();
    assert_eq!(queue.done(), 3, "{LEFT}");
}

#[test]
fn c08_whoever_posts_while_another_works_has_it_carried_out() {
    model("two threads post", || post_at_once(SendQueue::drive))
        .must_fail_without([Site::Reschedule], LEFT)
        .must_fail_as("entering", UNORDERED, || post_at_once(SendQueue::drive_at_once));
}

/// One thread posts by the short way, others by the long one.
fn post_with_the_marker(times: u64, others: usize, drive: fn(&SendQueue)) {
    let queue = Arc::new(SendQueue::default());
    let threads: Vec<_> = (0..others)
        .map(|nth| spawn(&queue, move |queue| queue.post(1 + nth, SendQueue::drive)))
        .collect();
    (0..times).for_each(|_| queue.post(0, drive));
    threads.into_iter().for_each(|other| other.join().unwrap());
    assert_eq!(queue.done(), times + others as u64, "{LEFT}");
}

#[test]
fn c08_who_posts_enters_as_it_sets_its_marker_and_misses_nobody() {
    let run = |times, others| post_with_the_marker(times, others, SendQueue::drive_to_post);
    model("a thread posts two requests, and another one", move || run(2, 1))
        .must_fail_without([Site::Reschedule], LEFT)
        .must_fail_as("entering", UNORDERED, || {
            post_with_the_marker(1, 1, SendQueue::drive_at_once)
        });
    model("a thread posts a request, and two others", move || run(1, 2))
        .must_fail_without([Site::Reschedule], LEFT);
    model("a thread posts much, and another one", || {
        post_with_the_marker(1, 1, SendQueue::drive_to_post_much)
    })
    .must_fail_without([Site::Reschedule], LEFT);
}

/// A late alarm finds an entry that is free, where a queue pair is made and posts.
fn run_late(leaves: fn(&Ownership) -> bool) {
    let queue = Arc::new((SendQueue::default(), AtomicU64::new(0)));
    let late = spawn(&queue, move |queue| {
        let (queue, owner) = &*queue;
        let ownership = &queue.initiator.ownership;
        if ownership.enter() {
            while sync::acquire(owner) == 0 {
                if leaves(ownership) {
                    return;
                }
            }
            queue.work();
            while !ownership.leave() {
                queue.work();
            }
        }
    });
    sync::release(&queue.1, 1);
    queue.0.post(0, SendQueue::drive_to_post);
    late.join().unwrap();
    assert_eq!(queue.0.done(), 1, "{LEFT}");
}

#[test]
fn c08_who_runs_a_free_entry_late_keeps_nothing_from_the_next_in_it() {
    let abandons = |ownership: &Ownership| {
        ownership.abandon();
        true
    };
    model("an alarm comes late", || run_late(Ownership::leave)).must_fail_as(
        "looking again",
        LEFT,
        move || run_late(abandons),
    );
}

/// One hands its work to the service thread after a while, as another posts on; it may have been rescheduled by then.
fn hand_over(abandons_first: bool) {
    let queue = Arc::new(SendQueue::default());
    let poster = spawn(&queue, |queue| queue.post(1, SendQueue::drive));
    let service = |queue: &Arc<SendQueue>| spawn(queue, move |queue| queue.drive());
    sync::store(&queue.posted[0], 1);
    let mut handed = None;
    let ownership = &queue.initiator.ownership;
    if ownership.enter() {
        queue.work();
        if abandons_first {
            ownership.abandon();
        }
        handed = Some(service(&queue));
        if !abandons_first {
            ownership.abandon();
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
fn seize(seizes: fn(&Ownership) -> bool, drive: fn(&SendQueue)) {
    let queue = Arc::new(SendQueue::default());
    let poster = spawn(&queue, move |queue| queue.post(1, drive));
    while !seizes(&queue.initiator.ownership) {
        thread::yield_now();
    }
    queue.work();
    queue.initiator.ownership.abandon();
    poster.join().unwrap();
    // Nobody has it, and the next one works as ever.
    queue.post(0, SendQueue::drive);
    assert_eq!(queue.done(), 2, "{LEFT}");
}

#[test]
fn q02_who_seizes_it_is_alone_and_gives_it_back() {
    for (what, drive) in
        [("runs", SendQueue::drive as fn(&SendQueue)), ("posts", SendQueue::drive_to_post)]
    {
        model(format!("a send queue is seized as a thread {what}"), move || {
            seize(Ownership::try_seize, drive)
        })
        .must_fail_as("seizing it", UNORDERED, move || seize(|_| true, drive));
    }
}
