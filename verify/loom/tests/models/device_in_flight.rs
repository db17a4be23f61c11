//! In-flight markers against changes of state. A failing queue pair is flushed while its peer carries a request
//! out: each receive completes once, in order, and none is left behind (Q2, C8). When RESET, destroying or
//! deregistering is over, no byte moves any more.

use cq_core::setup::QpState;

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;
use transport_rxe_loop::protocol::in_flight::ChangeFence;
use transport_rxe_loop::protocol::number::Position;
use transport_rxe_loop::sync::{self, AtomicU32, Site};
use verify_loom::harness::{UNORDERED, model};
use verify_loom::initiator::{Care, Initiator};
use verify_loom::receiver::{LATE, LEFT, ORDER, Receiver};
use verify_loom::threads::spawn;

/// A queue pair that is connected to another, the initiator, of which there are only its words.
struct Pair {
    target: Receiver,
    initiator: Initiator,
}

impl Pair {
    /// In RTS, with so many receives.
    fn with_receives(count: u64) -> Arc<Self> {
        let (target, initiator) = (Receiver::with_receives(count), Initiator::default());
        Arc::new(Self { target, initiator })
    }

    /// The initiator carries out one request, as long as the target listens.
    fn execute(&self, cached_posted: &mut Position, care: Care, looks_at_close: bool) {
        let has_failed_before = self.target.is(QpState::ERR);
        let look = || {
            if has_failed_before || looks_at_close && self.target.is(QpState::ERR) {
                self.flush();
            }
        };
        self.initiator.post(care, || self.target.take(cached_posted), look);
    }

    /// The same by another thread.
    fn run(&self) {
        let mut cached_posted = Position::default();
        let look = || {
            if self.target.is(QpState::ERR) {
                self.flush();
            }
        };
        self.initiator.run(|| self.target.take(&mut cached_posted), look);
    }

    /// What who wakes the target has done: run it, in ERR.
    fn flush(&self) {
        let are_open = || self.initiator.markers.are_open(&ChangeFence::after_change());
        self.target.flush(|| (!are_open()).then_some(()));
    }

    fn fail(&self) {
        self.target.fail();
        self.flush();
    }
}

fn fail_while_executing(requests: u64, care: Care, looks_at_close: bool) {
    let pair = Pair::with_receives(requests + 1);
    let initiator = spawn(&pair, move |pair| {
        let mut cached_posted = Position::default();
        (0..requests).for_each(|_| pair.execute(&mut cached_posted, care, looks_at_close));
    });
    pair.fail();
    initiator.join().unwrap();
    pair.target.expect_all();
}

#[test]
fn q02_a_peer_that_fails_is_flushed_behind_the_receive_in_flight() {
    let run = |requests, looks| fail_while_executing(requests, Care::Looks, looks);
    model("a peer fails while a request is carried out", move || run(1, true))
        .must_fail_without(Site::OpenFence, ORDER)
        .must_fail_without(Site::ChangeFence, ORDER)
        .must_fail_without(Site::CloseFence, LEFT)
        .must_fail_as("the look at the state after closing", LEFT, move || run(1, false));
    model("a peer fails while two requests are carried out", move || run(2, true))
        .must_fail_without(Site::OpenFence, ORDER)
        .must_fail_without(Site::CloseFence, LEFT);
    model("a peer fails while much is carried out", || fail_while_executing(1, Care::GoesOn, true))
        .must_fail_without(Site::OpenFence, ORDER)
        .must_fail_as("the look at the state after closing", LEFT, || {
            fail_while_executing(1, Care::GoesOn, false)
        });
}

/// The target fails while two threads carry requests out.
fn fail_while_two_execute() {
    let pair = Pair::with_receives(3);
    let runs = spawn(&pair, |pair| pair.run());
    let posts = spawn(&pair, |pair| pair.execute(&mut Position::default(), Care::Looks, true));
    pair.fail();
    [runs, posts].into_iter().for_each(|thread| thread.join().unwrap());
    pair.target.expect_all();
}

#[test]
fn q02_a_peer_that_fails_is_flushed_when_two_threads_carry_requests_out() {
    model("a peer fails while two threads carry requests out", fail_while_two_execute)
        .must_fail_without(Site::OpenFence, ORDER);
}

/// Another process has set the owner's marker, and the thread that posts finds that its peer has failed: it enters again, as
/// one that corrects the markers.
fn fail_while_corrupted(enters_again: bool) {
    let pair = Pair::with_receives(2);
    pair.initiator.markers.owner.open_first();
    let posts = spawn(&pair, move |pair| {
        pair.execute(&mut Position::default(), Care::Looks, true);
        if pair.target.is(QpState::ERR) && enters_again {
            pair.run();
        }
    });
    pair.fail();
    posts.join().unwrap();
    // One that failed later finds the marker set by the other process, which nothing can help.
    if !pair.initiator.markers.are_open(&ChangeFence::after_change()) || !enters_again {
        pair.target.expect_all();
    }
}

#[test]
fn q02_a_peer_that_fails_is_flushed_though_a_marker_was_corrupted() {
    model("a peer fails while a marker is corrupted", || fail_while_corrupted(true)).must_fail_as(
        "entering again",
        LEFT,
        || fail_while_corrupted(false),
    );
}

/// The target fails while the initiator's queue is owned, and the thread that posts sets its marker for nothing.
fn fail_while_entering(looks_at_close: bool) {
    let pair = Pair::with_receives(1);
    assert!(pair.initiator.ownership.try_seize());
    let poster = spawn(&pair, move |pair| {
        pair.execute(&mut Position::default(), Care::Looks, looks_at_close)
    });
    pair.fail();
    poster.join().unwrap();
    pair.target.expect_all();
}

