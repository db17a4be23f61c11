//! In-flight markers against changes of state. A failing queue pair is flushed while its peer carries a request
//! out: each receive completes once, in order, and none is left behind (Q2, C8). When RESET, destroying or
//! deregistering is over, no byte moves any more.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;
use transport_rxe_loop::protocol::in_flight::{ChangeFence, InFlight};
use transport_rxe_loop::protocol::number::Position;
use transport_rxe_loop::protocol::state::QpState;
use transport_rxe_loop::sync::{self, AtomicU32, Site};
use verify_loom::harness::{UNORDERED, model};
use verify_loom::receiver::{LATE, LEFT, ORDER, Receiver};

/// A queue pair that is connected to another, the initiator, of which there is only its counter.
struct Pair {
    target: Receiver,
    in_flight: InFlight,
}

impl Pair {
    /// In RTS, with so many receives.
    fn with_receives(count: u64) -> Arc<Self> {
        let (target, in_flight) = (Receiver::with_receives(count), InFlight::default());
        Arc::new(Self { target, in_flight })
    }

    /// The initiator carries out one request, as long as the target listens.
    fn execute(&self, cached_posted: &mut Position, looks_at_close: bool) {
        self.in_flight.open();
        self.target.take(cached_posted);
        self.in_flight.close();
        if looks_at_close && self.target.is(QpState::Err) {
            self.flush();
        }
    }

    /// What who wakes the target has done: run it, in ERR.
    fn flush(&self) {
        self.target.flush(|| (!ChangeFence::after_change().is_open(&self.in_flight)).then_some(()));
    }

    fn fail(&self) {
        self.target.fail();
        self.flush();
    }
}

fn fail_while_executing(requests: u64, looks_at_close: bool) {
    let pair = Pair::with_receives(requests + 1);
    let initiator = thread::spawn({
        let pair = Arc::clone(&pair);
        move || {
            let mut cached_posted = Position::default();
            (0..requests).for_each(|_| pair.execute(&mut cached_posted, looks_at_close));
        }
    });
    pair.fail();
    initiator.join().unwrap();
    pair.target.expect_all();
}

#[test]
fn q02_a_peer_that_fails_is_flushed_behind_the_receive_in_flight() {
    model("a peer fails while a request is carried out", || fail_while_executing(1, true))
        .must_fail_without(Site::OpenFence, ORDER)
        .must_fail_without(Site::ChangeFence, ORDER)
        .must_fail_without(Site::CloseFence, LEFT)
        .must_fail_as("the look at the state after closing", LEFT, || {
            fail_while_executing(1, false);
        });
    model("a peer fails while two requests are carried out", || fail_while_executing(2, true))
        .must_fail_without(Site::OpenFence, ORDER)
        .must_fail_without(Site::CloseFence, LEFT);
}

/// The owner posts one more receive while somebody fails the queue pair.
fn fail_while_posting(looks_after: bool) {
    let pair = Pair::with_receives(1);
    let owner = thread::spawn({
        let pair = Arc::clone(&pair);
        move || {
            let failed_before = pair.target.is(QpState::Err);
            assert!(!pair.target.post(2), "nobody starves");
            if failed_before || looks_after && pair.target.is(QpState::Err) {
                pair.flush();
            }
        }
    });
    pair.fail();
    owner.join().unwrap();
    pair.target.expect_all();
}

#[test]
fn q02_a_receive_that_is_posted_while_its_queue_pair_fails_is_flushed() {
    model("a receive is posted while its queue pair fails", || fail_while_posting(true))
        .must_fail_without(Site::PostFence, LEFT)
        .must_fail_without(Site::ChangeFence, LEFT)
        .must_fail_as("the look at the state after posting", LEFT, || fail_while_posting(false));
}

/// Bytes that move while the word, a key or a state, is what the initiator knows.
struct Bytes {
    door: AtomicU32,
    in_flight: InFlight,
    /// The counter that the initiator's own process goes by.
    own: InFlight,
    cell: UnsafeCell<()>,
}

// SAFETY: the cell holds nothing.
unsafe impl Sync for Bytes {}

const OPEN: u32 = 17;

/// Who shuts the door.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Another,
    /// A process that is the initiator's, too.
    Itself,
}

/// Somebody shuts the door, waits, and gives the memory back, while so many requests are carried out.
fn invalidates(requests: u32, by: By, waits: bool) {
    let bytes = Arc::new(Bytes {
        door: AtomicU32::new(OPEN),
        in_flight: InFlight::default(),
        own: InFlight::default(),
        cell: UnsafeCell::new(()),
    });
    let initiator = thread::spawn({
        let bytes = Arc::clone(&bytes);
        move || {
            for _ in 0..requests {
                if by == By::Itself {
                    bytes.own.open_first();
                }
                bytes.in_flight.open();
                if sync::acquire(&bytes.door) == OPEN {
                    bytes.cell.with_mut(|_| ());
                }
                if by == By::Itself {
                    bytes.own.close_last();
                }
                bytes.in_flight.close();
            }
        }
    });
    let in_flight = if by == By::Itself { &bytes.own } else { &bytes.in_flight };
    sync::release(&bytes.door, 0);
    let fence = ChangeFence::after_change();
    if waits {
        assert!(fence.wait(in_flight, || {
            thread::yield_now();
            true
        }));
    }
    bytes.cell.with_mut(|_| ());
    initiator.join().unwrap();
}

#[test]
fn q10_no_byte_moves_through_a_dead_key() {
    for requests in [1, 2] {
        let run = move |waits| invalidates(requests, By::Another, waits);
        model(format!("a key dies during {requests} requests"), move || run(true))
            .must_fail_without(Site::OpenFence, UNORDERED)
            .must_fail_without(Site::ChangeFence, UNORDERED)
            .must_fail_without(Site::StoreFenced, UNORDERED)
            .must_fail_without(Site::SeeClosed, UNORDERED)
            .must_fail_as("the wait", UNORDERED, move || run(false));
    }
}

#[test]
fn q10_nor_through_one_that_dies_where_the_request_is_made() {
    model("a key dies in its own process", || invalidates(1, By::Itself, true))
        .must_fail_without(Site::OpenFence, UNORDERED)
        .must_fail_without(Site::ChangeFence, UNORDERED)
        .must_fail_without(Site::SeeClosed, UNORDERED)
        .must_fail_as("the wait", UNORDERED, || invalidates(1, By::Itself, false));
}

/// The owner empties its queue pair, and makes it anew for the same peer, which carries requests out.
fn reset(waits: bool) {
    let pair = Pair::with_receives(2);
    let initiator = thread::spawn({
        let pair = Arc::clone(&pair);
        move || {
            let mut cached_posted = Position::default();
            pair.execute(&mut cached_posted, true);
            pair.execute(&mut cached_posted, true);
        }
    });
    pair.target.enter();
    let fence = ChangeFence::after_change();
    if waits {
        assert!(fence.wait(&pair.in_flight, || {
            thread::yield_now();
            true
        }));
    }
    let before = pair.target.empty();
    pair.target.leave_reset(QpState::Init);
    initiator.join().unwrap();
    pair.target.expect_none_since(before);
}

#[test]
fn q01_no_receive_completes_after_reset() {
    model("RESET while requests are carried out", || reset(true))
        .must_fail_without(Site::OpenFence, LATE)
        .must_fail_without(Site::ChangeFence, LATE)
        .must_fail_as("the wait", LATE, || reset(false));
}
