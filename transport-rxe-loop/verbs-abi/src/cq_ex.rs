//! Making completion queues, `ibv_create_cq(3)` and `ibv_create_cq_ex(3)`, and polling them one completion at a time,
//! field by field.
//!
//! Between a successful `start_poll` and `end_poll` a thread has the queue's [gate](crate::side::Gate), and nothing else:
//! posting, and even `ibv_poll_cq`, go on. What it polled last is kept beside the C structure, where the functions
//! that read a field find it.

use std::mem::offset_of;

use cq_core::transport::PollCq;
use cq_core::wc::Wc;

use crate::cq::{self, Public, QUEUES, Queue};
use crate::errno::Errno;
use crate::raw::{In, Plain, Slot};
use crate::sys::*;

/// `ibv_create_cq(3)`. EINVAL: fewer than one entry, or more than the device allows; no such completion vector; a
/// channel of another context. EINVAL, ENOENT: no context, no channel. ENOMEM: too many, or no memory.
pub fn create_cq(
    context: *const ibv_context,
    cqe: c_int,
    cq_context: *mut c_void,
    channel: *mut ibv_comp_channel,
    comp_vector: c_int,
) -> Result<*mut ibv_cq, Errno> {
    let init = ibv_cq_init_attr_ex {
        // Below 0 is more than there can be of either.
        cqe: cqe as u32,
        comp_vector: comp_vector as u32,
        cq_context,
        channel,
        ..ibv_cq_init_attr_ex::ZEROED
    };
    cq::create(context, &init, false).map(Slot::face)
}

/// `ibv_create_cq_ex(3)`. EOPNOTSUPP: fields, flags or attributes that the device does not have. Else as
/// `ibv_create_cq`.
pub fn create_cq_ex(
    context: *const ibv_context,
    init: In<'_, ibv_cq_init_attr_ex>,
) -> Result<*mut ibv_cq_ex, Errno> {
    let init = init.given()?;
    let ignore_overrun = ignores_overrun(init)?;
    cq::create(context, init, ignore_overrun).map(Slot::face)
}

/// Whether overruns are to be ignored.
///
/// # Errors
/// EOPNOTSUPP: something is to be what there is not. That only one thread uses the queue is believed, and helps
/// nobody.
fn ignores_overrun(init: &ibv_cq_init_attr_ex) -> Result<bool, Errno> {
    let flags = if init.comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS != 0 { init.flags } else { 0 };
    let known = IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
    let unknown = init.wc_flags & !u64::from(IBV_WC_STANDARD_FLAGS) != 0
        || init.comp_mask & !IBV_CQ_INIT_ATTR_MASK_FLAGS != 0
        || flags & !known != 0;
    if unknown {
        return Err(Errno::OPNOTSUPP);
    }
    Ok(flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN != 0)
}

/// The place of a queue; where ENOENT would be told, EINVAL is, since the former means that a queue is empty.
#[inline]
fn find(cq: *const ibv_cq_ex) -> Result<&'static Slot<Queue>, Errno> {
    QUEUES.find(cq).map_err(|why| if why == Errno::NOENT { Errno::INVAL } else { why })
}

/// Polls the next completion, for who has the gate.
///
/// # Errors
/// ENOENT: there is none. EOVERFLOW: the queue has overrun. EINVAL: it has gone. ENODEV: this is a forked child.
#[inline]
fn advance(slot: &'static Slot<Queue>) -> Result<(), Errno> {
    let mut next = [Wc::default()];
    let polled = slot.with(|queue| queue.cq.poll_into(&mut next)).map_err(|_| Errno::INVAL)??;
    if polled == 0 {
        return Err(Errno::NOENT);
    }
    slot.store(offset_of!(Public, current), next[0]);
    slot.store(offset_of!(Public, cq.status), next[0].status());
    slot.store(offset_of!(Public, cq.wr_id), next[0].wr_id());
    Ok(())
}

/// `ibv_start_poll`. Waits while somebody else polls. ENOENT: the queue is empty. EINVAL: attributes that there are
/// not, or no queue. EOVERFLOW, ENODEV: as for `ibv_poll_cq`.
pub fn start_poll(cq: *const ibv_cq_ex, attr: In<'_, ibv_poll_cq_attr>) -> Result<(), Errno> {
    if attr.given()?.comp_mask != 0 {
        return Err(Errno::INVAL);
    }
    let slot = find(cq)?;
    slot.side().gate.enter();
    advance(slot).inspect_err(|_| slot.side().gate.leave())
}

/// `ibv_next_poll`. As `start_poll`; the turn is kept.
pub fn next_poll(cq: *const ibv_cq_ex) -> Result<(), Errno> {
    find(cq).and_then(advance)
}

/// `ibv_end_poll`. Harmless where nothing was started.
pub fn end_poll(cq: *const ibv_cq_ex) {
    if let Ok(slot) = find(cq) {
        slot.side().gate.leave();
    }
}

/// A field of the completion that was polled last, for who has the gate; 0 where there is no queue.
pub fn read<T: Plain + Default>(cq: *const ibv_cq_ex, offset: usize) -> T {
    find(cq).map(|slot| slot.load(offset_of!(Public, current) + offset)).unwrap_or_default()
}

#[cfg(test)]
mod tests;
