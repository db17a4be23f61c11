//! Ends requests that will not be carried out: as failures, in order (Q2). Done by whoever holds the turn
//! of the queue pair, so that nobody else completes its requests meanwhile, but for a peer that has its window
//! open: it may have a receive, so they all wait until it is through and kicks.

use cq_core::queue::Entry;
use cq_core::wc::WcStatus;

use crate::api::device::MAX_QP_WR;
use crate::completion::async_event::{self, QpEvent};
use crate::completion::push;
use crate::engine::complete;
use crate::engine::in_flight;
use crate::engine::onesided;
use crate::engine::ring::Ring;
use crate::engine::shared_receives;
use crate::fabric::Fabric;
use crate::layout::QpSlot;
use crate::protocol::tag;
use crate::sync;

/// Flushes both queues of a queue pair in ERR.
#[cold]
pub fn both(fabric: &'static Fabric, slot: &'static QpSlot, number: u32, ring: &Ring) {
    sends(fabric, slot, number, ring);
    receives(fabric, slot, number);
}

/// Flushes the send queue, of a queue pair in SQE too.
#[cold]
pub fn sends(fabric: &'static Fabric, slot: &QpSlot, number: u32, ring: &Ring) {
    onesided::abandon(fabric, number);
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
    let wc = complete::failed(wr_id, number, status);
    let tag = tag::of_send(position.wrapping_add(1));
    let cq = sync::load(&slot.send_cq);
    push::push(fabric, cq, &[Entry { wc, tag, solicited: false }]);
}

/// In ERR, nothing more is taken from its shared receive queue, and nothing of that is flushed (Q9): once what
/// was taken has completed, that is told.
fn last_receive(fabric: &'static Fabric, slot: &QpSlot, number: u32, srq: u32) {
    if sync::load(&slot.report_last) == 0 {
        return;
    }
    let Ok(is_taken) = shared_receives::is_taken_for(fabric, srq, number) else {
        // Where there can be no alarm, the next who kicks looks again.
        let _ = fabric.service().wake_soon(fabric, number);
        return;
    };
    if !is_taken && sync::swap_if(&slot.report_last, 1, 0).is_ok() {
        async_event::report_qp(fabric, number, QpEvent::LastReceive);
    }
}

/// What somebody is in the middle of is left to him, and what is behind that is flushed when he has kicked.
fn receives(fabric: &'static Fabric, slot: &'static QpSlot, number: u32) {
    let srq = sync::load(&slot.srq);
    if srq != 0 {
        return last_receive(fabric, slot, number, srq);
    }
    let Some(ring) = Ring::of(fabric, &slot.recv_ring) else { return };
    let Some(_alone) = in_flight::alone_at(fabric, slot, number) else { return };
    let cq = sync::load(&slot.recv_cq);
    // The peer may have died behind a completion that it had published; none is to be published twice.
    push::outwait_push_or_give_up(fabric, cq);
    // Where a stranger wrote, there is an end, too.
    let capacity = sync::load(&slot.recv_capacity).min(MAX_QP_WR);
    for position in slot.recv.left(capacity) {
        let wr_id = ring.read_recv(position).wr_id;
        let wc = complete::failed(wr_id, number, WcStatus::WR_FLUSH_ERR);
        let tag = tag::of_recv(position.wrapping_add(1));
        push::push(fabric, cq, &[Entry { wc, tag, solicited: false }]);
    }
}

#[cfg(test)]
mod tests;
