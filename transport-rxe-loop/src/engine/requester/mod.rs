//! Carries the requests of a queue pair out, one after the other, and completes them on both sides. What each
//! does is said by who does it: [`twosided`](crate::engine::requester::twosided), [`onesided`](crate::engine::requester::onesided),
//! [`local`](crate::engine::requester::local).

mod datagram;
pub mod faults;
pub mod grh;
pub mod local;
mod onesided;
mod twosided;
mod unreliable;

pub use self::datagram::MTU;

use cq_core::queue::Entry;
use cq_core::setup::{Access, QpType};
use cq_core::wc::WcStatus;
use cq_core::wr::{SendFlags, SendOp};
use heapless::Vec;

use super::entry::QpSlot;
use super::identity::{self, Identity};
use super::rescheduled::Rescheduled;
use super::responder::Responder;
use super::retry::WaitsFor;
use super::ring::{Payload, Ring, SendRequest};
use super::shared_receives::Unavailable;
use super::{Engine, complete, flush};
use crate::completion::lock::RUN;
use crate::memory::atomic_op::AtomicOp;
use crate::memory::copy_guard::CopyGuard;
use crate::memory::region::Whose;
use crate::memory::sge::Spans;
use crate::protocol::tag;
use crate::sync;

/// Why a request was not carried out.
pub enum Halt {
    /// It will be tried again when the peer runs this queue pair, or its time is over.
    Waits(WaitsFor),
    /// It failed.
    Failed(WcStatus),
    /// It is for this side alone, and carried out [between two runs](crate::engine::requester::local).
    ByItself,
    /// It is not begun yet: an alarm will bring it back.
    Later,
}

impl Halt {
    /// A key, a range or a right of this side's is wrong.
    pub const LOCAL_PROTECTION: Self = Self::Failed(WcStatus::LOC_PROT_ERR);
}

/// Which request that was, and where it is.
pub struct Halted {
    pub position: u64,
    pub wr_id: u64,
    pub why: Halt,
}

/// So many bytes end it earlier: the first completion need not wait long.
const MUCH: u64 = 16 << 10;

/// The queue pair whose turn is held.
pub struct Requester<'k> {
    pub engine: &'static Engine,
    pub slot: &'static QpSlot,
    pub me: Identity,
    pub kind: QpType,
    /// Who it is connected to; for datagrams nobody.
    pub peer: Responder,
    pub kicks: &'k mut Rescheduled,
    /// What the peer is to be told of receives, in their order.
    pub received: Vec<Entry, RUN>,
}

impl<'k> Requester<'k> {
    /// Of the queue pair in this slot, which is `me`.
    #[inline]
    pub fn new(
        engine: &'static Engine,
        slot: &'static QpSlot,
        me: Identity,
        kicks: &'k mut Rescheduled,
    ) -> Self {
        let (dest, kind) = (sync::load(engine.dest(me.number)), slot.qp_type());
        let peer = Responder::new(engine, dest, me.number, kind);
        Self { engine, slot, me, kind, peer, kicks, received: Vec::new() }
    }

    /// The queue pair's.
    pub const fn number(&self) -> u32 {
        self.me.number
    }

    /// Carries out up to `count` requests, from a position on, and completes them on both sides. `Some` is the
    /// one that was not carried out, which ends this, as a change of state does.
    #[inline]
    pub fn run(&mut self, ring: &Ring, first: u64, count: u64) -> Option<Halted> {
        if self.kind != QpType::Ud {
            self.peer.expect_send(&self.slot.send.landing);
        }
        let (mut position, end) = (first, first.wrapping_add(count));
        let (mut sent, mut bytes, mut halted) = (Vec::<Entry, RUN>::new(), 0, None);
        let guard = self.engine.copy_guard(self.me.number);
        while position != end && !sent.is_full() && !self.received.is_full() && bytes < MUCH {
            let request = ring.read_send(position);
            let carried = match self.kind {
                QpType::Rc | QpType::Uc => self.carry_out(&guard, &request),
                QpType::Ud => self.bring(&guard, &request, &ring.read_way(position)),
            };
            if let Err(why) = carried.or_else(|why| unreliable::forgive(self.kind, why)) {
                halted = Some(Halted { position, wr_id: request.wr_id, why });
                break;
            }
            position = position.wrapping_add(1);
            if request.flags.contains(SendFlags::SIGNALED) {
                // There is room: it was looked for.
                let _ = sent.push(self.sent(&request, position));
            }
            bytes += request.payload.len();
            if identity::read(self.slot) != self.me {
                break;
            }
        }
        self.deliver();
        drop(guard);
        if self.peer.has_failed() {
            self.kicks.add(self.engine, self.peer.number());
        }
        complete::push(self.engine, sync::load(&self.slot.send_cq), &sent);
        sync::release(&self.slot.send.done, position);
        halted
    }

    /// Tells the peer of its receives.
    #[inline]
    pub fn deliver(&mut self) {
        if self.received.is_empty() {
            return;
        }
        self.peer.push(&self.received);
        sync::store(&self.slot.send.landing, self.peer.landing());
        self.received.clear();
    }

