//! Completions: their contents, and what their tags do. A receive queue advances as its completion is published. A send
//! queue advances before, and the [slots](crate::protocol::send_slots) of its requests know where their completions are (Q5).

use cq_core::queue::Tagged;
use cq_core::transport::CqKey;
use cq_core::wc::{Failed, Wc, WcOpcode, WcStatus};
use cq_verbs::wr::SendOp;

use super::entry::QpSlot;
use super::{Engine, identity, overrun, srq};
use crate::completion::lock::{self, RequestHooks};
use crate::completion::push::{self, Lost, Pushed};
use crate::completion::queue::CqRing;
use crate::completion::soft_roce;
use crate::completion::wakeup::Wakeup;
use crate::error::Stuck;
use crate::protocol::mode::CqFlag;
use crate::protocol::number::{CqIndex, Position, QpNumber};
use crate::protocol::send_slots::SendSlots;
use crate::protocol::tag;
use crate::shm::lock::Guard;
use crate::sync;

/// A send request that succeeded, and the number of bytes that were returned to it (C7).
#[inline(always)]
pub fn sent(wr_id: u64, qp: QpNumber, op: SendOp, returned: u32) -> Wc {
    Wc::new(wr_id, WcStatus::SUCCESS, qp.get()).with_opcode(opcode(&op)).with_byte_len(returned)
}

/// The opcode of a send request's completion.
#[inline(always)]
pub const fn opcode(op: &SendOp) -> WcOpcode {
    match op {
        SendOp::Write { .. } => WcOpcode::RDMA_WRITE,
        SendOp::Read { .. } => WcOpcode::RDMA_READ,
        SendOp::CompareSwap { .. } => WcOpcode::COMP_SWAP,
        SendOp::FetchAdd { .. } => WcOpcode::FETCH_ADD,
        SendOp::AtomicWrite { .. } => WcOpcode::ATOMIC_WRITE,
        SendOp::Flush { .. } => WcOpcode::FLUSH,
        SendOp::BindWindow(_) => WcOpcode::BIND_MW,
        SendOp::LocalInvalidate { .. } => WcOpcode::LOCAL_INV,
        _ => WcOpcode::SEND,
    }
}

/// What consumed a receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceivedOp {
    /// For the bytes of a SEND.
    Send { imm: Option<[u8; 4]> },
    /// For the bytes of a SEND, which invalidated a memory window.
    SendInvalidate { rkey: u32 },
    /// A WRITE with immediate.
    Write { imm: [u8; 4] },
}

/// A receive that succeeded, and the number of bytes that arrived (C5, C7).
#[inline(always)]
pub fn received(wr_id: u64, qp: QpNumber, len: usize, received_op: ReceivedOp) -> Wc {
    let wc = Wc::new(wr_id, WcStatus::SUCCESS, qp.get()).with_byte_len(len as u32);
    match received_op {
        ReceivedOp::Send { imm: None } => wc.with_opcode(WcOpcode::RECV),
        ReceivedOp::Send { imm: Some(imm) } => wc.with_opcode(WcOpcode::RECV).with_imm(imm),
        ReceivedOp::SendInvalidate { rkey } => {
            wc.with_opcode(WcOpcode::RECV).with_invalidated_rkey(rkey)
        }
        ReceivedOp::Write { imm } => wc.with_opcode(WcOpcode::RECV_RDMA_WITH_IMM).with_imm(imm),
    }
}

/// A request of either queue that failed. Its completion goes to the completion queue at `cq`.
#[cold]
pub fn failed(
    engine: &'static Engine,
    cq: CqIndex,
    wr_id: u64,
    qp: QpNumber,
    status: WcStatus,
) -> Wc {
    let failed = Failed::new(wr_id, status, qp.get(), 0);
    let wc = failed.map_or(Wc::new(wr_id, status, qp.get()), Wc::poisoned);
    match engine.completions.cq(cq).mode.has(CqFlag::KnownOpcodes) {
        true => wc.with_opcode(soft_roce::FAILED_OPCODE),
        false => wc,
    }
}

