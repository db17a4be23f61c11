//! What an observer sees of queue pairs and shared receive queues.

use cq_core::wc::WcOpcode;
use cq_verbs::setup::{QpState, QpType};

use super::entry::{QpSlot, SrqSlot};
use super::retry::{WaitLimit, WaitsFor, waiting};
use super::{Tables, complete, identity, ring, srq};
use crate::protocol::in_flight::Marker;
use crate::protocol::number::{Position, QpIndex, QpNumber};
use crate::protocol::pool::{MAX_SLOTS, Queue};
use crate::protocol::requests::RequestBits;
use crate::shm::reader::View;
use crate::shm::table::Entry;
use crate::shm::view::Holder;
use crate::sync;

/// A queue pair.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct QueuePair {
    /// The index of its table entry.
    pub index: u32,
    /// Its number; 0 while it is being created or destroyed.
    pub number: u32,
    /// The attachment of its process.
    pub owner: u16,
    /// Its state.
    #[cfg_attr(feature = "serde", serde(serialize_with = "crate::by_name::name"))]
    pub state: QpState,
    /// How often its state, or an attribute that its peer depends on, was changed, wrapping.
    pub epoch: u32,
    /// Its type.
    #[cfg_attr(feature = "serde", serde(rename = "type", serialize_with = "crate::by_name::name"))]
    pub qp_type: QpType,
    /// The number of its protection domain.
    pub domain: u32,
    /// The number of the queue pair that it is connected to; 0 is none.
    pub peer: u32,
    /// The state of that queue pair; `None` if there is none of that number.
    #[cfg_attr(feature = "serde", serde(serialize_with = "crate::by_name::name_of_some"))]
    pub peer_state: Option<QpState>,
    /// The number of the queue pair that its peer is connected to.
    pub peer_of_peer: u32,
    /// The index of the completion queue of its sends.
    pub send_cq: u32,
    /// The index of the completion queue of its receives.
    pub recv_cq: u32,
    /// The number of its shared receive queue; 0 is none.
    pub srq: u32,
    /// Its send queue: requests that were posted, and carried out.
    pub sends: Requests,
    /// Its receive queue: receives that were posted, and consumed. Unused if it has a shared one.
    pub receives: Requests,
    /// Whether bytes are being moved for its requests.
    pub is_copying: bool,
    /// Whether its peer found no receive, and no receive was posted since.
    pub is_starved: bool,
    /// Whether another thread has asked its process to run it, and it has not begun to.
    pub is_requested: bool,
    /// What the oldest request of the send queue waits for.
    pub waits: Option<RequestWait>,
    /// The oldest request of the send queue that is not carried out.
    pub oldest: Option<OldestSend>,
    /// The local ACK timeout, encoded as in `ibv_modify_qp(3)`: 0 is without a limit.
    pub timeout: u32,
    /// How often an answer is waited for once more.
    pub retry_cnt: u32,
    /// How often a receive is waited for; 7 is without a limit.
    pub rnr_retry: u32,
    /// The process that takes a receive for a datagram.
    pub receive_lock: Option<Holder>,
}

/// The requests of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Requests {
    /// How many were posted so far, wrapping.
    pub posted: u64,
    /// How many of them are done, wrapping.
    pub done: u64,
    /// How many are posted and not done; at most the capacity.
    pub outstanding: u32,
    /// How many it holds.
    pub capacity: u32,
}

impl Requests {
    /// The positions may be of different instants, or corrupted.
    fn new(posted: Position, done: Position, capacity: u32) -> Self {
        let outstanding =
            if posted.is_after(done) { posted.since(done).min(capacity.into()) as u32 } else { 0 };
        Self { posted: posted.get(), done: done.get(), outstanding, capacity }
    }
}

/// What a request waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct RequestWait {
    /// For what.
    #[cfg_attr(feature = "serde", serde(rename = "for"))]
    pub awaited: Awaited,
    /// For how long.
    pub limit: WaitLimit,
}

/// What a request can wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Awaited {
    /// The peer has no receive posted (RNR).
    Receive,
    /// The peer does not answer: it is not ready, or gone.
    Answer,
}

/// The oldest request of a send queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct OldestSend {
    /// Its wr_id.
    pub wr_id: u64,
    /// Its operation.
    #[cfg_attr(feature = "serde", serde(serialize_with = "crate::by_name::name"))]
    pub operation: WcOpcode,
}

/// A shared receive queue.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct SharedReceiveQueue {
    /// The index of its table entry.
    pub index: u32,
    /// Its number; 0 while it is being created or destroyed.
    pub number: u32,
    /// The attachment of its process.
    pub owner: u16,
    /// The number of its protection domain.
    pub domain: u32,
    /// Receives that wait, those posted so far, and those taken so far less those given back.
    pub receives: Requests,
    /// Receives that were taken, and whose completions are not published yet.
    pub in_use: u32,
    /// The limit below which SRQ_LIMIT_REACHED is raised; 0 is none.
    pub limit: u32,
    /// Whether a sender found no receive, and none was posted since.
    pub is_starved: bool,
    /// The process that takes a receive, or gives one back.
    pub lock: Option<Holder>,
}

