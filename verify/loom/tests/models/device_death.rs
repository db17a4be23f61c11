//! An initiator is killed at any step of carrying a request out, while its peer is put into ERR: each
//! receive of the peer completes once, in order, and none is left behind (C8, Q2).

use std::sync::Arc;

use cq_core::queue::raw::RawConsumer;
use cq_core::queue::{NoChannel, Tagged};
use cq_core::transport::PollCq;
use cq_core::wc::{Wc, WcStatus};
use cq_verbs::setup::QpState;
use transport_rxe_loop::protocol::fanin::{Fanin, Location};
use transport_rxe_loop::protocol::identity;
use transport_rxe_loop::protocol::in_flight::{ChangeFence, InFlight};
use transport_rxe_loop::protocol::lock::AttachmentKey;
use transport_rxe_loop::protocol::number::{Position, QpNumber};
use transport_rxe_loop::protocol::receives::Receives;
use transport_rxe_loop::protocol::tag;
use transport_rxe_loop::sync::{self, AtomicU32, AtomicU64};
use verify_loom::harness::model;
use verify_loom::mortal::{Mortal, VICTIM, at_every_step};
use verify_loom::queue::Queue;
use verify_loom::threads::spawn;

const WRONG: &str = "lost, doubled or out of order";
const LEFT: &str = "left behind";
const RECEIVES: u32 = 2;
const TARGET: QpNumber = QpNumber::new(0x1001);
const OWNER: AttachmentKey = AttachmentKey::new(1, 1);

/// What the owner does about a dead initiator.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Care {
    /// As the protocol has it.
    Whole,
    /// Waits for its window.
    Waits,
    /// Looks for what is left before it has repaired what the initiator has pushed to.
    LooksFirst,
}

/// A queue pair in RTS, its completion queue, and of its initiator the counter.
struct Pair {
    care: Care,
    identity: AtomicU64,
    receives: Receives,
    in_flight: InFlight,
    /// Whether the initiator wants the queue pair run.
    noted: AtomicU32,
    fanin: Fanin,
    cq: Arc<Queue>,
    initiator: Mortal,
}

impl Pair {
    fn new(care: Care) -> Arc<Self> {
        let pair = Self {
            care,
            identity: AtomicU64::new(0),
            receives: Receives::default(),
            in_flight: InFlight::default(),
            noted: AtomicU32::new(0),
            fanin: Fanin::default(),
            cq: Queue::new(4),
            initiator: Mortal::default(),
        };
        pair.fanin.begin(Location { offset: 0, log2: 2, promised: 4, is_exact: false });
        identity::enter(&pair.identity, TARGET);
        let reset = identity::read(&pair.identity);
        assert!(identity::change(&pair.identity, reset, QpState::RTS));
        assert!(!pair.receives.post(Position::new(RECEIVES.into())));
        Arc::new(pair)
    }

    fn is(&self, state: QpState) -> bool {
        identity::read(&self.identity).state() == state
    }

    fn settle(&self, tag: u32) {
        self.receives.settle(tag, RECEIVES);
    }

    fn enter(&self, me: AttachmentKey) {
        if self.initiator.enter(&self.fanin.lock, me) {
            let _state = self.fanin.repair(&self.cq.open(), |_, tag| self.settle(tag));
        }
    }

    fn push(&self, me: AttachmentKey, position: u64, status: WcStatus) {
        let wc = Wc::new(position, status, TARGET.get());
        let entry = Tagged { wc, tag: tag::of_recv(Position::new(position + 1)), solicited: false };
        self.enter(me);
        let mut queue = self.cq.open();
        let tail = self.fanin.publish(&mut queue, &entry);
        match tail {
            Some(tail) => {
                self.settle(entry.tag);
                self.fanin.settled(tail);
            }
            None => {
                let settle = |part: &[Tagged]| part.iter().for_each(|one| self.settle(one.tag));
                self.fanin.push(&mut queue, NoChannel, &entry, settle).unwrap();
            }
        }
        self.initiator.leave(&self.fanin.lock);
    }

    /// The initiator carries a request out.
    fn execute(&self) {
        self.in_flight.open();
        if self.is(QpState::RTS) {
            let (position, mut cached_posted) = (self.receives.completed(), Position::default());
            assert!(self.receives.has(position, &mut cached_posted, RECEIVES));
            self.push(VICTIM, position.get(), WcStatus::SUCCESS);
        }
        self.in_flight.close();
        if self.is(QpState::ERR) {
            sync::release(&self.noted, 1);
        }
    }

    /// The owner runs its queue pair.
    fn flush(&self) {
        if !self.is(QpState::ERR) {
            return;
        }
        let is_open = ChangeFence::after_change().is_open(&self.in_flight);
        let is_dead = self.initiator.is_dead();
        if is_open && (!is_dead || self.care == Care::Waits) {
            return;
        }
        if is_dead && self.care != Care::LooksFirst {
            self.enter(OWNER);
            self.initiator.leave(&self.fanin.lock);
        }
        for position in self.receives.left(RECEIVES) {
            self.push(OWNER, position.get(), WcStatus::WR_FLUSH_ERR);
        }
    }

    fn expect_all(&self, came: &[Wc]) {
        assert!(came.iter().map(Wc::wr_id).eq(0..came.len() as u64), "{WRONG}");
        assert_eq!(came.len(), RECEIVES as usize, "{LEFT}");
        assert_eq!(self.receives.completed(), Position::new(came.len() as u64), "{WRONG}");
        assert!(came.is_sorted_by_key(|wc| wc.status() == WcStatus::WR_FLUSH_ERR), "{WRONG}");
    }
}

fn poll(consumer: &mut RawConsumer<'_>, came: &mut Vec<Wc>) {
    let mut buffer = [Wc::default(); 4];
    let count = consumer.poll_into(&mut buffer).unwrap();
    came.extend(&buffer[..count]);
}

/// The initiator carries one request out, and is killed at a step of it; the owner fails its queue pair
/// meanwhile. Says whether the initiator came to its end.
fn fail_and_die(step: u32, care: Care) -> bool {
    let pair = Pair::new(care);
    let initiator = spawn(&pair, move |pair| pair.initiator.live(step, || pair.execute()));
    let (mut consumer, mut came) = (pair.cq.consumer(0), Vec::new());
    assert!(identity::fail(&pair.identity, TARGET));
    pair.flush();
    poll(&mut consumer, &mut came);
    let lived = initiator.join().unwrap();
    poll(&mut consumer, &mut came);
    if !lived || sync::acquire(&pair.noted) == 1 {
        pair.flush();
    }
    poll(&mut consumer, &mut came);
    pair.expect_all(&came);
    lived
}

#[test]
fn c08_each_receive_completes_once_whenever_the_initiator_is_killed() {
    at_every_step("a peer fails", 0..0, |step| fail_and_die(step, Care::Whole));
}

/// The window is open, the lock taken, the tag and six words are written, of which the last publishes.
const PUBLISHED: u32 = 9;

#[test]
fn c08_what_the_dead_has_pushed_counts() {
    let killed_at = |step, care| move || fail_and_die(step, care);
    model("a peer fails, its initiator has published", killed_at(PUBLISHED, Care::Whole))
        .must_fail_as("repairing before looking", WRONG, killed_at(PUBLISHED, Care::LooksFirst))
        .must_fail_as(
            "that a dead one's in-flight marker is cleared",
            LEFT,
            killed_at(PUBLISHED, Care::Waits),
        );
}
