//! What a completion says, and what is done by its tag: its queue advances as it is published, and slots of
//! the send queue come back as it is polled (Q5).

use cq_core::wc::{Wc, WcOpcode, WcStatus};
use cq_core::wr::SendOp;

use crate::engine::identity;
use crate::engine::shared_receives;
use crate::fabric::Fabric;
use crate::protocol::tag;
use crate::sync;

/// A send that was carried out, and so many bytes that came back with it (C7).
#[inline]
pub fn sent(wr_id: u64, qp: u32, op: SendOp, returned: u32) -> Wc {
    let opcode = match op {
        SendOp::Write { .. } => WcOpcode::RDMA_WRITE,
        SendOp::Read { .. } => WcOpcode::RDMA_READ,
        SendOp::CompareSwap { .. } => WcOpcode::COMP_SWAP,
        SendOp::FetchAdd { .. } => WcOpcode::FETCH_ADD,
        SendOp::AtomicWrite { .. } => WcOpcode::ATOMIC_WRITE,
        SendOp::Flush { .. } => WcOpcode::FLUSH,
        SendOp::BindWindow(_) => WcOpcode::BIND_MW,
        SendOp::LocalInvalidate { .. } => WcOpcode::LOCAL_INV,
        _ => WcOpcode::SEND,
    };
    Wc::new(wr_id, WcStatus::SUCCESS, qp).with_opcode(opcode).with_byte_len(returned)
}

/// What a receive was taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Took {
    /// For the bytes of a SEND.
    Send { imm: Option<[u8; 4]> },
    /// For the bytes of a SEND, which took the key of a window away.
    SendInvalidate { rkey: u32 },
    /// To tell of a WRITE, whose bytes are elsewhere.
    Write { imm: [u8; 4] },
}

/// A receive that was used, and so many bytes that came (C5, C7).
#[inline]
pub fn received(wr_id: u64, qp: u32, len: usize, took: Took) -> Wc {
    let wc = Wc::new(wr_id, WcStatus::SUCCESS, qp).with_byte_len(len as u32);
    match took {
        Took::Send { imm: None } => wc.with_opcode(WcOpcode::RECV),
        Took::Send { imm: Some(imm) } => wc.with_opcode(WcOpcode::RECV).with_imm(imm),
        Took::SendInvalidate { rkey } => wc.with_opcode(WcOpcode::RECV).with_invalidated_rkey(rkey),
        Took::Write { imm } => wc.with_opcode(WcOpcode::RECV_RDMA_WITH_IMM).with_imm(imm),
    }
}

/// A request of either queue that failed.
#[cold]
pub fn failed(wr_id: u64, qp: u32, status: WcStatus) -> Wc {
    Wc::poisoned(wr_id, status, qp)
}

/// Whether slots of a send queue may come back with a completion: not with a receive's that succeeded.
#[inline]
pub fn retires(wc: &Wc) -> bool {
    !wc.result().is_ok_and(|done| done.is_recv())
}

/// A completion was polled: gives back the slots that its tag says. A tag that can't be, or that an earlier
/// life of the queue pair left, gives back nothing.
#[inline]
pub fn retire(fabric: &'static Fabric, wc: &Wc, tag: u32) {
    if !tag::is_send(tag) {
        return;
    }
    let qp = wc.qp_num();
    let slot = fabric.qp(qp);
    if identity::read(slot).number == qp {
        tag::settle(&slot.retired.0, tag, sync::load(&slot.send_capacity));
    }
}

/// A completion of queue pair `qp` is published: what its tag covers is done. Says nothing new the second
/// time.
#[inline]
pub fn settle(fabric: &'static Fabric, qp: u32, tag: u32) {
    if tag::is_pool(tag) {
        return shared_receives::settle(fabric, qp, tag);
    }
    let slot = fabric.qp(qp);
    if identity::read(slot).number != qp {
        return;
    }
    if tag::is_send(tag) {
        // Written by who has the turn alone: no completion of this queue is anybody else's to push.
        let done = tag::past(sync::load(&slot.send.done), tag, sync::load(&slot.send_capacity));
        done.into_iter().for_each(|done| sync::release(&slot.send.done, done));
    } else {
        slot.recv.settle(tag, sync::load(&slot.recv_capacity));
    }
}

#[cfg(test)]
mod tests;