    /// Carries out one request. What is common comes first, and has its own way.
    #[inline]
    fn carry_out(&mut self, guard: &CopyGuard<'_>, request: &SendRequest) -> Result<(), Halt> {
        match request.op {
            SendOp::Send { imm } => {
                let mut from = Spans::new();
                self.source(guard, &request.payload, &mut from)?;
                self.send(guard, request, &from, imm)
            }
            SendOp::Write { remote, imm: None } => {
                let mut from = Spans::new();
                self.source(guard, &request.payload, &mut from)?;
                self.write(guard, &from, remote)
            }
            SendOp::Read { remote } => self.read(guard, request, remote),
            SendOp::FetchAdd { remote, add } => {
                self.atomic(guard, request, remote, AtomicOp::FetchAdd { add })
            }
            SendOp::CompareSwap { remote, compare, swap } => {
                self.atomic(guard, request, remote, AtomicOp::CompareSwap { compare, swap })
            }
            _ => self.carry_out_rare(guard, request),
        }
    }

    #[cold]
    fn carry_out_rare(&mut self, guard: &CopyGuard<'_>, request: &SendRequest) -> Result<(), Halt> {
        match request.op {
            SendOp::AtomicWrite { remote } => return self.atomic_write(guard, request, remote),
            SendOp::Flush { remote, length, placement, selectivity } => {
                return self.flush(guard, (remote, length), placement, selectivity);
            }
            SendOp::BindWindow(_) | SendOp::LocalInvalidate { .. } => return Err(Halt::ByItself),
            _ => {}
        }
        let mut from = Spans::new();
        self.source(guard, &request.payload, &mut from)?;
        match request.op {
            SendOp::SendInvalidate { rkey } => self.send_invalidate(guard, request, &from, rkey),
            SendOp::Write { remote, imm: Some(imm) } => {
                self.write_imm(guard, request, &from, remote, imm)
            }
            _ => Err(Halt::Failed(WcStatus::LOC_QP_OP_ERR)),
        }
    }

    /// The bytes of a request, to be read.
    #[inline]
    pub fn source<'w>(
        &self,
        guard: &'w CopyGuard<'_>,
        payload: &Payload,
        from: &mut Spans<'w>,
    ) -> Result<(), Halt> {
        match payload {
            &Payload::Inline(words, len) => from.push_words(words, len),
            Payload::Sges(..) => {
                let domain = Whose::local(sync::load(&self.slot.pd));
                let granted = guard.source(from, domain, payload.pieces(), Access::empty());
                granted.ok_or_else(|| self.local_fault(guard, payload))?;
            }
        }
        Ok(())
    }

    /// What it means for a request that its SGEs can't be read.
    #[cold]
    fn local_fault(&self, guard: &CopyGuard<'_>, payload: &Payload) -> Halt {
        let domain = Whose::local(sync::load(&self.slot.pd));
        let is_dead = |key| !guard.knows(domain, key, Access::empty());
        let any_dead = || payload.pieces().any(|sge| sge.length > 0 && is_dead(sge.lkey));
        Halt::Failed(self.engine.policy.imitation.local_fault(any_dead))
    }

    /// The peer's process does not answer. Nobody kicks when it does again: it is tried again soon.
    #[cold]
    pub fn unanswered(&self) -> Halt {
        sync::store(&self.engine.own(self.me.number).unanswered, 1);
        if self.kind == QpType::Rc {
            // If there can be no alarm, the wait has none either, and fails.
            let _ = self.engine.wake_soon(self.me.number);
        }
        Halt::Waits(WaitsFor::Answer)
    }

    /// What it means for a request that the peer takes none.
    #[cold]
    pub fn halt(&self, why: Unavailable) -> Halt {
        match why {
            Unavailable::Gone => Halt::Waits(WaitsFor::Nobody),
            Unavailable::NoReceive => Halt::Waits(WaitsFor::Receive),
            Unavailable::NotReady => Halt::Waits(WaitsFor::Answer),
            Unavailable::Stuck => self.unanswered(),
        }
    }

    /// Completes the request at a position, which was carried out by itself.
    #[cold]
    pub fn complete(&mut self, request: &SendRequest, position: u64) {
        let end = position.wrapping_add(1);
        if request.flags.contains(SendFlags::SIGNALED) {
            let cq = sync::load(&self.slot.send_cq);
            complete::push(self.engine, cq, &[self.sent(request, end)]);
        }
        sync::release(&self.slot.send.done, end);
    }

    /// The completion of a request that was carried out, and what it covers up to.
    #[inline]
    fn sent(&self, request: &SendRequest, end: u64) -> Entry {
        let returned = if request.op.returns_data() { request.payload.len() as u32 } else { 0 };
        let wc = complete::sent(request.wr_id, self.me.number, request.op, returned);
        let wc = self.engine.policy.imitation.sent(wc, &request.op, || request.payload.len());
        Entry { wc, tag: tag::of_send(end), solicited: false }
    }

    /// The state comes before the completion: who polls the failure finds the queue pair in ERR, or in SQE
    /// where nobody else is concerned.
    #[cold]
    pub fn failed(&mut self, halted: &Halted, status: WcStatus) {
        if self.kind == QpType::Rc || self.engine.policy.imitation.has_no_sqe() {
            identity::fail(self.slot, self.me.number);
        } else {
            identity::fail_sends(self.slot, self.me.number);
        }
        self.kicks.add(self.engine, self.peer.number());
        let Halted { position, wr_id, .. } = *halted;
        flush::complete(self.engine, self.slot, self.me.number, wr_id, position, status);
    }
}
