//! Flushing: ends requests that will not be carried out, as failures, in order (Q2). The owner of the send queue does
//! it, so no other thread completes the queue pair's requests meanwhile. The exception is a peer whose copy guard is
//! open: it may have a receive, so all receives wait until it has closed the guard and reschedules the queue pair.

use cq_core::queue::Tagged;
use cq_core::wc::WcStatus;

use super::entry::QpSlot;
use super::ring::{MAX_QP_WR, Ring};
use super::{Engine, complete, events, in_flight, pending_atomic, shared_receives};
use crate::completion::async_event::QpEvent;
use crate::completion::queue::CqRing;
use crate::protocol::number::{Position, QpNumber, SrqNumber};
use crate::protocol::send_slots::SendSlots;
use crate::protocol::tag;
use crate::sync;

/// Flushes both queues of a queue pair in ERR.
#[cold]
pub fn both(
    engine: &'static Engine,
    slot: &'static QpSlot,
    number: QpNumber,
    queue: (&Ring, &SendSlots<'_>),
) {
    sends(engine, slot, number, queue);
    receives(engine, slot, number);
}

/// Flushes the send queue, of a queue pair in ERR or SQE.
#[cold]
pub fn sends(
    engine: &'static Engine,
    slot: &'static QpSlot,
    number: QpNumber,
    (ring, slots): (&Ring, &SendSlots<'_>),
) {
    pending_atomic::abandon(engine, number);
    let mut position = slot.send.done();
    while ring.has_any(position, slot.send.posted_acquire()) {
        let wr_id = ring.read_send(position).wr_id;
        complete(engine, (slot, slots), number, wr_id, position, WcStatus::WR_FLUSH_ERR);
        position = position.next();
    }
}

/// Completes the send request at `position` as a failure, and wakes the consumer.
pub fn complete(
    engine: &'static Engine,
    (slot, slots): (&'static QpSlot, &SendSlots<'_>),
    number: QpNumber,
    wr_id: u64,
    position: Position,
    status: WcStatus,
) {
    let wc = complete::failed(engine, slot.send_cq(), wr_id, number, status);
    let tag = tag::of_send(position.next());
    let mut cq = CqRing::new(engine.completions, slot.send_cq());
    let entry = Tagged { wc, tag, solicited: false };
    complete::push_sent(engine, (slot, slots), &mut cq, position.next(), &[entry])
        .raise(engine.completions);
}

/// In ERR, no more receives are taken from the shared receive queue, and it is not flushed (Q9). Once those that
/// were taken have completed, QP_LAST_WQE_REACHED is reported.
fn last_receive(engine: &'static Engine, slot: &QpSlot, number: QpNumber, srq: SrqNumber) {
    if sync::load(&slot.report_last) == 0 {
        return;
    }
    let Ok(is_taken) = shared_receives::is_taken_for(engine, srq, number) else {
        // Where no alarm can be set, the next reschedule looks again.
        let _ = engine.alarms.wake_soon(engine.index(number));
        return;
    };
    if !is_taken && sync::cas(&slot.report_last, 1, 0).is_ok() {
        events::report_qp(engine, number, QpEvent::LastReceive);
    }
}

/// Flushes the receives, unless one may be in flight: then the peer reschedules the queue pair once it is done.
fn receives(engine: &'static Engine, slot: &'static QpSlot, number: QpNumber) {
    let srq = slot.srq();
    if srq != SrqNumber::NONE {
        return last_receive(engine, slot, number, srq);
    }
    let Some(ring) = Ring::of(engine.shm, &slot.recv_ring) else { return };
    let Some(_alone) = in_flight::try_exclude_senders(engine, slot, number) else { return };
    let mut cq = CqRing::new(engine.completions, slot.recv_cq());
    // The peer may have died after it published a completion; none is to be published twice.
    complete::wait_for_push_or_give_up(engine, cq.index);
    // Bounded, also where another process corrupted it.
    let capacity = sync::load(&slot.recv_capacity).min(MAX_QP_WR);
    for position in slot.recv.left(capacity) {
        let wr_id = ring.read_recv(position).wr_id;
        let wc = complete::failed(engine, cq.index, wr_id, number, WcStatus::WR_FLUSH_ERR);
        let tag = tag::of_recv(position.next());
        let entry = Tagged { wc, tag, solicited: false };
        complete::push_received(engine, (number, slot), &mut cq, &[entry])
            .raise(engine.completions);
    }
}

#[cfg(test)]
mod tests;
