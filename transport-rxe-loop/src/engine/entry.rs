//! Table entries of queue pairs and shared receive queues. They consist of atomics, so that whatever another process
//! writes there is a valid value.

use std::fmt;

use cq_verbs::setup::QpType;

use super::Engine;
use crate::protocol::in_flight::SharedMarkers;
use crate::protocol::life::Life;
use crate::protocol::lock::Lock;
use crate::protocol::number::{CqIndex, Position, QpIndex, SrqIndex, SrqNumber};
use crate::protocol::ownership::Ownership;
use crate::protocol::pool::Pool;
use crate::protocol::receives::Receives;
use crate::shm::table::{entries, shared};
use crate::sync::{self, AtomicU32, AtomicU64};

entries!(QpSlot: QpIndex, SrqSlot: SrqIndex);
shared!(OwnQp);

/// A queue pair. Its parts are in different cache lines, by writer.
#[repr(C)]
pub struct QpSlot {
    life: Life,
    /// Number, state and epoch in one word, so that a late change can't affect a later queue pair: see `identity`.
    pub identity: AtomicU64,
    // Read by the peer's process.
    /// A [`QpType`].
    pub qp_type: AtomicU32,
    pub access: AtomicU32,
    pub pd: AtomicU32,
    pub recv_cq: AtomicU32,
    /// The maximum of outstanding READs and atomics of its peer; 0: none.
    pub max_dest_rd_atomic: AtomicU32,
    /// The queue key that datagrams need to be accepted.
    pub qkey: AtomicU32,
    /// The RNR NAK timer for its peer.
    pub min_rnr_timer: AtomicU32,
    pub recv_ring: RingWords,
    /// Receive requests at most.
    pub recv_capacity: AtomicU32,
    /// Number of its shared receive queue; 0 is none.
    pub srq: AtomicU32,
    // Read by its own process.
    /// Local ACK timeout, encoded as in `ibv_modify_qp(3)`.
    pub timeout: AtomicU32,
    pub retry_cnt: AtomicU32,
    pub rnr_retry: AtomicU32,
    /// READs and atomics of its own that may be outstanding; 0 is none at all.
    pub max_rd_atomic: AtomicU32,
    pub send_cq: AtomicU32,
    /// Send requests at most.
    pub send_capacity: AtomicU32,
    pub send_ring: RingWords,
    pub send: SendSide,
    pub recv: Receives,
    /// Held while its receives are taken, for datagrams, where many queue pairs take them.
    pub receive_lock: Lock,
    /// Whether published completions of a dead sender may be unsettled. Under [`receive_lock`](Self::receive_lock).
    pub unsettled: AtomicU32,
    /// Whether QP_LAST_WQE_REACHED is to be reported in ERR.
    pub report_last: AtomicU32,
    /// The number of its first packet, and that of the first packet that it expects.
    pub sq_psn: AtomicU32,
    pub rq_psn: AtomicU32,
}

/// The send queue of a queue pair of this process.
#[derive(Clone, Copy, Debug)]
pub struct SendQueue {
    pub engine: &'static Engine,
    pub index: QpIndex,
    pub slot: &'static QpSlot,
    pub own: &'static OwnQp,
    pub ownership: &'static Ownership,
}

impl SendQueue {
    /// That of the queue pair at an index.
    #[inline]
    pub fn of(engine: &'static Engine, index: QpIndex) -> Self {
        let (slot, own, ownership) =
            (engine.qps.at(index), engine.own(index), engine.ownership(index));
        Self { engine, index, slot, own, ownership }
    }
}

impl SendSide {
    /// The position of the next request to be posted. For the thread that posts, or to bound a run.
    #[inline]
    pub fn posted(&self) -> Position {
        Position::new(sync::load(&self.posted))
    }

    /// The same for the owner of the send queue: the requests before it can be read.
    #[inline]
    pub fn posted_acquire(&self) -> Position {
        Position::new(sync::acquire(&self.posted))
    }

    /// The same for the thread that posts: the requests before it were read.
    #[inline]
    pub fn done_acquire(&self) -> Position {
        Position::new(sync::acquire(&self.done))
    }

