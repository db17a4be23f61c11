//! Carrying a datagram out: it is brought to whoever has the number, by the sender. Nobody answers, so that
//! whatever is wrong over there, the sender does not hear of it.
//!
//! # Many senders
//! Receives of a queue pair for datagrams are taken by anybody, so whoever takes one holds its lock,
//! [`taking`](crate::layout::QpSlot::taking), from before he looks at its state until the completion is
//! pushed: for one datagram, of a packet at most. Under it he is what the peer is of a connection, so that
//! receives complete in the order in which they were posted (C10).
//!
//! | who | does | then |
//! |---|---|---|
//! | sender | takes the lock | looks at the state |
//! | sender | gives it back, fences | looks at the state: in ERR, it kicks |
//! | who shuts: ERR, RESET, destroying | changes the state | takes the lock, once |
//! | who flushes | has seen ERR, fences | tries the lock, and leaves it to the sender if that is taken |
//!
//! The lock is inherited from who died: the receive that he had taken is the next again, unless its
//! completion is published.

use cq_core::queue::Entry;
use cq_core::setup::{Access, QpType};
use cq_core::wc::{Wc, WcFlags, WcOpcode, WcStatus};
use cq_core::wr::{SendFlags, SendOp, Sge};

use super::grh::{self, Grh};
use super::{Halt, Requester};
use crate::engine::Engine;
use crate::engine::responder::{Receive, Responder};
use crate::engine::ring::SendRequest;
use crate::engine::ud_address::UdAddress;
use crate::memory::copy;
use crate::memory::copy_guard::CopyGuard;
use crate::memory::sge::{Spans, Target};
use crate::memory::transfer::{Order, Trouble};
use crate::sync::{self, AtomicU64, Site};

/// Bytes of a datagram at most.
pub const MTU: u32 = 4096;

/// What is brought, and how.
struct Datagram<'a> {
    engine: &'static Engine,
    guard: &'a CopyGuard<'a>,
    from: Spans<'a>,
    imm: Option<[u8; 4]>,
    solicited: bool,
    way: &'a UdAddress,
    /// The number of the sender.
    sender: u32,
    qkey: u32,
}

impl Requester<'_> {
    /// Carries a datagram out. It fails only over what is wrong on this side.
    pub fn bring(
        &mut self,
        guard: &CopyGuard<'_>,
        request: &SendRequest,
        way: &UdAddress,
    ) -> Result<(), Halt> {
        let SendOp::Send { imm } = request.op else {
            return Err(Halt::Failed(WcStatus::LOC_QP_OP_ERR));
        };
        if request.payload.len() > MTU.into() {
            if self.engine.policy.imitation.drops_long() {
                return Ok(());
            }
            return Err(Halt::Failed(WcStatus::LOC_LEN_ERR));
        }
        let mut from = Spans::new();
        self.source(guard, &request.payload, &mut from)?;
        let own = self.engine.policy.imitation.own_key();
        let qkey = if way.qkey & own == 0 { way.qkey } else { sync::load(&self.slot.qkey) };
        let solicited = request.flags.contains(SendFlags::SOLICITED);
        let (engine, sender) = (self.engine, self.me.number);
        let datagram = Datagram { engine, guard, from, imm, solicited, way, sender, qkey };
        let receiver = Responder::new(engine, way.qp_num, sender, QpType::Ud);
        datagram.come_to(&receiver);
        // Nobody may have flushed it while it was taking this.
        sync::full_fence_at(Site::LeaveFence);
        if receiver.has_failed() {
            self.kicks.add(engine, way.qp_num);
        }
        Ok(())
    }
}

impl<'a> Datagram<'a> {
    /// Comes to whom it is for, if that takes it: it is looked at twice, since it may go while nobody has
    /// its lock.
    fn come_to(&self, receiver: &Responder) {
        if !receiver.takes(self.qkey) {
            return;
        }
        // Who lives and does not give the lock back is suspended: the datagram is lost.
        let Ok(_alone) = receiver.take_receives() else { return };
        if !receiver.takes(self.qkey) {
            return;
        }
        let nothing_known = [const { AtomicU64::new(0) }; 2];
        let Ok(receive) = receiver.receive(&nothing_known, 0) else { return };
        match self.land(&receive) {
            Ok(()) => {
                let wc = self.received(receive.request.wr_id, receiver.number());
                receiver.push(&[Entry { wc, tag: receive.tag, solicited: self.solicited }]);
            }
            Err(Lost::Refused(status)) => {
                let unheard = WcStatus::SUCCESS;
                let (status, _) = self.engine.policy.imitation.mismatch(status, unheard);
                receiver.refused(&receive, status);
            }
            Err(Lost::NoAnswer) => receiver.give_back(&receive),
        }
    }

    /// Moves the bytes, and the global route before them.
    fn land(&self, receive: &Receive) -> Result<(), Lost> {
        let (sges, len) = (&receive.request.sges, self.from.len() as u64);
        if sges.len() < grh::BYTES as u64 + len {
            return Err(Lost::Refused(WcStatus::LOC_LEN_ERR));
        }
        let (mut head, mut body) = (Target::new(), Target::new());
        let find = |into: &mut Target<'a>, pieces: &mut dyn Iterator<Item = Sge>, limit| {
            let found = self.guard.target(into, receive.domain, pieces, Access::LOCAL_WRITE, limit);
            found.ok_or(Lost::Refused(WcStatus::LOC_PROT_ERR))
        };
        find(&mut head, &mut sges.pieces(), grh::BYTES as u64)?;
        find(&mut body, &mut behind_grh(sges.pieces()), len)?;
        let copy = |from: &Spans<'_>, to| {
            copy::copy(self.engine.memory, from, to, Order::Any).map_err(|trouble| match trouble {
                Trouble::Fault => Lost::Refused(WcStatus::LOC_PROT_ERR),
                Trouble::NoAnswer => Lost::NoAnswer,
            })
        };
        if let Some(route) = self.way.route {
            let immediate = self.imm.map_or(0, |imm| imm.len());
            let words =
                Grh::new(self.engine.port.gid, route, self.from.len(), immediate).to_words();
            copy(&Spans::of_words(&words, grh::BYTES), &head)?;
        }
        copy(&self.from, &body)
    }

    /// The completion of the receive that it was put into (C7).
    fn received(&self, wr_id: u64, number: u32) -> Wc {
        let flags = if self.way.route.is_some() { WcFlags::GRH } else { WcFlags::empty() };
        let wc = Wc::new(wr_id, WcStatus::SUCCESS, number)
            .with_opcode(WcOpcode::RECV)
            .with_byte_len((grh::BYTES + self.from.len()) as u32)
            .with_src_qp(self.sender)
            .with_flags(flags)
            .with_path(0, self.engine.port.lid, self.way.sl, 0);
        match self.imm {
            Some(imm) => wc.with_imm(imm),
            None => wc,
        }
    }
}

/// What remains of the pieces of a receive without its first forty bytes.
fn behind_grh(pieces: impl Iterator<Item = Sge>) -> impl Iterator<Item = Sge> {
    let mut skip = grh::BYTES as u32;
    pieces.map(move |Sge { addr, length, lkey }| {
        let skipped = skip.min(length);
        skip -= skipped;
        Sge { addr: addr.wrapping_add(skipped.into()), length: length - skipped, lkey }
    })
}

/// Why a datagram was not taken.
enum Lost {
    /// The receive can't hold it: it fails so.
    Refused(WcStatus),
    /// The receiver's process does not answer.
    NoAnswer,
}

#[cfg(test)]
mod tests;
