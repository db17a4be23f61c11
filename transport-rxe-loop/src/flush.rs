//! Ends requests that will not be carried out: as failures, in order (Q2). Done by whoever holds the turn
//! of the queue pair, so that nobody else completes its requests meanwhile, but for a peer that has taken a
//! receive: what is behind that one waits until it is through, and is flushed by the peer then.

use cq_core::wc::WcStatus;

use crate::completion::{self, RECV_TAG};
use crate::cq;
use crate::fabric::Fabric;
use crate::layout::QpSlot;
use crate::queue::Ring;
use crate::sync;

/// Flushes both queues of a queue pair in ERR.
#[cold]
pub fn both(fabric: &'static Fabric, slot: &'static QpSlot, number: u32, ring: &Ring) {
    sends(fabric, slot, number, ring);
    receives(fabric, slot, number);
}

fn sends(fabric: &'static Fabric, slot: &QpSlot, number: u32, ring: &Ring) {
    let mut position = sync::load(&slot.send.done);
    while ring.has_any(position, sync::acquire(&slot.send.posted)) {
        let wr_id = ring.read_send(position).wr_id;
        complete(fabric, slot, number, wr_id, position, WcStatus::WR_FLUSH_ERR);
        position = position.wrapping_add(1);
    }
}

/// Completes the send request at `position` as a failure.
pub fn complete(
    fabric: &'static Fabric,
    slot: &QpSlot,
    number: u32,
    wr_id: u64,
    position: u64,
    status: WcStatus,
) {
    let next = position.wrapping_add(1);
    sync::store(&slot.send.done, next);
    let wc = completion::failed(wr_id, number, status);
    cq::push(fabric, sync::load_u32(&slot.send_cq), &wc, completion::send_tag(next), false);
}

fn receives(fabric: &'static Fabric, slot: &QpSlot, number: u32) {
    let Some(ring) = Ring::of(fabric, &slot.recv_ring) else { return };
    while let Some(wr_id) = take(slot, &ring) {
        let wc = completion::failed(wr_id, number, WcStatus::WR_FLUSH_ERR);
        cq::push(fabric, sync::load_u32(&slot.recv_cq), &wc, RECV_TAG, false);
    }
}

fn take(slot: &QpSlot, ring: &Ring) -> Option<u64> {
    let recv = &slot.recv;
    let _guard = recv.lock.lock();
    let taken = sync::load(&recv.taken);
    if sync::load_u32(&recv.in_flight) != 0 || !ring.has_any(taken, sync::load(&recv.posted)) {
        return None;
    }
    let wr_id = ring.read_recv(taken).wr_id;
    sync::release(&recv.taken, taken.wrapping_add(1));
    Some(wr_id)
}
