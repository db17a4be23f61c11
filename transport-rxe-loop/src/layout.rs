//! What lies in the device's memory: the tables, and after them the [arena](crate::arena). Offsets and
//! indices only, no address but those of registered memory, which mean something in their owner's process.
//!
//! ```text
//! 0        Tables: device | noted | qps | mrs | cqs | channels | arena's bitmap
//! ARENA    completion rings, send queues, receive queues, in granules of 256 bytes
//! SIZE
//! ```
//!
//! Whatever is read from here is masked or checked where it is used, so that no content of this memory
//! leads outside it.

#![allow(unsafe_code)]

use std::fmt;

use crate::arena::Arena;
use crate::list::List;
use crate::lock::{Lock, Turn};
use crate::region::Shared;
use crate::sync::{self, AtomicU32, AtomicU64};

/// Bytes of the device's memory. Pages count once they are used.
pub const SIZE: usize = 16 << 20;
/// Queue pairs, a power of two.
pub const MAX_QP: usize = 1 << 10;
/// Memory regions, a power of two.
pub const MAX_MR: usize = 1 << 12;
/// Completion queues, a power of two.
pub const MAX_CQ: usize = 1 << 10;
/// Completion channels and open contexts, a power of two.
pub const MAX_CHANNELS: usize = 1 << 9;
/// Kinds of asynchronous events that a queue pair can have.
pub const QP_EVENTS: usize = 4;

/// Where the arena begins.
pub const ARENA: usize = size_of::<Tables>().next_multiple_of(4096);

/// All tables.
#[repr(C)]
pub struct Tables {
    /// The number of the next protection domain.
    pub next_pd: AtomicU32,
    pub noted: Noted,
    pub qps: Table<QpSlot, MAX_QP>,
    pub mrs: Table<MrSlot, MAX_MR>,
    pub cqs: Table<CqSlot, MAX_CQ>,
    pub channels: Table<ChannelSlot, MAX_CHANNELS>,
    pub arena: Arena,
}

// SAFETY: `repr(C)` structures and arrays of atomics; align 128.
unsafe impl Shared for Tables {}

const _: () = assert!(ARENA < SIZE / 8, "the tables leave most of the memory to the arena");

/// Whether a table's entry is taken, and how often it was: odd is taken. Zeros are a new entry.
#[derive(Debug)]
#[repr(transparent)]
pub struct Life(AtomicU32);

impl Life {
    /// Takes the entry, if it is free; says which generation this is, from 0.
    pub fn claim(&self) -> Option<u32> {
        let seen = sync::acquire(&self.0);
        (seen & 1 == 0 && sync::swap_if(&self.0, seen, seen | 1).is_ok()).then_some(seen >> 1)
    }

    /// Gives the entry back.
    pub fn end(&self) {
        let seen = sync::load_u32(&self.0);
        sync::release(&self.0, seen.wrapping_add(1));
    }
}

/// An entry of a table that is claimed by whoever needs one.
pub trait Entry {
    /// Whether it is taken.
    fn life(&self) -> &Life;
}

macro_rules! entries {
    ($($slot:ty),+) => {
        $(impl Entry for $slot {
            fn life(&self) -> &Life {
                &self.life
            }
        })+
    };
}
entries!(QpSlot, MrSlot, CqSlot, ChannelSlot);

/// Entries of one kind.
#[repr(C)]
pub struct Table<T, const N: usize> {
    /// Where to look for a free entry first, so that each is left alone for as long as there are others.
    next: AtomicU32,
    entries: [T; N],
}

impl<T: Entry, const N: usize> Table<T, N> {
    /// Takes a free entry: its index and its generation.
    pub fn claim(&self) -> Option<(u32, u32)> {
        let first = sync::next_number(&self.next) as usize;
        (first..first + N)
            .map(|index| index % N)
            .find_map(|index| Some((index as u32, self.entries[index].life().claim()?)))
    }

    /// The entry at an index. Any is harmless.
    #[inline]
    pub fn at(&self, index: u32) -> &T {
        &self.entries[index as usize % N]
    }

    /// All entries, taken or not.
    pub const fn all(&self) -> &[T; N] {
        &self.entries
    }
}

