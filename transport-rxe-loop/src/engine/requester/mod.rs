//! The requester: carries out the requests of a queue pair, one after the other, and completes them on both sides. The
//! usual ones are in [`message`]; all operations, and their errors, in [`twosided`], [`onesided`], [`local`] and
//! [`datagram`]; what a strict device does otherwise, in [`strict`].

mod datagram;
pub mod faults;
pub mod grh;
pub mod local;
mod message;
mod onesided;
mod strict;
mod twosided;
mod unreliable;

pub use self::datagram::MTU;

use cq_core::queue::Tagged;
use cq_core::wc::WcStatus;
use cq_verbs::setup::{Access, QpState, QpType};
use cq_verbs::wr::{SendFlags, SendOp};
use heapless::Vec;

use super::connection::Connection;
use super::entry::{OwnQp, QpSlot, SendQueue};
use super::rescheduled::Rescheduled;
use super::retry::WaitsFor;
use super::ring::{Payload, SendRequest};
use super::shared_receives::Unavailable;
use super::{Engine, complete, flush, identity};
use crate::completion::lock::RUN;
use crate::completion::queue;
use crate::memory::atomic_op::AtomicOp;
use crate::memory::copy_guard::CopyGuard;
use crate::memory::key::Key;
use crate::memory::sge::Spans;
use crate::policy::imitation::{Start, StartingOp};
use crate::protocol::number::{Position, QpIndex, QpNumber};
use crate::protocol::tag;
use crate::{sync, trace};

/// Why a request was not carried out.
pub enum Halt {
    /// It waits: it is tried again when the queue pair is rescheduled, or when its time is over.
    Waits(WaitsFor),
    /// It failed.
    Failed(WcStatus),
    /// It failed: it reads local memory with an invalid key.
    InvalidKey,
    /// A local operation, which is carried out [between two runs](crate::engine::requester::local).
    LocalOp,
    /// It has not begun: an alarm reschedules it.
    Later,
}

impl Halt {
    /// A local key, range or right is wrong.
    pub const LOCAL_PROTECTION: Self = Self::Failed(WcStatus::LOC_PROT_ERR);
}

/// A request that was not carried out, and why.
pub struct Halted {
    pub position: Position,
    pub wr_id: u64,
    pub why: Halt,
}

impl Halted {
    /// Whether it is to be completed as a failure.
    pub const fn fails(&self) -> bool {
        matches!(self.why, Halt::Failed(_) | Halt::InvalidKey)
    }
}

/// Completions of signaled requests that are still to be pushed, in order.
type Sent = Vec<Tagged, RUN>;

/// A run ends after so many bytes, so that its first completion is not delayed long.
const MUCH: u64 = 16 << 10;

/// A queue pair whose send queue is owned.
pub struct Requester<'k> {
    pub engine: &'static Engine,
    pub slot: &'static QpSlot,
    index: QpIndex,
    own: &'static OwnQp,
    /// What was validated of it and of its peer.
    pub connection: &'k mut Connection,
    pub rescheduled: &'k mut Rescheduled,
    /// The peer's receive completions that are still to be pushed, in order.
    received: Vec<Tagged, RUN>,
}

impl<'k> Requester<'k> {
    /// For this send queue.
    #[inline]
    pub fn new(
        SendQueue { engine, index, slot, own, .. }: SendQueue,
        connection: &'k mut Connection,
        rescheduled: &'k mut Rescheduled,
    ) -> Self {
        Self { engine, slot, index, own, connection, rescheduled, received: Vec::new() }
    }

    /// The queue pair's number.
    pub fn number(&self) -> QpNumber {
        self.connection.me.number()
    }