    /// The position before which slots are free, whatever was polled. For the thread that posts.
    pub fn freed(&self) -> Position {
        Position::new(sync::acquire(&self.freed))
    }

    /// Drops what is posted: nothing is left to be carried out, and all slots are free. For the owner of the send queue.
    pub fn empty(&self) {
        let posted = self.posted().get();
        sync::store(&self.done, posted);
        sync::release(&self.freed, posted);
    }

    /// The position of the next request to be carried out. For the owner of the send queue.
    #[inline]
    pub fn done(&self) -> Position {
        Position::new(sync::load(&self.done))
    }
}

impl QpSlot {
    /// The completion queue of its sends.
    #[inline]
    pub fn send_cq(&self) -> CqIndex {
        CqIndex::new(sync::load(&self.send_cq))
    }

    /// The completion queue of its receives.
    #[inline]
    pub fn recv_cq(&self) -> CqIndex {
        CqIndex::new(sync::load(&self.recv_cq))
    }

    /// Its shared receive queue, if it has one.
    #[inline]
    pub fn srq(&self) -> SrqNumber {
        SrqNumber::new(sync::load(&self.srq))
    }

    /// Its type. Any other value is that of a reliable connection.
    #[inline]
    pub fn qp_type(&self) -> QpType {
        match QpType(sync::load(&self.qp_type)) {
            known @ (QpType::UC | QpType::UD) => known,
            _ => QpType::RC,
        }
    }
}

impl fmt::Debug for QpSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QpSlot").field("identity", &self.identity).finish_non_exhaustive()
    }
}

/// Private state of a process for the queue pair at an index. No other process writes it.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct OwnQp {
    /// Whether there may be [faults](crate::policy::faults).
    pub faulty: AtomicU32,
    /// For a queue pair of any process: the owner that was found suspended with [`receive_lock`](QpSlot::receive_lock) held,
    /// encoded as there; 0 is none.
    pub stuck: AtomicU32,
    /// Whether the owner of the send queue has waited for a process that is alive and does not answer.
    pub unanswered: AtomicU32,
    /// An unanswered atomic that its oldest request has begun: see [`pending_atomic`](crate::engine::pending_atomic).
    pub begun: [AtomicU64; 2],
}

/// Where the requests of a queue lie.
#[repr(C)]
pub struct RingWords {
    pub offset: AtomicU32,
    /// How many requests it holds, as a power of two.
    pub log2: AtomicU32,
    /// Words of a request.
    pub stride: AtomicU32,
}

/// Written by the threads that post and that carry requests out, often the same.
#[repr(C, align(128))]
pub struct SendSide {
    /// The in-flight markers: one is set while bytes are moved for requests of this queue pair. Its own process goes by its
    /// [private](crate::memory::Memory::ownership) one.
    pub in_flight: SharedMarkers,
    /// Where the next request will be put.
    pub posted: AtomicU64,
    /// The next request to carry out.
    pub done: AtomicU64,
    /// The slots of requests before it are [free](crate::protocol::send_slots), whatever was polled.
    pub freed: AtomicU64,
    /// What the request at `waits_at` waits for, and until when: see `retry`.
    pub waits_for: AtomicU32,
    pub waits_at: AtomicU64,
    pub deadline: AtomicU64,
    /// Whether SQ_DRAINED is to be reported in SQD.
    pub report_drained: AtomicU32,
}

/// A shared receive queue.
#[repr(C, align(128))]
pub struct SrqSlot {
    life: Life,
    /// 0 while there is none.
    pub number: AtomicU32,
    pub pd: AtomicU32,
    /// Receives at most: the number of its slots.
    pub capacity: AtomicU32,
    /// The receives, by slot.
    pub ring: RingWords,
    /// Where the words of its slots lie, with the order behind them.
    pub slots_at: AtomicU32,
    pub pool: Pool,
}

impl SrqSlot {
    /// Its number; that of none while there is none.
    #[inline]
    pub fn number(&self) -> SrqNumber {
        SrqNumber::new(sync::acquire(&self.number))
    }
}

impl fmt::Debug for SrqSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SrqSlot").field("number", &self.number).finish_non_exhaustive()
    }
}
