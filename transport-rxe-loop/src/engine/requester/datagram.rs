//! UD SENDs: the sender itself places a datagram into a receive of the queue pair that it is addressed to. Nothing is
//! answered, so errors of the receiver do not reach the sender.
//!
//! # Many senders
//! Any queue pair may send to one of type UD, so a sender holds the receiver's lock, [`QpSlot::receive_lock`], while it takes
//! a receive: from before it looks at the state until the completion is pushed, for one datagram of at most one MTU.
//! Receives therefore complete in the order in which they were posted (C10).
//!
//! | thread | does | then |
//! |---|---|---|
//! | sender | takes the lock | looks at the state |
//! | sender | releases the lock, fences | looks at the state: in ERR, it reschedules the receiver |
//! | ERR, RESET, destroying | changes the state | takes the lock once |
//! | flush | has seen ERR, fences | tries the lock; if it is held, leaves the work to the sender |
//!
//! The lock of a sender that died is taken over. The receive that it had taken is the next one again, unless its
//! completion is published.
//!
//! [`QpSlot::receive_lock`]: crate::engine::entry::QpSlot::receive_lock

use cq_core::queue::Tagged;
use cq_core::wc::{Wc, WcFlags, WcOpcode, WcStatus};
use cq_verbs::wr::{SendFlags, SendOp, Sge};

use cq_verbs::setup::{Access, Mtu, QpType};

use super::grh::{self, Grh};
use super::{Halt, Requester};
use crate::completion::wakeup::Wakeup;
use crate::engine::Engine;
use crate::engine::responder::{Receive, Responder};
use crate::engine::ring::SendRequest;
use crate::engine::ud_address::{Route, UdAddress};
use crate::memory::copy;
use crate::memory::copy_guard::CopyGuard;
use crate::memory::sge::{Spans, Target};
use crate::memory::transfer::{Order, Trouble};
use crate::policy::imitation::{Start, StartingOp};
use crate::protocol::number::QpNumber;
use crate::sync::{self, Site};

/// Bytes of a datagram at most.
pub const MTU: Mtu = Mtu::MTU_4096;

/// A datagram that is being sent.
struct Datagram<'a> {
    engine: &'static Engine,
    guard: &'a CopyGuard<'a>,
    from: Spans<'a>,
    imm: Option<[u8; 4]>,
    solicited: bool,
    address: &'a UdAddress,
    /// The number of the sender.
    sender: QpNumber,
    qkey: u32,
}

impl Requester<'_> {
    /// Carries out a UD SEND. It fails only for errors of the sender.
    pub fn send_datagram(
        &mut self,
        guard: &CopyGuard<'_>,
        request: &SendRequest,
        address: &UdAddress,
    ) -> Result<(), Halt> {
        let SendOp::Send { imm } = request.op else {
            return Err(Halt::Failed(WcStatus::LOC_QP_OP_ERR));
        };
        let is_too_long = request.payload.len() > MTU.bytes().into();
        let qkey = match self.start(StartingOp::Datagram { qkey: address.qkey, is_too_long })? {
            Start::Runs => address.qkey,
            Start::RunsWithOwnKey => sync::load(&self.slot.qkey),
            Start::Dropped => return Ok(()),
        };
        let mut from = Spans::new();
        self.source(guard, &request.payload, &mut from)?;
        let solicited = request.flags.contains(SendFlags::SOLICITED);
        let (engine, sender) = (self.engine, self.connection.me.number());
        let datagram = Datagram { engine, guard, from, imm, solicited, address, sender, qkey };
        let mut receiver = Responder::new(engine, address.qp_num, sender, QpType::UD);
        let delivered = datagram.deliver_to(&mut receiver);
        let delivered = delivered.map(|wakeup| self.rescheduled.add_wakeup(wakeup));
        // While this held the lock, no thread may have flushed the receiver.
        sync::full_fence_at(Site::LeaveFence);
        if receiver.has_failed() {
            self.rescheduled.add(engine, engine.index(address.qp_num));
        }
        delivered.map_err(|OwnFault| Halt::LOCAL_PROTECTION)
    }
}