    /// Opens its copy guard.
    #[inline]
    fn copy_guard(&self) -> CopyGuard<'static> {
        self.engine.copy_guard(self.slot, self.index)
    }

    /// Carries out up to `count` requests from position `first`, and completes them on both sides. A request that is
    /// not carried out ends the run and is returned; a change of state ends it, too, and so does a datagram whose receiver is
    /// to be woken. Opens the copy guard if it is not `open`, and closes it only if pushing the requests' completions may wait.
    #[inline]
    pub fn run(
        &mut self,
        open: &mut Option<CopyGuard<'static>>,
        first: Position,
        count: u64,
    ) -> Option<Halted> {
        // A message has at most one completion on each side.
        let (mut position, mut end) = (first, first.plus(count.min(RUN as u64)));
        let (mut sent, mut bytes, mut halted) = (Sent::new(), 0, None);
        let may_be_usual = self.connection.kind != QpType::UD;
        let guard = open.get_or_insert_with(|| self.copy_guard());
        while position != end && bytes < MUCH {
            let usual = if may_be_usual { self.usual(guard, position, &mut sent) } else { None };
            bytes += match usual {
                Some(len) => len,
                None => match self.unusual(guard, position, &mut sent) {
                    Ok(len) => {
                        if self.rescheduled.wakes() {
                            end = position.next();
                        }
                        len
                    }
                    Err(failed) => {
                        halted = Some(failed);
                        break;
                    }
                },
            };
            position = position.next();
            if identity::read(&self.slot.identity) != self.connection.me {
                break;
            }
        }
        if !self.received.is_empty() {
            self.deliver();
            self.look_ahead(guard);
        }
        let Connection { slots, send_cq, .. } = &mut *self.connection;
        let me = (self.slot, &*slots);
        if !complete::push_sent_at_once(self.engine, me, send_cq, position, &sent) {
            self.close(open);
            self.push_sent(position, &sent);
        }
        halted
    }

    /// Closes its copy guard, if that is open. A peer that has failed meanwhile may wait for that.
    pub fn close(&mut self, open: &mut Option<CopyGuard<'static>>) {
        if open.take().is_some() && self.connection.peer.has_failed() {
            self.rescheduled.add(self.engine, self.engine.index(self.connection.peer.number));
        }
    }

    /// Pushes the peer's receive completions.
    #[inline]
    pub fn deliver(&mut self) {
        if self.received.is_empty() {
            return;
        }
        let wakeup = self.connection.peer.push(&self.received);
        self.received.clear();
        self.rescheduled.add_wakeup(wakeup);
    }

    /// A receive of the peer has completed, in order.
    #[inline(always)]
    fn add_received(&mut self, entry: Tagged) {
        // It fits: a run has no more messages.
        let _ = self.received.push(entry);
    }

    /// Carries out the request at a position, whatever it is: the long way. Returns its length.
    #[inline(never)]
    fn unusual(
        &mut self,
        guard: &CopyGuard<'_>,
        position: Position,
        sent: &mut Sent,
    ) -> Result<u64, Halted> {
        let request = self.connection.ring.read_send(position);
        let carried = match self.connection.kind {
            QpType::UD => {
                self.send_datagram(guard, &request, &self.connection.ring.read_ud_address(position))
            }
            _ => self.carry_out(guard, &request),
        };
        if let Err(why) = carried.or_else(|why| unreliable::forgive(self.connection.kind, why)) {
            return Err(Halted { position, wr_id: request.wr_id, why });
        }
        let len = request.payload.len();
        self.sent(sent, request.wr_id, &request.op, request.flags, position, len);
        Ok(len)
    }

    /// Carries out one request of a connected queue pair. The common operations come first.
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
            SendOp::BindWindow(_) | SendOp::LocalInvalidate { .. } => return Err(Halt::LocalOp),
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

    /// Resolves the SGEs or inline bytes of a request to spans that are read.
    #[inline]
    pub fn source<'w>(
        &self,
        guard: &'w CopyGuard<'_>,
        payload: &Payload,
        from: &mut Spans<'w>,
    ) -> Result<(), Halt> {
        match payload {
            &Payload::Inline(words, len) => from.push_words(words, len),
            Payload::Sges(sges) => {
                let granted = guard.source_all(
                    from,
                    self.connection.local_keys,
                    sges.iter(),
                    Access::empty(),
                );
                granted.ok_or_else(|| self.local_fault(guard, payload))?;
            }
        }
        Ok(())
    }

    /// Begins a request that policy may fail, drop or change.
    fn start(&self, request: StartingOp) -> Result<Start, Halt> {
        self.engine.policy.imitation.start(request).map_err(Halt::Failed)
    }

    /// The halt of a request whose SGEs can't be read.
    #[cold]
    fn local_fault(&self, guard: &CopyGuard<'_>, payload: &Payload) -> Halt {
        let domain = self.connection.local_keys;
        let is_dead = |key| !guard.knows(domain, key, Access::empty());
        let any_dead = payload.sges().any(|sge| sge.length > 0 && is_dead(Key::new(sge.lkey)));
        if any_dead { Halt::InvalidKey } else { Halt::LOCAL_PROTECTION }
    }

    /// The peer's process does not answer. It does not reschedule this queue pair when it resumes, so an alarm does,
    /// soon.
    #[cold]
    pub fn unanswered(&self) -> Halt {
        sync::store(&self.own.unanswered, 1);
        if self.connection.kind == QpType::RC {
            // Where no alarm can be set, the wait gets none either, and fails.
            let _ = self.engine.alarms.wake_soon(self.index);
        }
        Halt::Waits(WaitsFor::Answer)
    }

    /// The halt of a request that the peer does not take.
    #[cold]
    pub fn halt(&self, why: Unavailable) -> Halt {
        match why {
            Unavailable::Gone => Halt::Waits(WaitsFor::NoPeer),
            Unavailable::NoReceive => Halt::Waits(WaitsFor::Receive),
            Unavailable::NotReady => Halt::Waits(WaitsFor::Answer),
            Unavailable::Stuck => self.unanswered(),
        }
    }

    /// Completes the request at a position, which was carried out outside a run.
    #[cold]
    pub fn complete(&mut self, request: &SendRequest, position: Position) {
        let mut sent = Sent::new();
        let len = request.payload.len();
        self.sent(&mut sent, request.wr_id, &request.op, request.flags, position, len);
        self.push_sent(position.next(), &sent);
    }

    /// The requests before a position are done: pushes their completions, and wakes their consumer.
    fn push_sent(&mut self, end: Position, sent: &Sent) {
        let Connection { slots, send_cq, .. } = &mut *self.connection;
        complete::push_sent(self.engine, (self.slot, slots), send_cq, end, sent)
            .raise(self.engine.completions);
    }

    /// A request was carried out: its completion, if it has one.
    #[inline(always)]
    fn sent(
        &self,
        sent: &mut Sent,
        wr_id: u64,
        op: &SendOp,
        flags: SendFlags,
        position: Position,
        len: u64,
    ) {
        if flags.contains(SendFlags::SIGNALED) {
            // It fits: a run has no more messages.
            let _ = sent.push(self.sent_entry(wr_id, op, position.next(), len));
        } else {
            self.connection.slots.unsignaled(position);
        }
    }

    /// The completion of a request of this length that was carried out, with the position up to which it covers the
    /// send queue.
    #[inline]
    fn sent_entry(&self, wr_id: u64, op: &SendOp, end: Position, len: u64) -> Tagged {
        let returned = if op.returns_data() { len as u32 } else { 0 };
        let wc = complete::sent(wr_id, self.number(), *op, returned);
        let wc = self.engine.policy.imitation.sent(wc, op, len);
        Tagged { wc, tag: tag::of_send(end), solicited: false }
    }

    /// Fails a request, and wakes the receiver if it fails there, too. The state changes before the completion is pushed: a
    /// program that polls the failure finds the queue pair in ERR, or in SQE if it goes `to_sqe`.
    #[cold]
    pub fn failed(&mut self, halted: &Halted, status: WcStatus, to_sqe: bool) {
        let number = self.connection.me.number();
        let (state, fails) = match to_sqe {
            true => (QpState::SQE, identity::fail_sends(&self.slot.identity, number)),
            false => (QpState::ERR, identity::fail(&self.slot.identity, number)),
        };
        let cq = queue::key(self.engine.completions, self.slot.send_cq());
        trace::event!(
            ERROR, qp_num = number.get(), cq = %cq, wr_id = halted.wr_id, status = ?status,
            "request failed"
        );
        if fails {
            trace::event!(
                WARN, qp_num = number.get(), state = ?state, reason = ?status, "queue pair failed"
            );
        }
        self.rescheduled.add(self.engine, self.engine.index(self.connection.peer.number));
        let Halted { position, wr_id, .. } = *halted;
        let me = (self.slot, &self.connection.slots);
        flush::complete(self.engine, me, number, wr_id, position, status);
        self.rescheduled.wake(self.engine);
    }
}
