//! What the tables say of queue pairs and shared receive queues. Atomics alone, so that whatever another process writes
//! there is a value.

use std::fmt;

use cq_core::setup::QpType;

use crate::protocol::life::Life;
use crate::protocol::lock::Lock;
use crate::protocol::ownership::Ownership;
use crate::protocol::pool::Pool;
use crate::protocol::receives::Receives;
use crate::protocol::window::Copying;
use crate::shm::table::{entries, shared};
use crate::sync::{self, AtomicU32, AtomicU64};

entries!(QpSlot, SrqSlot);
shared!(OwnQp);

/// A queue pair. The parts lie in cache lines of their own by who writes them.
#[repr(C)]
pub struct QpSlot {
    life: Life,
    /// Number and state in one word, so that a late change can't hit a successor: see `identity`.
    pub identity: AtomicU32,
    // What the peer's process looks at.
    /// A [`QpType`].
    pub qp_type: AtomicU32,
    pub access: AtomicU32,
    pub pd: AtomicU32,
    pub recv_cq: AtomicU32,
    /// READs and atomics of its peer that may be under way; 0 is none at all.
    pub max_dest_rd_atomic: AtomicU32,
    /// What datagrams have to carry to be taken.
    pub qkey: AtomicU32,
    /// How long its peer waits for its receives.
    pub min_rnr_timer: AtomicU32,
    pub recv_ring: RingWords,
    /// Receive requests at most.
    pub recv_capacity: AtomicU32,
    /// Number of the shared receive queue that it takes from; 0 is none.
    pub srq: AtomicU32,
    // The rest is for its own.
    /// How long it waits for its peer, as `ibv_modify_qp(3)` encodes it.
    pub timeout: AtomicU32,
    pub retry_cnt: AtomicU32,
    pub rnr_retry: AtomicU32,
    /// READs and atomics of its own that may be under way; 0 is none at all.
    pub max_rd_atomic: AtomicU32,
    pub send_cq: AtomicU32,
    /// Send requests at most.
    pub send_capacity: AtomicU32,
    pub send_ring: RingWords,
    pub send: SendSide,
    pub retired: Retired,
    pub recv: Receives,
    /// Held by who takes its receives, where that is not its peer alone: of datagrams.
    pub taking: Lock,
    /// Whether what a dead process had published of its receives may not be settled. Under [`taking`](Self::taking).
    pub unsettled: AtomicU32,
    /// Whether QP_LAST_WQE_REACHED is to be reported in ERR.
    pub report_last: AtomicU32,
}

impl QpSlot {
    /// What it can do. Any number is something.
    #[inline]
    pub fn qp_type(&self) -> QpType {
        const UC: u32 = QpType::Uc as u32;
        const UD: u32 = QpType::Ud as u32;
        match sync::load(&self.qp_type) {
            UC => QpType::Uc,
            UD => QpType::Ud,
            _ => QpType::Rc,
        }
    }
}

impl fmt::Debug for QpSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QpSlot").field("identity", &self.identity).finish_non_exhaustive()
    }
}

/// What a process keeps of its queue pair at an index in memory of its own, where nobody else writes.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct OwnQp {
    /// Who works on its queues. Nobody else's threads do.
    pub turn: Ownership,
    /// The same as [`SendSide::copying`], to go by in its own process.
    pub copying: Copying,
    /// Whether there may be [faults](crate::policy::faults).
    pub faulty: AtomicU32,
    /// Of any process' queue pair: who was found suspended over its [`taking`](QpSlot::taking), as that has it; 0
    /// is nobody.
    pub stuck: AtomicU32,
    /// Whether the holder of the turn has waited for a process that lives and does not get on.
    pub unanswered: AtomicU32,
    /// The atomic that its oldest request has begun, and that was not answered: see [`onesided`](crate::engine::requester::onesided).
    pub begun: [AtomicU64; 2],
}

/// Where a queue's requests lie.
#[repr(C)]
pub struct RingWords {
    pub offset: AtomicU32,
    /// How many requests there is room for, as a power of two.
    pub log2: AtomicU32,
    /// Words of a request.
    pub stride: AtomicU32,
}

/// Written by who posts and who executes, often the same thread.
#[repr(C, align(128))]
pub struct SendSide {
    /// Open while bytes are being moved for requests of this queue pair.
    pub copying: Copying,
    /// Where the next request will be put.
    pub posted: AtomicU64,
    /// Which request is executed next.
    pub done: AtomicU64,
    /// Where the next completion of the peer will probably lie.
    pub landing: AtomicU32,
    /// What is known of the peer's receives: whose they are, and up to where they were posted.
    pub ahead: [AtomicU64; 2],
    /// What the request at `waits_at` waits for, and until when: see `retry`.
    pub waits_for: AtomicU32,
    pub waits_at: AtomicU64,
    pub deadline: AtomicU64,
    /// Whether SQ_DRAINED is to be reported in SQD.
    pub report_drained: AtomicU32,
}

/// Up to where the slots of the send queue have come back (Q5). Written by who polls.
#[repr(C, align(128))]
pub struct Retired(pub AtomicU64);

/// A shared receive queue.
#[repr(C, align(128))]
pub struct SrqSlot {
    life: Life,
    /// 0 while there is none.
    pub number: AtomicU32,
    pub pd: AtomicU32,
    /// Receives at most: so many slots it has.
    pub capacity: AtomicU32,
    /// Where the receives lie, by their slots.
    pub ring: RingWords,
    /// Where the words of its slots lie, and behind them the order.
    pub slots_at: AtomicU32,
    pub pool: Pool,
}

impl fmt::Debug for SrqSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SrqSlot").field("number", &self.number).finish_non_exhaustive()
    }
}
