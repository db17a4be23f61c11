//! Slots of a send queue are given back by whoever polls, drops and resets, with plain stores: none is reused before its
//! request was read, and none that was given back is lost (Q5).

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;
use transport_rxe_loop::protocol::number::Position;
use transport_rxe_loop::protocol::retired::Retired;
use transport_rxe_loop::protocol::tag;
use transport_rxe_loop::sync::Site;
use verify_loom::harness::{UNORDERED, model};

const CAPACITY: u32 = 4;
const LOST: &str = "a slot that was given back is lost";

/// A send queue, and the words of its first request.
#[derive(Default)]
struct Queue {
    retired: Retired,
    request: UnsafeCell<()>,
}

// SAFETY: the cell holds nothing.
unsafe impl Sync for Queue {}

fn tag_of(end: u64) -> u32 {
    tag::of_send(Position::new(end))
}

/// The request was read, and its slot is given back; another thread posts to that slot.
fn reuse(give: fn(&Retired)) {
    let queue = Arc::new(Queue::default());
    let posts = thread::spawn({
        let queue = Arc::clone(&queue);
        move || {
            if queue.retired.position() != Position::new(0) {
                queue.request.with_mut(|_| ());
            }
        }
    });
    queue.request.with(|_| ());
    give(&queue.retired);
    posts.join().unwrap();
}

#[test]
fn q05_a_slot_that_was_given_back_was_read() {
    let ways: [(&str, fn(&Retired)); 3] = [
        ("polled", |retired| retired.poll(tag_of(1), CAPACITY)),
        ("dropped", |retired| retired.drop(tag_of(1), CAPACITY)),
        ("reset", |retired| retired.empty(Position::new(1))),
    ];
    for (name, give) in ways {
        model(format!("a send that is {name}"), move || reuse(give))
            .must_fail_without(Site::Retire, UNORDERED)
            .must_fail_without(Site::SeeRetired, UNORDERED);
    }
}

/// A completion of two is polled while another of three is dropped, and the queue is reset behind four.
fn give_back_at_once() {
    let queue = Arc::new(Queue::default());
    let others: [fn(&Retired); 2] =
        [|retired| retired.drop(tag_of(3), CAPACITY), |retired| retired.empty(Position::new(4))];
    let threads = others.map(|give| {
        let queue = Arc::clone(&queue);
        thread::spawn(move || give(&queue.retired))
    });
    queue.retired.poll(tag_of(1), CAPACITY);
    queue.retired.poll(tag_of(2), CAPACITY);
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(queue.retired.position(), Position::new(4), "{LOST}");
}

#[test]
fn q05_what_is_given_back_at_once_is_given_back() {
    model("a poll, a drop and a reset at once", give_back_at_once);
}