impl<'m> Tables<'m> {
    /// The queue pairs.
    pub fn see_queue_pairs(&self, view: &View<'m>) -> Vec<QueuePair> {
        let seen =
            self.qps.all().filter_map(|(index, slot)| self.see_queue_pair(view, index, slot));
        seen.collect()
    }

    fn see_queue_pair(
        &self,
        view: &View<'m>,
        index: QpIndex,
        slot: &'m QpSlot,
    ) -> Option<QueuePair> {
        let (owner, _) = slot.life().holder()?;
        let me = identity::read(&slot.identity);
        let peer = self.peer_at(index);
        let (peer_state, peer_of_peer) = self.see_peer(peer);
        let sends = see_sends(slot);
        let oldest = (sends.outstanding > 0).then(|| see_oldest(view, slot)).flatten();
        let markers = &slot.send.in_flight;
        Some(QueuePair {
            index: index.get(),
            number: me.number().get(),
            owner: owner.get(),
            state: me.state(),
            epoch: me.epoch(),
            qp_type: slot.qp_type(),
            domain: sync::load(&slot.pd),
            peer,
            peer_state,
            peer_of_peer,
            send_cq: slot.send_cq().get(),
            recv_cq: slot.recv_cq().get(),
            srq: slot.srq().get(),
            sends,
            receives: see_receives(slot),
            is_copying: markers.poster.seen().is_some() || markers.owner.seen().is_some(),
            is_starved: slot.recv.is_starved(),
            is_requested: RequestBits::new(self.requested).is_left(index.get()),
            waits: (sends.outstanding > 0).then(|| see_wait(slot, me.state())).flatten(),
            oldest,
            timeout: sync::load(&slot.timeout),
            retry_cnt: sync::load(&slot.retry_cnt),
            rnr_retry: sync::load(&slot.rnr_retry),
            receive_lock: Holder::of(&slot.receive_lock),
        })
    }

    /// The number of the peer of the queue pair at an index.
    fn peer_at(&self, index: QpIndex) -> u32 {
        self.destinations.get(index.get() as usize).map_or(0, sync::load)
    }

    /// The state of the queue pair with this number, and the number of its peer.
    fn see_peer(&self, number: u32) -> (Option<QpState>, u32) {
        let index = self.qps.index(QpNumber::new(number));
        let seen = identity::read(&self.qps.at(index).identity);
        if number == 0 || seen.number() != QpNumber::new(number) {
            return (None, 0);
        }
        (Some(seen.state()), self.peer_at(index))
    }

    /// The shared receive queues.
    pub fn see_shared_receive_queues(&self, view: &View<'m>) -> Vec<SharedReceiveQueue> {
        self.srqs.all().filter_map(|(index, slot)| see_srq(view, index.get(), slot)).collect()
    }
}

fn see_sends(slot: &QpSlot) -> Requests {
    Requests::new(slot.send.posted(), slot.send.done(), sync::load(&slot.send_capacity))
}

fn see_receives(slot: &QpSlot) -> Requests {
    Requests::new(slot.recv.posted(), slot.recv.completed(), sync::load(&slot.recv_capacity))
}

fn see_oldest<'m>(view: &View<'m>, slot: &'m QpSlot) -> Option<OldestSend> {
    let (wr_id, op) = ring::peek(view, &slot.send_ring, slot.send.done())?;
    Some(OldestSend { wr_id, operation: complete::opcode(&op) })
}

/// What the oldest request waits for, in a state in which it is tried.
fn see_wait(slot: &QpSlot, state: QpState) -> Option<RequestWait> {
    let (waits_for, limit) = waiting(slot, slot.send.done())?;
    let awaited = match waits_for {
        WaitsFor::Receive => Awaited::Receive,
        WaitsFor::Answer | WaitsFor::NoPeer => Awaited::Answer,
    };
    matches!(state, QpState::RTS | QpState::SQD).then_some(RequestWait { awaited, limit })
}

fn see_srq<'m>(view: &View<'m>, index: u32, slot: &'m SrqSlot) -> Option<SharedReceiveQueue> {
    let (owner, _) = slot.life().holder()?;
    let (at, capacity) = (sync::load(&slot.slots_at), sync::load(&slot.capacity));
    // More slots than any queue has are not looked up: all of them would be copied.
    let is_valid = capacity as usize <= MAX_SLOTS;
    let queue = is_valid.then(|| srq::at(view, slot, at, capacity)).flatten();
    let positions = |queue: &Queue<'_>| (queue.posted(), queue.front());
    let (posted, front) = queue.as_ref().map(positions).unwrap_or_default();
    Some(SharedReceiveQueue {
        index,
        number: slot.number().get(),
        owner: owner.get(),
        domain: sync::load(&slot.pd),
        receives: Requests::new(posted, front, capacity),
        in_use: queue.as_ref().map_or(0, |queue| queue.taken().count() as u32),
        limit: slot.pool.limit(),
        is_starved: queue.as_ref().is_some_and(|queue| queue.is_starved()),
        lock: Holder::of(slot.pool.lock()),
    })
}
