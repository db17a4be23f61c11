//! Ends requests that will not be carried out: as failures, in order (Q2). Done by whoever holds the turn
//! of the queue pair, so that nobody else completes its requests meanwhile, but for a peer that has its window
//! open: it may have a receive, so they all wait until it is through and kicks.

use cq_core::queue::Entry;
use cq_core::wc::WcStatus;

use super::entry::QpSlot;
use super::ring::{MAX_QP_WR, Ring};
use super::{Engine, begun, complete, events, in_flight, shared_receives};
use crate::completion::async_event::QpEvent;
use crate::protocol::tag;
use crate::sync;

/// Flushes both queues of a queue pair in ERR.
#[cold]
pub fn both(engine: &'static Engine, slot: &'static QpSlot, number: u32, ring: &Ring) {
    sends(engine, slot, number, ring);
    receives(engine, slot, number);
}

/// Flushes the send queue, of a queue pair in SQE too.
#[cold]
pub fn sends(engine: &'static Engine, slot: &QpSlot, number: u32, ring: &Ring) {
    begun::abandon(engine, number);
    let mut position = sync::load(&slot.send.done);
    while ring.has_any(position, sync::acquire(&slot.send.posted)) {
        let wr_id = ring.read_send(position).wr_id;
        complete(engine, slot, number, wr_id, position, WcStatus::WR_FLUSH_ERR);
        position = position.wrapping_add(1);
    }
}

/// Completes the send request at `position` as a failure.
pub fn complete(
    engine: &'static Engine,
    slot: &QpSlot,
    number: u32,
    wr_id: u64,
    position: u64,
    status: WcStatus,
) {
    let wc = complete::failed(wr_id, number, status);
    let tag = tag::of_send(position.wrapping_add(1));
    let cq = sync::load(&slot.send_cq);
    complete::push(engine, cq, &[Entry { wc, tag, solicited: false }]);
}

/// In ERR, nothing more is taken from its shared receive queue, and nothing of that is flushed (Q9): once what
/// was taken has completed, that is told.
fn last_receive(engine: &'static Engine, slot: &QpSlot, number: u32, srq: u32) {
    if sync::load(&slot.report_last) == 0 {
        return;
    }
    let Ok(is_taken) = shared_receives::is_taken_for(engine, srq, number) else {
        // Where there can be no alarm, the next who kicks looks again.
        let _ = engine.wake_soon(number);
        return;
    };
    if !is_taken && sync::swap_if(&slot.report_last, 1, 0).is_ok() {
        events::report_qp(engine, number, QpEvent::LastReceive);
    }
}

/// What somebody is in the middle of is left to him, and what is behind that is flushed when he has kicked.
fn receives(engine: &'static Engine, slot: &'static QpSlot, number: u32) {
    let srq = sync::load(&slot.srq);
    if srq != 0 {
        return last_receive(engine, slot, number, srq);
    }
    let Some(ring) = Ring::of(engine.shm, &slot.recv_ring) else { return };
    let Some(_alone) = in_flight::alone_at(engine, slot, number) else { return };
    let cq = sync::load(&slot.recv_cq);
    // The peer may have died behind a completion that it had published; none is to be published twice.
    complete::outwait_push_or_give_up(engine, cq);
    // Where a stranger wrote, there is an end, too.
    let capacity = sync::load(&slot.recv_capacity).min(MAX_QP_WR);
    for position in slot.recv.left(capacity) {
        let wr_id = ring.read_recv(position).wr_id;
        let wc = complete::failed(wr_id, number, WcStatus::WR_FLUSH_ERR);
        let tag = tag::of_recv(position.wrapping_add(1));
        complete::push(engine, cq, &[Entry { wc, tag, solicited: false }]);
    }
}

#[cfg(test)]
mod tests;
