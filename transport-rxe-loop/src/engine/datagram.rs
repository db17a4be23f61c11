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

use crate::api::device::MTU;
use crate::engine::destination::Way;
use crate::engine::grh::{self, Grh};
use crate::engine::requester::{Halt, Initiator};
use crate::engine::responder::{Peer, Receive};
use crate::engine::ring::SendRequest;
use crate::fabric::Fabric;
use crate::memory::copy_guard::Window;
use crate::memory::reach::{self, Order, Trouble};
use crate::memory::sge::{Pieces, Target};
use crate::policy::imitation;
use crate::sync::{self, AtomicU64, Site};

/// What is brought, and how.
struct Datagram<'a> {
    fabric: &'static Fabric,
    window: &'a Window<'a>,
    from: Pieces<'a>,
    imm: Option<[u8; 4]>,
    solicited: bool,
    way: &'a Way,
    /// The number of the sender.
    sender: u32,
    qkey: u32,
}

impl Initiator<'_> {
    /// Carries a datagram out. It fails only over what is wrong on this side.
    pub fn bring(
        &mut self,
        window: &Window<'_>,
        request: &SendRequest,
        way: &Way,
    ) -> Result<(), Halt> {
        let SendOp::Send { imm } = request.op else {
            return Err(Halt::Failed(WcStatus::LOC_QP_OP_ERR));
        };
        if request.payload.len() > MTU.into() {
            if imitation::drops_long(self.fabric) {
                return Ok(());
            }
            return Err(Halt::Failed(WcStatus::LOC_LEN_ERR));
        }
        let mut from = Pieces::new();
        self.source(window, &request.payload, &mut from)?;
        let own = imitation::own_key(self.fabric);
        let qkey = if way.qkey & own == 0 { way.qkey } else { sync::load(&self.slot.qkey) };
        let solicited = request.flags.contains(SendFlags::SOLICITED);
        let (fabric, sender) = (self.fabric, self.me.number);
        let datagram = Datagram { fabric, window, from, imm, solicited, way, sender, qkey };
        let receiver = Peer::new(fabric, way.qp_num, sender, QpType::Ud);
        datagram.come_to(&receiver);
        // Nobody may have flushed it while it was taking this.
        sync::full_fence_at(Site::LeaveFence);
        if receiver.has_failed() {
            self.kicks.add(fabric, way.qp_num);
        }
        Ok(())
    }
}

impl<'a> Datagram<'a> {
    /// Comes to whom it is for, if that takes it: it is looked at twice, since it may go while nobody has
    /// its lock.
    fn come_to(&self, receiver: &Peer) {
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
                let (status, _) = imitation::mismatch(self.fabric, status, unheard);
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
            let found =
                self.window.target(into, receive.domain, pieces, Access::LOCAL_WRITE, limit);
            found.ok_or(Lost::Refused(WcStatus::LOC_PROT_ERR))
        };
        find(&mut head, &mut sges.pieces(), grh::BYTES as u64)?;
        find(&mut body, &mut behind_grh(sges.pieces()), len)?;
        let copy = |from: &Pieces<'_>, to| {
            reach::copy(self.fabric, from, to, Order::Any).map_err(|trouble| match trouble {
                Trouble::Fault => Lost::Refused(WcStatus::LOC_PROT_ERR),
                Trouble::NoAnswer => Lost::NoAnswer,
            })
        };
        if let Some(route) = self.way.route {
            let immediate = self.imm.map_or(0, |imm| imm.len());
            let words =
                Grh::new(self.fabric.address().gid, route, self.from.len(), immediate).to_words();
            copy(&Pieces::of_words(&words, grh::BYTES), &head)?;
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
            .with_path(0, self.fabric.address().lid, self.way.sl, 0);
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