/// Queue pairs that are to be run by somebody who has no turn: see `overrun`. Seldom written, so away from
/// what is.
#[repr(C, align(128))]
pub struct Noted {
    /// Whether there are any.
    pub any: AtomicU32,
    /// A bit each.
    pub qps: [AtomicU64; MAX_QP / 64],
}

/// A queue pair. The parts lie in cache lines of their own by who writes them.
#[repr(C)]
pub struct QpSlot {
    life: Life,
    /// Number and state in one word, so that a late change can't hit a successor: see `qp`.
    pub identity: AtomicU32,
    /// The peer's number.
    pub dest: AtomicU32,
    pub access: AtomicU32,
    /// How long it waits for its peer, as `ibv_modify_qp(3)` encodes it.
    pub timeout: AtomicU32,
    pub retry_cnt: AtomicU32,
    pub rnr_retry: AtomicU32,
    /// How long its peer waits for its receives.
    pub min_rnr_timer: AtomicU32,
    /// READs and atomics of its own that may be under way; 0 is none at all.
    pub max_rd_atomic: AtomicU32,
    /// READs and atomics of its peer that may be under way; 0 is none at all.
    pub max_dest_rd_atomic: AtomicU32,
    pub pd: AtomicU32,
    pub send_cq: AtomicU32,
    pub recv_cq: AtomicU32,
    /// Send requests at most.
    pub send_capacity: AtomicU32,
    pub send_ring: RingWords,
    pub recv_ring: RingWords,
    pub send: SendSide,
    pub retired: Retired,
    pub recv: RecvSide,
    /// What is reported of it, by kind.
    pub events: [EventNode; QP_EVENTS],
}

impl fmt::Debug for QpSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QpSlot").field("identity", &self.identity).finish_non_exhaustive()
    }
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
    pub turn: Turn,
    /// Odd while bytes are being moved for a request of this queue pair.
    pub copying: AtomicU64,
    /// Where the next request will be put.
    pub posted: AtomicU64,
    /// Which request is executed next.
    pub done: AtomicU64,
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

/// Written by who posts receives and by the peer that takes them, under the lock.
#[repr(C, align(128))]
pub struct RecvSide {
    pub lock: Lock,
    /// Whether a receive was taken that has not completed yet.
    pub in_flight: AtomicU32,
    /// Whether the peer found no receive since one was posted.
    pub starved: AtomicU32,
    pub posted: AtomicU64,
    pub taken: AtomicU64,
}

/// A memory region.
#[repr(C, align(64))]
pub struct MrSlot {
    life: Life,
    /// Its key; 0 while there is none.
    pub key: AtomicU32,
    pub access: AtomicU32,
    pub pd: AtomicU32,
    /// Where it starts in the owner's process.
    pub base: AtomicU64,
    pub len: AtomicU64,
}

/// A completion queue. Its lock is for producers; the consumer never looks here.
#[repr(C, align(128))]
pub struct CqSlot {
    life: Life,
    pub lock: Lock,
    /// What the producer knows, while none is at work.
    pub tail: [AtomicU64; 3],
    pub generation: AtomicU32,
    pub offset: AtomicU32,
    pub log2: AtomicU32,
    pub promised: AtomicU32,
    /// Whether queue pairs have left RESET that an overrun was not spread to.
    pub newcomers: AtomicU32,
    /// What it was armed for.
    pub completion: EventNode,
    /// That it overran.
    pub overrun: EventNode,
}

/// Events of one kind of one object: a member of its channel's list while some are pending. Written under
/// the channel's lock.
#[derive(Debug)]
#[repr(C)]
pub struct EventNode {
    /// Index of the channel, plus 1; 0 is none.
    pub channel: AtomicU32,
    /// Events that nobody has read.
    pub pending: AtomicU32,
    /// The next member, as [`List`] says.
    pub next: AtomicU32,
}

/// A channel: the list of those that have pending events, by the numbers of [`bell`](crate::bell).
#[repr(C, align(128))]
pub struct ChannelSlot {
    life: Life,
    pub lock: Lock,
    pub list: List,
}
