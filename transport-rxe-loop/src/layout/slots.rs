//! What the tables hold. Atomics alone, so that whatever a stranger writes there is a value.

#![allow(unsafe_code)]

use std::fmt;

use cq_core::setup::QpType;

use crate::protocol::channel::{Board, EventNode};
use crate::protocol::fanin::Fanin;
use crate::protocol::life::Life;
use crate::protocol::lock::Lock;
use crate::protocol::mode::Mode;
use crate::protocol::moderation::Moderation;
use crate::protocol::ownership::Ownership;
use crate::protocol::pool::Pool;
use crate::protocol::receives::Receives;
use crate::protocol::stage::{Abandoned, Askers};
use crate::protocol::window::Copying;
use crate::shm::mapping::Shared;
use crate::shm::table::Entry;
use crate::sync::{self, AtomicU32, AtomicU64};

/// Kinds of asynchronous events that a queue pair can have.
pub const QP_EVENTS: usize = 5;

macro_rules! entries {
    ($($slot:ty),+) => {
        $(
            // SAFETY: `repr(C)`, atomics alone, alignment at most 128.
            unsafe impl Shared for $slot {}
            impl Entry for $slot {
                fn life(&self) -> &Life {
                    &self.life
                }
            }
        )+
    };
}
entries!(QpSlot, MrSlot, CqSlot, SrqSlot, ChannelSlot);

// SAFETY: `repr(C)`, atomics alone, alignment 64.
unsafe impl Shared for ProcessSlot {}

/// A process that has opened the device.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct ProcessSlot {
    /// Counts how often its service thread was asked for, which sleeps on it.
    pub calls: AtomicU32,
    /// Who has asked it for something: see [`copier`](crate::memory::copier).
    pub askers: Askers,
    /// Whether it may still carry out what they have given up.
    pub abandoned: Abandoned,
    /// Where its [guard page](crate::shm::guard_page) is.
    pub guard: AtomicU64,
}

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
    /// What is reported of it, by kind.
    pub events: [EventNode; QP_EVENTS],
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
    /// The atomic that its oldest request has begun, and that was not answered: see [`onesided`](crate::engine::onesided).
    pub begun: [AtomicU64; 2],
}

// SAFETY: `repr(C)`, atomics alone, alignment 64.
unsafe impl Shared for OwnQp {}

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

/// A memory region, or a memory window.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct MrSlot {
    life: Life,
    /// Its key; 0 while there is none.
    pub key: AtomicU32,
    pub access: AtomicU32,
    pub pd: AtomicU32,
    /// Whether it is memory of the fabric's: see [`facts`](crate::memory::region).
    pub kind: AtomicU32,
    /// Of a window: the queue pair that it is bound to. 0 is a region.
    pub qp: AtomicU32,
    /// Where it starts in the owner's process.
    pub base: AtomicU64,
    pub len: AtomicU64,
    /// That all of this was written by one who knew how.
    pub seal: AtomicU64,
    /// Of a window: the seal of the region that it lies in, and that one's key.
    pub region_seal: AtomicU64,
    pub region: AtomicU32,
}

/// A completion queue, as producers know it; the consumer never looks here.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct CqSlot {
    life: Life,
    pub fanin: Fanin,
    pub generation: AtomicU32,
    /// Twice the generation whose overrun is to be reported, and 1 more once it was.
    pub reported: AtomicU32,
    /// How many queue pairs have left RESET.
    pub newcomers: AtomicU32,
    /// How many of them had when all were failed last, by an overrun.
    pub failed: AtomicU32,
    /// What it was armed for.
    pub completion: EventNode,
    /// That it overran.
    pub overrun: EventNode,
    /// How its events are held back.
    pub moderation: Moderation,
    /// Completions that a queue which ignores overruns had no room for. Under its lock.
    pub dropped: AtomicU32,
    /// What is out of the ordinary about pushing to it: see [`protocol::mode`](crate::protocol::mode).
    pub mode: Mode,
}

const _: () = assert!(size_of::<CqSlot>() == 256);

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
    /// That its limit was reached.
    pub limit: EventNode,
}

impl fmt::Debug for SrqSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SrqSlot").field("number", &self.number).finish_non_exhaustive()
    }
}

/// A channel: the marks of those that have unread events, by the numbers of [`bell`](crate::completion::channel).
#[derive(Debug)]
#[repr(C, align(128))]
pub struct ChannelSlot {
    life: Life,
    pub board: Board,
    /// Whether its descriptor is to be written by its owner: who raised an event could not open it.
    pub unheard: AtomicU32,
}