/// A completion of queue pair `qp` is published: if it is a receive's, what its tag covers is done. Idempotent.
#[inline]
pub fn settle(engine: &'static Engine, qp: QpNumber, tag: u32) {
    if tag::is_send(tag) {
        return;
    }
    if tag::is_pool(tag) {
        return srq::settle(engine, qp, tag);
    }
    let slot = engine.qp(qp);
    if identity::read(&slot.identity).number() == qp {
        slot.recv.settle(tag, sync::load(&slot.recv_capacity));
    }
}

impl RequestHooks for &'static Engine {
    fn settle(self, wc: &Wc, tag: u32) {
        settle(self, QpNumber::new(wc.qp_num()), tag);
    }
}

/// The queue pair of which completions of receives are pushed.
#[derive(Clone, Copy)]
struct Received {
    engine: &'static Engine,
    slot: &'static QpSlot,
    number: QpNumber,
}

impl RequestHooks for Received {
    #[inline(always)]
    fn settle(self, wc: &Wc, tag: u32) {
        let is_its = wc.qp_num() == self.number.get() && !tag::is_send(tag) && !tag::is_pool(tag);
        if is_its && identity::read(&self.slot.identity).number() == self.number {
            self.slot.recv.settle(tag, sync::load(&self.slot.recv_capacity));
        } else {
            settle(self.engine, QpNumber::new(wc.qp_num()), tag);
        }
    }

    #[inline(always)]
    fn settle_all(self, entries: &[Tagged]) {
        match entries {
            // What it covers is done up to the last, but in a pool each is done alone.
            [.., Tagged { wc, tag, .. }] if !tag::is_pool(*tag) => self.settle(wc, *tag),
            _ => entries.iter().for_each(|Tagged { wc, tag, .. }| self.settle(wc, *tag)),
        }
    }
}

/// The send queue of which completions are pushed.
#[derive(Clone, Copy)]
struct Sent<'a> {
    engine: &'static Engine,
    slot: &'static QpSlot,
    slots: &'a SendSlots<'a>,
}

impl RequestHooks for Sent<'_> {
    #[inline(always)]
    fn place(self, tag: u32, in_cq: u64) {
        self.slots.completes_at(tag::last_send(tag), in_cq);
    }

    fn settle(self, wc: &Wc, tag: u32) {
        settle(self.engine, QpNumber::new(wc.qp_num()), tag);
    }

    /// They were done before.
    #[inline(always)]
    fn settle_all(self, _: &[Tagged]) {}

    fn lost(self, tag: u32) {
        self.slots.pending(tag::last_send(tag));
    }

    fn dropped(self, tag: u32) {
        sync::release(&self.slot.send.freed, tag::send_end(tag, self.slot.send.done()).get());
    }
}

