//! What lies in the device's memory: the tables, and after them the [arena](crate::shm::arena). Offsets and
//! indices only, no address but those of registered memory, which mean something in their owner's process.
//!
//! ```text
//! 0        Header (see `fabric`), then what there is one of: Common
//! plan     processes | noted | destinations | qps | mrs | cqs | srqs | channels | owners of the arena's granules | stages | what goes through them
//! arena    completion rings, send queues, receive queues, in granules of 256 bytes
//! bytes
//! ```
//!
//! Where each table lies follows from the [`Limits`], which are set when the memory is made; whoever opens
//! it copies them once. Whatever else is read from here is masked or checked where it is used, so that no
//! content of this memory leads outside it.

#![allow(unsafe_code)]

mod slots;

pub use self::slots::{
    ChannelSlot, CqSlot, MrSlot, OwnQp, ProcessSlot, QP_EVENTS, QpSlot, RingWords, SrqSlot,
};
pub use crate::shm::table::{Entry, Table};

use cq_core::queue::Control;
use cq_core::queue::raw::Slot;

use crate::memory::atomics::STRIPES;
use crate::memory::stage::{self, Stages};
use crate::protocol::lock::Lock;
use crate::shm::arena::{Arena, GRANULE};
use crate::shm::header::{self, Format};
use crate::shm::limits::Limits;
use crate::shm::mapping::{Mapping, Shared};
use crate::sync::{AtomicU8, AtomicU32, AtomicU64};

const HEADER: usize = header::BYTES;

/// How this build lays a fabric out.
pub const FORMAT: Format = Format {
    layout: header::layout(&[
        size_of::<Common>(),
        size_of::<ProcessSlot>(),
        size_of::<QpSlot>(),
        size_of::<MrSlot>(),
        size_of::<CqSlot>(),
        size_of::<SrqSlot>(),
        size_of::<ChannelSlot>(),
        size_of::<Control>(),
        size_of::<Slot>(),
        size_of::<stage::Head>(),
        stage::OWN,
        stage::SMALL_BYTES,
        stage::LARGE,
        stage::LARGE_BYTES,
        GRANULE,
    ]),
    tables: bytes_of_tables,
};

/// What there is one of.
#[repr(C, align(128))]
pub struct Common {
    /// Held by who sweeps up after a dead process.
    pub sweep: Lock,
    pub arena: Lock,
    /// Held by who does an atomic on memory that others can't map: see [`stripes`](crate::memory::atomics).
    pub stripes: [Lock; STRIPES],
    /// Where the arena was left.
    pub arena_next: AtomicU32,
    next: [AtomicU32; TABLES],
}

// SAFETY: `repr(C)`, atomics alone, alignment 128.
unsafe impl Shared for Common {}

const TABLES: usize = 5;

/// All tables.
#[derive(Debug)]
pub struct Tables {
    pub common: &'static Common,
    pub processes: &'static [ProcessSlot],
    /// A bit for each queue pair that its process is to run: see `notes`.
    pub noted: &'static [AtomicU64],
    /// The peer's number of each queue pair: here, so that all can be looked through.
    pub destinations: &'static [AtomicU32],
    pub qps: Table<QpSlot>,
    pub mrs: Table<MrSlot>,
    pub cqs: Table<CqSlot>,
    pub srqs: Table<SrqSlot>,
    pub channels: Table<ChannelSlot>,
    pub stages: Stages,
    pub arena: Arena,
}

impl std::fmt::Debug for Common {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Common").finish_non_exhaustive()
    }
}

/// Where everything begins.
struct Plan {
    /// In the order of the tables.
    at: [usize; 11],
    arena: usize,
}

impl Plan {
    fn new(limits: &Limits) -> Self {
        let granules = limits.bytes as usize / GRANULE;
        let [stages, staged] = Stages::sizes(limits.processes as usize);
        let sizes = [
            limits.processes as usize * size_of::<ProcessSlot>(),
            (limits.queue_pairs as usize).div_ceil(64) * size_of::<AtomicU64>(),
            limits.queue_pairs as usize * size_of::<AtomicU32>(),
            limits.queue_pairs as usize * size_of::<QpSlot>(),
            limits.memory_regions as usize * size_of::<MrSlot>(),
            limits.completion_queues as usize * size_of::<CqSlot>(),
            limits.shared_receive_queues as usize * size_of::<SrqSlot>(),
            limits.channels as usize * size_of::<ChannelSlot>(),
            granules * size_of::<AtomicU8>(),
            stages,
            staged,
        ];
        let mut end = HEADER + size_of::<Common>();
        let at = sizes.map(|size| {
            let at = end.next_multiple_of(ALIGN);
            end = at.saturating_add(size);
            at
        });
        Self { at, arena: end.next_multiple_of(HEADER) }
    }
}

/// The strictest alignment of what lies in a table.
const ALIGN: usize = 128;

/// How much memory the tables take, after the header.
fn bytes_of_tables(limits: &Limits) -> usize {
    Plan::new(limits).arena - HEADER
}

impl Tables {
    /// The tables in this memory, which was made for these limits: each count of entries is a power of two.
    /// Numbers are counted from `first_number` on. `None` if it is too small for them.
    pub fn new(memory: &'static Mapping, limits: &Limits, first_number: u32) -> Option<Self> {
        let Plan { at, arena } = Plan::new(limits);
        let next = |table: usize| HEADER + std::mem::offset_of!(Common, next) + table * 4;
        let common: &Common = memory.at(HEADER)?;
        Some(Self {
            common,
            processes: memory.slice(at[0], limits.processes as usize)?,
            noted: memory.slice(at[1], (limits.queue_pairs as usize).div_ceil(64))?,
            destinations: memory.slice(at[2], limits.queue_pairs as usize)?,
            qps: Table::new(memory, next(0), at[3], limits.queue_pairs as usize)?
                .numbered_from(first_number),
            mrs: Table::new(memory, next(1), at[4], limits.memory_regions as usize)?,
            cqs: Table::new(memory, next(2), at[5], limits.completion_queues as usize)?,
            srqs: Table::new(memory, next(3), at[6], limits.shared_receive_queues as usize)?
                .numbered_from(first_number),
            channels: Table::new(memory, next(4), at[7], limits.channels as usize)?,
            stages: Stages::new(memory, [at[9], at[10]], limits.processes as usize)?,
            arena: Arena::new(
                &common.arena_next,
                memory.slice(at[8], limits.bytes as usize / GRANULE)?,
                arena,
            ),
        })
    }
}

#[cfg(test)]
mod tests;