impl<'a> Datagram<'a> {
    /// Places the datagram into a receive, if the receiver accepts it. Its state is checked again under the lock, since
    /// it may change before that. Returns the wake-up that is due.
    ///
    /// # Errors
    /// It is the sender's memory that is not mapped: nobody receives it.
    fn deliver_to(&self, receiver: &mut Responder) -> Result<Wakeup, OwnFault> {
        if !receiver.takes(self.qkey) {
            return Ok(Wakeup::None);
        }
        // A holder that is alive and does not release the lock is suspended: the datagram is lost.
        let Ok(_alone) = receiver.take_receives() else { return Ok(Wakeup::None) };
        if !receiver.takes(self.qkey) {
            return Ok(Wakeup::None);
        }
        let Ok(receive) = receiver.receive(0) else { return Ok(Wakeup::None) };
        let entry = match self.scatter(&receive) {
            Ok(()) => {
                let wc = self.received(receive.request.wr_id, receiver.number);
                Tagged { wc, tag: receive.tag, solicited: self.solicited }
            }
            Err(Lost::Refused(status)) => {
                let unheard = WcStatus::SUCCESS;
                receiver.mismatched(&receive, status, unheard).0
            }
            Err(Lost::NoAnswer) => {
                receiver.give_back(&receive);
                return Ok(Wakeup::None);
            }
            Err(Lost::Own) => {
                receiver.give_back(&receive);
                return Err(OwnFault);
            }
        };
        Ok(receiver.push(&[entry]))
    }

    /// Copies the global route header, if there is one, and then the bytes.
    fn scatter(&self, receive: &Receive) -> Result<(), Lost> {
        let (sges, len) = (&receive.request.sges, self.from.len() as u64);
        if sges.len() < grh::BYTES as u64 + len {
            return Err(Lost::Refused(WcStatus::LOC_LEN_ERR));
        }
        let (mut head, mut body) = (Target::new(), Target::new());
        let find = |into: &mut Target<'a>, sges: &mut dyn Iterator<Item = Sge>, limit| {
            let found =
                self.guard.target_all(into, receive.domain, sges, Access::LOCAL_WRITE, limit);
            found.ok_or(Lost::Refused(WcStatus::LOC_PROT_ERR))
        };
        find(&mut head, &mut sges.iter(), grh::BYTES as u64)?;
        find(&mut body, &mut behind_grh(sges.iter()), len)?;
        let copy = |from: &Spans<'_>, to| {
            copy::copy(self.engine.memory, from, to, Order::Any).map_err(|trouble| match trouble {
                Trouble::Fault => Lost::Refused(WcStatus::LOC_PROT_ERR),
                Trouble::NoAnswer => Lost::NoAnswer,
                Trouble::Own => Lost::Own,
            })
        };
        if let Some(route) = self.address.path.route() {
            let words = self.grh(route).to_words();
            copy(&Spans::of_words(&words, grh::BYTES), &head)?;
        }
        copy(&self.from, &body)
    }

    fn grh(&self, route: Route) -> Grh {
        let port = &self.engine.port;
        let ends = [port.gid(route.source), port.gid(route.destination)];
        let payload = grh::payload(self.from.len(), self.imm.map_or(0, |imm| imm.len()));
        if port.is_ethernet() {
            Grh::of_roce(ends, route, payload)
        } else {
            Grh::of_infiniband(ends, route, payload)
        }
    }

    /// The completion of the receive (C7).
    fn received(&self, wr_id: u64, number: QpNumber) -> Wc {
        let path = self.address.path;
        let flags = if path.is_global() { WcFlags::GRH } else { WcFlags::empty() };
        let wc = Wc::new(wr_id, WcStatus::SUCCESS, number.get())
            .with_opcode(WcOpcode::RECV)
            .with_byte_len((grh::BYTES + self.from.len()) as u32)
            .with_src_qp(self.sender.get())
            .with_flags(flags)
            .with_path(0, self.engine.port.lid, path.sl(), 0);
        match self.imm {
            Some(imm) => wc.with_imm(imm),
            None => wc,
        }
    }
}

/// The SGEs of a receive without their first forty bytes.
fn behind_grh(sges: impl Iterator<Item = Sge>) -> impl Iterator<Item = Sge> {
    let mut skip = grh::BYTES as u32;
    sges.map(move |Sge { addr, length, lkey }| {
        let skipped = skip.min(length);
        skip -= skipped;
        Sge { addr: addr.wrapping_add(skipped.into()), length: length - skipped, lkey }
    })
}

/// Why a datagram was lost.
enum Lost {
    /// The receive can't hold it, and fails with this status.
    Refused(WcStatus),
    /// The receiver's process does not answer.
    NoAnswer,
    /// The sender's own memory is not mapped.
    Own,
}

/// The sender's own memory is not mapped.
struct OwnFault;

#[cfg(test)]
mod tests;
