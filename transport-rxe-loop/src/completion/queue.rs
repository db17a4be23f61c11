//! A completion queue's table entry and ring, which producers of all processes use.

#![allow(unsafe_code)]

use cq_core::queue::raw::{Layout, RawQueue, Slot};
use cq_core::queue::{Control, Position};
use cq_core::transport::CqKey;

use super::Completions;
use crate::error::{CreateError, LimitKind};
use crate::protocol::channel::EventNode;
use crate::protocol::fanin::{Fanin, Location};
use crate::protocol::life::Life;
use crate::protocol::mode::{CqFlag, Mode};
use crate::protocol::moderation::Moderation;
use crate::protocol::number::CqIndex;
use crate::protocol::sole::SoleProducer;
use crate::shm::arena::Extent;
use crate::shm::mapping::{self, Shared};
use crate::shm::table::entries;
use crate::sync::{self, AtomicU32};

/// The maximum capacity of a completion queue: what 65,536 slots hold.
pub const MAX_CQE: u32 = 52_429;

/// A completion queue's table entry, for producers. The usual poll reads only `mode`.
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
    /// The value of `newcomers` when an overrun last failed all of them.
    pub failed: AtomicU32,
    /// The events that it was armed for.
    pub completion: EventNode,
    /// The event that it overran.
    pub overrun: EventNode,
    /// Its moderation.
    pub moderation: Moderation,
    /// The number of completions dropped by a queue that ignores overruns. Written under its lock.
    pub dropped: AtomicU32,
    /// The low half of the position behind the completions that disarmed the queue last, by an ordinary push; 0: none did, or
    /// the owner has armed it since. Written under its lock.
    pub announced: AtomicU32,
    /// Which queue pair pushes without the lock: see [`SoleProducer`].
    pub sole: SoleProducer,
    /// Deviations from the usual push: see [`protocol::mode`](crate::protocol::mode).
    pub mode: Mode,
}

const _: () = assert!(size_of::<CqSlot>() == 256);

entries!(CqSlot: CqIndex);

// SAFETY: six atomic words, `repr(C)`; any bytes are a slot, says its documentation.
unsafe impl Shared for Slot {}
// SAFETY: four atomic words, `repr(C)`, alignment 128; any bytes are valid, says its documentation.
unsafe impl Shared for Control {}

/// The slots of a queue that is to hold so many completions: a quarter more lets the consumer give them back in
/// larger steps, where it is not exact.
const fn slots(promised: u32, is_exact: bool) -> u32 {
    let more = if is_exact { 0 } else { promised / 4 };
    (promised + more).next_power_of_two()
}

// The largest queue wastes none.
const _: () = assert!(slots(MAX_CQE, false) < slots(MAX_CQE + 1, false));

/// Allocates memory for a queue that holds `promised` completions, and if it is exact, no more. It is zeroed, which is
/// an empty queue.
pub fn allocate(
    completions: &'static Completions,
    promised: u32,
    is_exact: bool,
) -> Result<(Location, Extent), CreateError> {
    let what = LimitKind::Cqe;
    if promised == 0 {
        return Err(CreateError::Zero(what));
    }
    if promised > MAX_CQE {
        return Err(CreateError::TooMany { what, asked: promised, max: MAX_CQE });
    }
    let log2 = slots(promised, is_exact).trailing_zeros();
    let location = Location { offset: 0, log2, promised, is_exact };
    let none = CreateError::TooMany { what, asked: promised, max: MAX_CQE };
    let bytes = layout(location).and_then(|layout| layout.bytes().ok()).ok_or(none)?;
    let extent = Extent::allocate(completions.shm, bytes)?;
    Ok((Location { offset: extent.offset(), ..location }, extent))
}

/// The layout of a ring.
#[inline]
pub fn layout(location: Location) -> Option<Layout> {
    let slots = 1usize.checked_shl(location.log2)?;
    Some(Layout { slots, tags: true, promised: location.promised })
}

/// The ring at a location; `None` if that is invalid. For producers that hold the queue's lock, and for the owner's
/// polling.
#[inline]
pub fn ring(completions: &'static Completions, location: Location) -> Option<RawQueue<'static>> {
    let (at, left) = completions.shm.in_arena_from(location.offset as usize)?;
    // SAFETY: `left` bytes from `at` on are inside the mapping, which is there for ever; everybody maps them as what is
    // `Shared`, atomics. Producers take turns under the queue's lock, in whatever process, or there is only one, and its
    // owner alone polls. It is used only while the queue lies here: a producer compares the location under the lock, or
    // while it is the only one, and the owner moves it.
    let queue = unsafe { RawQueue::new(at, left, layout(location)?).ok() }?;
    Some(if location.is_exact { queue.exact() } else { queue })
}

/// A completion queue as its producers use it. Its ring is validated once, and again where it has moved.
#[derive(Debug)]
pub struct CqRing {
    pub index: CqIndex,
    pub slot: &'static CqSlot,
    /// The location of what was validated.
    location: u64,
    /// `None` for a location that is invalid.
    ring: Option<RawQueue<'static>>,
    /// Where the next completion will probably be: behind the last one that was pushed through this.
    pub(super) next: Position,
}

impl CqRing {
    /// The queue at `index`. Any index is valid.
    pub fn new(completions: &'static Completions, index: CqIndex) -> Self {
        Self { index, slot: completions.cq(index), location: 0, ring: None, next: 0 }
    }

    /// Its ring; `None` if the entry was corrupted. For the queue's [producer](Fanin).
    #[inline]
    pub fn ring(&mut self, completions: &'static Completions) -> Option<&mut RawQueue<'static>> {
        let location = self.slot.fanin.location_word();
        if location != self.location {
            self.validate(completions, location);
        }
        self.ring.as_mut()
    }

    /// Prefetches the memory that a push writes.
    #[inline]
    pub fn prefetch(&self) {
        mapping::prefetch_write(&self.slot.fanin);
        if let Some(ring) = &self.ring {
            mapping::prefetch_write(ring.slot(self.next));
        }
    }

    #[cold]
    fn validate(&mut self, completions: &'static Completions, location: u64) {
        self.ring = ring(completions, Location::from_word(location));
        self.location = location;
    }
}

/// The key of the queue at `index` in events. The caller prevents its destruction.
pub fn key(completions: &'static Completions, index: CqIndex) -> CqKey {
    CqKey { index: index.get(), generation: sync::load(&completions.cq(index).generation) }
}

/// Begins a queue in an entry that was claimed, with this generation and this ring. Under the queue's lock.
pub fn begin(
    slot: &CqSlot,
    generation: u32,
    location: Location,
    ignore_overrun: bool,
    like_rxe: bool,
) {
    sync::store(&slot.dropped, 0);
    slot.mode.begin(ignore_overrun);
    slot.mode.set(CqFlag::LikeRxe, like_rxe && !ignore_overrun);
    sync::store(&slot.reported, unreported(generation));
    slot.sole.begin();
    // After the stores above: a reader of this generation sees nothing of the queue before.
    sync::release(&slot.generation, generation);
    slot.moderation.begin();
    sync::store(&slot.announced, 0);
    slot.fanin.begin(location);
}

/// What [`reported`](CqSlot::reported) holds of a queue whose overrun is not reported.
pub const fn unreported(generation: u32) -> u32 {
    generation << 1
}
