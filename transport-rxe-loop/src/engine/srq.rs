//! Lookups of shared receive queues: where the receives of each lie, and its pool.

use std::mem;

use super::Engine;
use super::entry::SrqSlot;
use crate::protocol::number::{QpIndex, QpNumber, SrqNumber};
use crate::protocol::pool::Queue;
use crate::shm::arena::InArena;
use crate::sync::{self, AtomicU32, AtomicU64};

/// The pool in the arena that the table entry names; `None` if the entry is invalid.
pub fn queue(engine: &'static Engine, slot: &'static SrqSlot) -> Option<Queue<'static>> {
    at(engine.shm, slot, sync::load(&slot.slots_at), sync::load(&slot.capacity))
}

/// How many bytes the slots and the order of so many receives take.
pub const fn bytes(capacity: u32) -> usize {
    let order = (capacity as usize).next_power_of_two() * size_of::<AtomicU32>();
    capacity as usize * size_of::<AtomicU64>() + order
}

/// The pool whose slots and order lie at an offset.
pub fn at<'m>(
    memory: &impl InArena<'m>,
    slot: &'m SrqSlot,
    offset: u32,
    capacity: u32,
) -> Option<Queue<'m>> {
    let (offset, capacity) = (offset as usize, capacity as usize);
    let order = offset.checked_add(capacity.checked_mul(size_of::<AtomicU64>())?)?;
    let slots = memory.in_arena(offset, capacity)?;
    Queue::new(&slot.pool, slots, memory.in_arena(order, capacity.checked_next_power_of_two()?)?)
}

/// The pool of the shared receive queue with this number, if it is there.
pub fn numbered(
    engine: &'static Engine,
    srq: SrqNumber,
) -> Option<(&'static SrqSlot, Queue<'static>)> {
    let slot = engine.srq(srq);
    let is_there = srq != SrqNumber::NONE && slot.number() == srq;
    is_there.then(|| queue(engine, slot)).flatten().map(|queue| (slot, queue))
}

/// Calls `each` for queue pairs connected to a queue pair of this shared receive queue. Each time another one is the first,
/// in turn: it takes what there is, if it waits.
pub fn for_each_sender_to(engine: &'static Engine, srq: SrqNumber, mut each: impl FnMut(QpIndex)) {
    sync::read_fence();
    let first = engine.srq(srq).pool.first();
    let (start, mut is_first) = (sync::load(first), true);
    for step in 0..engine.qps.len() {
        let index = engine.qps.index(start.wrapping_add(step));
        let number = QpNumber::new(sync::load(engine.dest(index)));
        if number != QpNumber::NONE && engine.qp(number).srq() == srq {
            if mem::take(&mut is_first) {
                sync::store(first, index.get().wrapping_add(1));
            }
            each(index);
        }
    }
}

/// A completion of queue pair `qp` with this tag is published: its receive has completed. The queue pair may
/// have lost its number since, but not its entry.
pub fn settle(engine: &'static Engine, qp: QpNumber, tag: u32) {
    let srq = engine.qp(qp).srq();
    if let Some((_, queue)) = numbered(engine, srq) {
        queue.settle(tag, qp);
    }
}
