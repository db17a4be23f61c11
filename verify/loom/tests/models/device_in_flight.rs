//! In-flight markers against changes of state. A failing queue pair is flushed while its peer carries a request
//! out: each receive completes once, in order, and none is left behind (Q2, C8). When RESET, destroying or
//! deregistering is over, no byte moves any more; nor do two producers push to a completion queue that one had alone (C8).

use cq_verbs::setup::QpState;

use std::sync::Arc;

use loom::thread;
use transport_rxe_loop::protocol::in_flight::ChangeFence;
use transport_rxe_loop::protocol::number::{Position, QpNumber};
use transport_rxe_loop::protocol::sole::SoleProducer;
use transport_rxe_loop::sync::{self, AtomicU32, Site};
use verify_loom::harness::{UNORDERED, model};
use verify_loom::initiator::{Care, Initiator};
use verify_loom::receiver::{LATE, LEFT, ORDER, Receiver};
use verify_loom::threads::{Watched, spawn};

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

    /// The thread that posts carries out so many requests, as long as the target listens.
    fn execute(&self, requests: u64, care: Care) {
        let mut cached_posted = Position::default();
        for _ in 0..requests {
            self.initiator.post(care, || self.target.take(&mut cached_posted), || self.look());
        }
    }

    /// Another thread carries out one.
    fn run(&self) {
        let mut cached_posted = Position::default();
        self.initiator.run(|| self.target.take(&mut cached_posted), || self.look());
    }

    /// The owner posts one more receive than there was.
    fn post(&self) {
        assert!(!self.target.post(2), "nobody starves");
        self.look();
    }

    /// At the state of the target, after each request.
    fn look(&self) {
        if self.target.is(QpState::ERR) {
            self.flush();
        }
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

type Does = fn(&Pair);

/// What the target fails during: so many receives are posted, what is done before, and by each thread. Without the first of
/// these sites, receives complete out of order; without the second ones, one is left.
type Case = (&'static str, u64, Does, &'static [Does], &'static [Site], &'static [Site]);

const NOTHING: Does = |_| ();
const SENDS: Does = |pair| pair.execute(1, Care::Looks);
const SENDS_TWICE: Does = |pair| pair.execute(2, Care::Looks);
const SENDS_MUCH: Does = |pair| pair.execute(1, Care::GoesOn);
const SEIZED: Does = |pair| assert!(pair.initiator.ownership.try_seize());

const OPEN_CHANGE: &[Site] = &[Site::OpenFence, Site::ChangeFence];
const POST_CHANGE: &[Site] = &[Site::PostFence, Site::ChangeFence];
const CLOSE: &[Site] = &[Site::CloseFence];

const CASES: [Case; 6] = [
    ("a request is carried out", 2, NOTHING, &[SENDS], OPEN_CHANGE, CLOSE),
    ("two requests are carried out", 3, NOTHING, &[SENDS_TWICE], OPEN_CHANGE, CLOSE),
    ("much is carried out", 2, NOTHING, &[SENDS_MUCH], OPEN_CHANGE, &[]),
    ("two threads carry requests out", 3, NOTHING, &[Pair::run, SENDS], &[Site::OpenFence], &[]),
    // The thread that posts sets its marker for nothing.
    ("a thread finds the queue owned", 1, SEIZED, &[SENDS], &[], CLOSE),
    ("a receive is posted", 1, NOTHING, &[Pair::post], &[], POST_CHANGE),
];

#[test]
fn q02_a_peer_that_fails_is_flushed_behind_the_receive_in_flight() {
    for (name, receives, before, threads, order, left) in CASES {
        let run = move || {
            let pair = Pair::with_receives(receives);
            before(&pair);
            let spawn = |does: &Does| {
                let does = *does;
                spawn(&pair, move |pair| does(&pair))
            };
            let threads: Vec<_> = threads.iter().map(spawn).collect();
            pair.fail();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            pair.target.expect_all();
        };
        model(format!("a peer fails while {name}"), run)
            .must_fail_without(order.iter().copied(), ORDER)
            .must_fail_without(left.iter().copied(), LEFT);
    }
}

/// Another process has set the owner's marker, and the thread that posts finds that its peer has failed: it enters again, as
/// one that corrects the markers.
fn fail_while_corrupted(enters_again: bool) {
    let pair = Pair::with_receives(2);
    pair.initiator.markers.owner.open_first();
    let posts = spawn(&pair, move |pair| {
        pair.execute(1, Care::Looks);
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

/// What has to be open for bytes to move.
enum Door {
    /// A key, which is dead when another word stands there.
    Key(AtomicU32),
    /// A queue whose only producer pushes without the lock.
    Queue(SoleProducer),
}

type Make = fn() -> Door;

const OPEN: u32 = 17;
const ALONE: QpNumber = QpNumber::new(7);

impl Door {
    fn key() -> Self {
        Self::Key(AtomicU32::new(OPEN))
    }

    fn queue() -> Self {
        let sole = SoleProducer::default();
        assert!(sole.claim(ALONE));
        Self::Queue(sole)
    }

    fn is_open(&self) -> bool {
        match self {
            Self::Key(key) => sync::acquire(key) == OPEN,
            Self::Queue(sole) => sole.is(ALONE),
        }
    }

    fn shut(&self) {
        match self {
            Self::Key(key) => sync::release(key, 0),
            Self::Queue(sole) => assert_eq!(sole.share(), Some(ALONE)),
        }
    }
}

/// Bytes that move while the door, which the initiator knows, is open.
struct Bytes {
    door: Door,
    initiator: Initiator,
    bytes: Watched,
}

/// Who shuts the door.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Another,
    /// A process that is the initiator's, too.
    Itself,
}

impl Bytes {
    fn behind(door: Door) -> Arc<Self> {
        Arc::new(Self { door, initiator: Initiator::default(), bytes: Watched::default() })
    }

    fn copy(&self) {
        if self.door.is_open() {
            self.bytes.write();
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
    fn shut(&self, by: By) {
        let Initiator { markers, ownership } = &self.initiator;
        self.door.shut();
        let fence = ChangeFence::after_change();
        let wait_on = || {
            thread::yield_now();
            true
        };
        let is_over = match by {
            By::Another => markers.wait(&fence, wait_on),
            By::Itself => fence.wait(ownership, wait_on),
        };
        assert!(is_over);
        self.bytes.write();
    }
}

/// Somebody shuts a door while so many requests are carried out.
fn shut_during(requests: u32, door: Make, by: By) {
    let bytes = Bytes::behind(door());
    let initiator = bytes.posts(requests, Care::Looks);
    bytes.shut(by);
    initiator.join().unwrap();
}

/// Also where the only producer of a queue is waited for by the next (C8).
#[test]
fn q10_no_byte_moves_through_a_dead_key() {
    for requests in [1, 2] {
        let doors: [(&str, Make, By); 3] = [
            ("a key dies", Door::key, By::Another),
            ("a key dies in its own process", Door::key, By::Itself),
            ("a queue is shared", Door::queue, By::Itself),
        ];
        for (what, door, by) in doors {
            let name = format!("{what} during {requests} requests");
            let model = model(name, move || shut_during(requests, door, by));
            model.must_fail_without(
                [Site::OpenFence, Site::ChangeFence, Site::SeeClosed],
                UNORDERED,
            );
            if by == By::Another {
                model.must_fail_without([Site::CloseFirst], UNORDERED);
            }
        }
    }
}

/// A key dies while another thread carries a request out, which corrects the markers before. Or both do so, one after the
/// other with the same marker.
fn shut_during_two(by: By, posts: bool) {
    let bytes = Bytes::behind(Door::key());
    let threads = [if posts { bytes.posts(1, Care::Looks) } else { bytes.runs() }, bytes.runs()];
    bytes.shut(by);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn q10_nor_when_two_threads_carry_requests_out() {
    for by in [By::Another, By::Itself] {
        let name = format!("a key dies during requests of two threads, {by:?}");
        model(name, move || shut_during_two(by, true))
            .must_fail_without([Site::OpenFence, Site::ChangeFence], UNORDERED);
    }
    model("a key dies during requests of two threads with one marker", || {
        shut_during_two(By::Another, false)
    })
    .must_fail_without([Site::OpenFirst, Site::CloseFirst], UNORDERED);
}

/// Another process has corrupted the poster's marker, and an owner corrects it while the thread that posts enters.
fn shut_during_correction(care: Care) {
    let bytes = Bytes::behind(Door::key());
    bytes.initiator.markers.poster.open_first();
    let corrects = spawn(&bytes, |bytes| {
        if bytes.initiator.ownership.enter() {
            let _corrected = bytes.initiator.markers.correct();
            bytes.initiator.ownership.abandon();
        }
    });
    let posts = bytes.posts(1, care);
    bytes.shut(By::Another);
    [posts, corrects].into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn q10_nor_when_the_marker_is_corrected_that_was_just_set() {
    model("a key dies while a marker is corrected", || shut_during_correction(Care::Looks))
        .must_fail_as("the second look", UNORDERED, || shut_during_correction(Care::DoesNotLook));
}

/// The owner empties its queue pair, and makes it anew for the same peer, which carries requests out.
fn reset() {
    let pair = Pair::with_receives(2);
    let initiator = spawn(&pair, |pair| pair.execute(2, Care::Looks));
    pair.target.enter();
    let fence = ChangeFence::after_change();
    assert!(pair.initiator.markers.wait(&fence, || {
        thread::yield_now();
        true
    }));
    let before = pair.target.empty();
    pair.target.leave_reset(QpState::INIT);
    initiator.join().unwrap();
    pair.target.expect_none_since(before);
}

#[test]
fn q01_no_receive_completes_after_reset() {
    model("RESET while requests are carried out", reset)
        .must_fail_without([Site::OpenFence, Site::ChangeFence], LATE);
}
