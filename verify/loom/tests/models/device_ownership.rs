//! Who owns a send queue: one thread at a time works on it, and nothing that was posted is left when all have gone.

use std::sync::Arc;

use loom::thread;
use transport_rxe_loop::protocol::ownership::Ownership;
use transport_rxe_loop::sync::{self, AtomicU64, Site};
use verify_loom::harness::{UNORDERED, model};
use verify_loom::initiator::{Care, Initiator};
use verify_loom::threads::{Watched, spawn};

const LEFT: &str = "a request is left";

/// How a thread has what it has posted carried out.
type Way = fn(&SendQueue);

/// A send queue: how many requests were posted, and how many were carried out.
#[derive(Default)]
struct SendQueue {
    initiator: Initiator,
    posted: [AtomicU64; 3],
    /// The owner's.
    done: Watched<u64>,
}

impl SendQueue {
    fn posted(&self) -> u64 {
        self.posted.iter().map(sync::load).sum()
    }

    /// What the owner does.
    fn work(&self) {
        self.done.set(self.posted());
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

    /// As one that does not look again.
    fn drive_once(&self) {
        let ownership = &self.initiator.ownership;
        if ownership.enter() {
            self.work();
            ownership.abandon();
        }
    }

    /// As the thread that posts, which leaves what it finds owned.
    fn drive_if_free(&self) {
        self.initiator.post(Care::Looks, || self.work(), || ());
    }

    /// As the thread that posts.
    fn drive_to_post(&self, care: Care) {
        if !self.initiator.post(care, || self.work(), || ()) {
            self.drive();
        }
    }
}

/// One thread posts by a way of its own, others by the long one.
fn post(times: u64, others: usize, drive: Way) {
    let queue = Arc::new(SendQueue::default());
    let threads: Vec<_> = (0..others)
        .map(|nth| spawn(&queue, move |queue| queue.post(1 + nth, SendQueue::drive)))
        .collect();
    (0..times).for_each(|_| queue.post(0, drive));
    threads.into_iter().for_each(|other| other.join().unwrap());
    assert_eq!(queue.done.get(), times + others as u64, "{LEFT}");
}

#[test]
fn c08_whoever_posts_while_another_works_has_it_carried_out() {
    let ways: [(&str, u64, usize, Way); 4] = [
        ("two threads post", 2, 1, SendQueue::drive),
        // It enters as it sets its marker; the last one has more to do than one run.
        ("a thread posts two requests, and another one", 2, 1, |it| it.drive_to_post(Care::Looks)),
        ("a thread posts a request, and two others", 1, 2, |it| it.drive_to_post(Care::Looks)),
        ("a thread posts much, and another one", 1, 1, |it| it.drive_to_post(Care::GoesOn)),
    ];
    for (name, times, others, drive) in ways {
        model(name, move || post(times, others, drive)).must_fail_without([Site::Reschedule], LEFT);
    }
    let two = model("two threads post a request each", || post(1, 1, SendQueue::drive));
    two.must_fail_as("entering", UNORDERED, || post(1, 1, SendQueue::work));
    two.must_fail_as("looking again", LEFT, || post(1, 1, SendQueue::drive_once));
    two.must_fail_as("entering another way", LEFT, || post(1, 1, SendQueue::drive_if_free));
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
    queue.0.post(0, |queue| queue.drive_to_post(Care::Looks));
    late.join().unwrap();
    assert_eq!(queue.0.done.get(), 1, "{LEFT}");
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
    assert_eq!(queue.done.get(), 2, "{LEFT}");
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
fn seize(seizes: fn(&Ownership) -> bool, drive: Way) {
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
    assert_eq!(queue.done.get(), 2, "{LEFT}");
}

#[test]
fn q02_who_seizes_it_is_alone_and_gives_it_back() {
    let ways: [(&str, Way); 2] =
        [("runs", SendQueue::drive), ("posts", |queue| queue.drive_to_post(Care::Looks))];
    for (what, drive) in ways {
        model(format!("a send queue is seized as a thread {what}"), move || {
            seize(Ownership::try_seize, drive)
        })
        .must_fail_as("seizing it", UNORDERED, move || seize(|_| true, drive));
    }
}
