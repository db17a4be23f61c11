//! What the tables hold. Atomics alone, so that whatever a stranger writes there is a value.

#![allow(unsafe_code)]

use std::fmt;

use super::table::{Entry, Life};
use crate::lock::Turn;
use crate::protocol::channel::EventNode;
use crate::protocol::fanin::Fanin;
use crate::protocol::list::List;
use crate::protocol::lock::Lock;
use crate::protocol::receives::Receives;
use crate::protocol::window::Copying;
use crate::region::Shared;
use crate::sync::{AtomicU32, AtomicU64};

/// Kinds of asynchronous events that a queue pair can have.
pub const QP_EVENTS: usize = 4;

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
entries!(QpSlot, MrSlot, CqSlot, ChannelSlot);

// SAFETY: `repr(C)`, atomics alone, alignment 64.
unsafe impl Shared for ProcessSlot {}

/// A process that has opened the device.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct ProcessSlot {
    /// Counts how often its service thread was asked for, which sleeps on it.
    pub calls: AtomicU32,
}

/// A queue pair. The parts lie in cache lines of their own by who writes them.
#[repr(C)]
pub struct QpSlot {
    life: Life,
    /// Number and state in one word, so that a late change can't hit a successor: see `identity`.
    pub identity: AtomicU32,
    // What the peer's process looks at.
    pub access: AtomicU32,
    pub pd: AtomicU32,
    pub recv_cq: AtomicU32,
    /// READs and atomics of its peer that may be under way; 0 is none at all.
    pub max_dest_rd_atomic: AtomicU32,
    /// How long its peer waits for its receives.
    pub min_rnr_timer: AtomicU32,
    pub recv_ring: RingWords,
    /// Receive requests at most.
    pub recv_capacity: AtomicU32,
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
    /// What is reported of it, by kind.
    pub events: [EventNode; QP_EVENTS],
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
    pub turn: Turn,
    /// The same as [`SendSide::copying`], to go by in its own process.
    pub copying: Copying,
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

/// A memory region.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct MrSlot {
    life: Life,
    /// Its key; 0 while there is none.
    pub key: AtomicU32,
    pub access: AtomicU32,
    pub pd: AtomicU32,
    /// Whether it is memory of the fabric's: see [`facts`](crate::facts).
    pub kind: AtomicU32,
    /// Where it starts in the owner's process.
    pub base: AtomicU64,
    pub len: AtomicU64,
    /// That all of this was written by one who knew how.
    pub seal: AtomicU64,
}

/// A completion queue, as producers know it; the consumer never looks here.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct CqSlot {
    life: Life,
    pub fanin: Fanin,
    pub generation: AtomicU32,
    /// Whether its overrun was reported.
    pub reported: AtomicU32,
    /// Whether its lock could not be had, so that nobody pushes to it any more.
    pub given_up: AtomicU32,
    /// Whether queue pairs have left RESET that an overrun was not spread to.
    pub newcomers: AtomicU32,
    /// What it was armed for.
    pub completion: EventNode,
    /// That it overran.
    pub overrun: EventNode,
}

/// A channel: the list of those that have pending events, by the numbers of [`bell`](crate::bell).
#[derive(Debug)]
#[repr(C, align(128))]
pub struct ChannelSlot {
    life: Life,
    pub lock: Lock,
    pub list: List,
    /// Whether its descriptor is to be written by its owner: who raised an event could not open it.
    pub unheard: AtomicU32,
}