/// Pushes completions of receives of a queue pair, of [`RUN`](lock::RUN) requests at most. If the completion queue overruns,
/// its queue pairs fail (O4). Returns the wake-up that is due.
#[inline(always)]
pub fn push_received(
    engine: &'static Engine,
    (number, slot): (QpNumber, &'static QpSlot),
    cq: &mut CqRing,
    entries: &[Tagged],
) -> Wakeup {
    let requests = Received { engine, slot, number };
    if let [entry] = entries {
        if push::push_one(engine.completions, cq, entry, requests, false) {
            fail_overran(engine);
            return Wakeup::None;
        }
    }
    let pushed = push::push_any(engine.completions, cq, entries, requests);
    pushed_all(engine, cq, entries, pushed)
}

/// The requests of a send queue before position `end` are done: pushes their completions, as [`push_received`] does. For
/// the owner of the send queue, with its copy guard closed.
#[inline(never)]
pub fn push_sent(
    engine: &'static Engine,
    (slot, slots): (&'static QpSlot, &SendSlots<'_>),
    cq: &mut CqRing,
    end: Position,
    entries: &[Tagged],
) -> Wakeup {
    // Before its completion can be polled.
    sync::release(&slot.send.done, end.get());
    if entries.is_empty() {
        return Wakeup::None;
    }
    let pushed = push::push_any(engine.completions, cq, entries, Sent { engine, slot, slots });
    pushed_all(engine, cq, entries, pushed)
}

/// The requests of a send queue before position `end` are done: pushes one completion at most, and waits for nobody, since
/// the in-flight marker is set. False if that is not enough: the caller closes its guard and calls [`push_sent`].
#[inline(always)]
pub fn push_sent_at_once(
    engine: &'static Engine,
    (slot, slots): (&'static QpSlot, &SendSlots<'_>),
    cq: &mut CqRing,
    end: Position,
    entries: &[Tagged],
) -> bool {
    sync::release(&slot.send.done, end.get());
    match entries {
        [] => true,
        [entry] => {
            let is_alone = cq.slot.sole.is(QpNumber::new(entry.wc.qp_num()));
            push::push_one(engine.completions, cq, entry, Sent { engine, slot, slots }, is_alone)
        }
        _ => false,
    }
}

/// What follows a push: queue pairs fail whose completion queues have overrun. Returns the wake-up that is due.
#[inline(always)]
fn pushed_all(
    engine: &'static Engine,
    cq: &CqRing,
    entries: &[Tagged],
    Pushed { lost, wakeup }: Pushed,
) -> Wakeup {
    if let Some(lost) = lost {
        fail(engine, cq.index, lost, entries);
    }
    fail_overran(engine);
    wakeup
}

/// Fails queue pairs whose completions were lost.
#[cold]
fn fail(engine: &'static Engine, cq: CqIndex, lost: Lost, entries: &[Tagged]) {
    let Lost::Dropped { from } = lost else {
        let last = entries.last().map_or(0, |last| last.wc.qp_num());
        return overrun::fail_queue_pairs(engine, cq, QpNumber::new(last));
    };
    for Tagged { wc, tag, .. } in &entries[from as usize..] {
        if !tag::is_send(*tag) {
            overrun::fail(engine, engine.qp(QpNumber::new(wc.qp_num())), cq);
        }
    }
}

/// Fails the queue pairs of completion queues that were [found](crate::completion::overran) to have overrun.
#[inline]
pub fn fail_overran(engine: &'static Engine) {
    if engine.completions.overran.any() {
        while let Some(CqKey { index, generation }) = engine.completions.overran.take() {
            overrun::fail_queue_pairs_again(engine, CqIndex::new(index), generation);
        }
    }
}

/// Takes the lock of the completion queue at `cq`. What a dead producer had published is settled first.
///
/// # Errors
/// The holder is alive and does not release it.
pub fn lock(engine: &'static Engine, cq: CqIndex) -> Result<Guard<'static>, Stuck> {
    let cq = CqRing::new(engine.completions, cq);
    let guard = lock::lock(engine.completions, &cq, engine);
    fail_overran(engine);
    guard
}

/// Raises the event of the completion queue at `cq`, and fails its queue pairs if it overran: a producer that died
/// may have done neither.
pub fn tell(engine: &'static Engine, cq: CqIndex) {
    lock::tell(engine.completions, cq);
    fail_overran(engine);
}

/// Waits until the current push to the completion queue at `cq` is done; what a dead producer had published is settled
/// then. False if the lock can't be taken: the push may go on.
#[cold]
pub fn wait_for_push(engine: &'static Engine, cq: CqIndex) -> bool {
    lock(engine, cq).is_ok()
}

/// The same. If the lock can't be had, the queue is given up, so that its holder publishes nothing later. Later calls
/// neither wait nor notify again: that would run all queue pairs of the queue again, this one included.
#[cold]
pub fn wait_for_push_or_give_up(engine: &'static Engine, cq: CqIndex) {
    let is_given_up = engine.completions.cq(cq).mode.has(CqFlag::GivenUp);
    if !is_given_up && !wait_for_push(engine, cq) {
        lock::give_up(engine.completions, cq, &[], engine);
        fail_overran(engine);
    }
}

#[cfg(test)]
mod tests;