#[test]
fn q02_a_peer_that_fails_is_flushed_though_a_marker_was_set_for_nothing() {
    model("a peer fails while a thread finds the queue owned", || fail_while_entering(true))
        .must_fail_without(Site::CloseFence, LEFT)
        .must_fail_as("the look at the state after closing", LEFT, || fail_while_entering(false));
}

/// The owner posts one more receive while somebody fails the queue pair.
fn fail_while_posting(looks_after: bool) {
    let pair = Pair::with_receives(1);
    let owner = spawn(&pair, move |pair| {
        let failed_before = pair.target.is(QpState::ERR);
        assert!(!pair.target.post(2), "nobody starves");
        if failed_before || looks_after && pair.target.is(QpState::ERR) {
            pair.flush();
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
    initiator: Initiator,
    cell: UnsafeCell<()>,
}

// SAFETY: the cell holds nothing.
unsafe impl Sync for Bytes {}

const OPEN: u32 = 17;

/// Who shuts the door.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Another,
    /// A process that is the initiator's, too.
    Itself,
}

impl Bytes {
    fn new() -> Arc<Self> {
        let (door, cell) = (AtomicU32::new(OPEN), UnsafeCell::new(()));
        Arc::new(Self { door, initiator: Initiator::default(), cell })
    }

    fn copy(&self) {
        if sync::acquire(&self.door) == OPEN {
            self.cell.with_mut(|_| ());
        }
    }

    /// The thread that posts carries requests out; it leaves what it finds owned.
    fn posts(self: &Arc<Self>, requests: u32, care: Care) -> thread::JoinHandle<()> {
        spawn(self, move |bytes| {
            for _ in 0..requests {
                bytes.initiator.post(care, || bytes.copy(), || ());
            }
        })
    }

    /// Another thread does so.
    fn runs(self: &Arc<Self>) -> thread::JoinHandle<()> {
        spawn(self, move |bytes| {
            bytes.initiator.run(|| bytes.copy(), || ());
        })
    }

    /// Somebody shuts the door, waits, and gives the memory back.
    fn shut(&self, by: By, waits: bool) {
        let Initiator { markers, ownership } = &self.initiator;
        sync::release(&self.door, 0);
        let fence = ChangeFence::after_change();
        let wait_on = || {
            thread::yield_now();
            true
        };
        let is_over = match by {
            _ if !waits => true,
            By::Another => markers.wait(&fence, wait_on),
            By::Itself => fence.wait(ownership, wait_on),
        };
        assert!(is_over);
        self.cell.with_mut(|_| ());
    }
}

/// Somebody shuts the door while so many requests are carried out.
fn invalidates(requests: u32, by: By, waits: bool) {
    let bytes = Bytes::new();
    let initiator = bytes.posts(requests, Care::Looks);
    bytes.shut(by, waits);
    initiator.join().unwrap();
}

#[test]
fn q10_no_byte_moves_through_a_dead_key() {
    for requests in [1, 2] {
        let run = move |waits| invalidates(requests, By::Another, waits);
        model(format!("a key dies during {requests} requests"), move || run(true))
            .must_fail_without(Site::OpenFence, UNORDERED)
            .must_fail_without(Site::ChangeFence, UNORDERED)
            .must_fail_without(Site::CloseFirst, UNORDERED)
            .must_fail_without(Site::SeeClosed, UNORDERED)
            .must_fail_as("the wait", UNORDERED, move || run(false));
    }
}

/// The same while another thread carries a request out, which corrects the markers before. Or both do so, one after the other
/// with the same marker.
fn invalidates_with_two(by: By, posts: bool, waits: bool) {
    let bytes = Bytes::new();
    let threads = [if posts { bytes.posts(1, Care::Looks) } else { bytes.runs() }, bytes.runs()];
    bytes.shut(by, waits);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn q10_nor_when_two_threads_carry_requests_out() {
    for by in [By::Another, By::Itself] {
        model(format!("a key dies during requests of two threads, {by:?}"), move || {
            invalidates_with_two(by, true, true)
        })
        .must_fail_without(Site::OpenFence, UNORDERED)
        .must_fail_as("the wait", UNORDERED, move || invalidates_with_two(by, true, false));
    }
    model("a key dies during requests of two threads with one marker", || {
        invalidates_with_two(By::Another, false, true)
    })
    .must_fail_without(Site::OpenFirst, UNORDERED)
    .must_fail_without(Site::CloseFirst, UNORDERED);
}

/// Another process has corrupted the poster's marker, and an owner corrects it while the thread that posts enters.
fn invalidates_corrected(care: Care) {
    let bytes = Bytes::new();
    bytes.initiator.markers.poster.open_first();
    let corrects = spawn(&bytes, |bytes| {
        if bytes.initiator.ownership.enter() {
            let _corrected = bytes.initiator.markers.correct();
            bytes.initiator.ownership.abandon();
        }
    });
    let posts = bytes.posts(1, care);
    bytes.shut(By::Another, true);
    [posts, corrects].into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn q10_nor_when_the_marker_is_corrected_that_was_just_set() {
    model("a key dies while a marker is corrected", || invalidates_corrected(Care::Looks))
        .must_fail_as("the second look", UNORDERED, || invalidates_corrected(Care::DoesNotLook));
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
    let initiator = spawn(&pair, |pair| {
        let mut cached_posted = Position::default();
        pair.execute(&mut cached_posted, Care::Looks, true);
        pair.execute(&mut cached_posted, Care::Looks, true);
    });
    pair.target.enter();
    let fence = ChangeFence::after_change();
    if waits {
        assert!(pair.initiator.markers.wait(&fence, || {
            thread::yield_now();
            true
        }));
    }
    let before = pair.target.empty();
    pair.target.leave_reset(QpState::INIT);
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
