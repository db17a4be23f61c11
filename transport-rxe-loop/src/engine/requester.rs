//! Carries the requests of a queue pair out, one after the other, and completes them on both sides. What each
//! does is said by who does it: [`twosided`](crate::engine::twosided), [`onesided`](crate::engine::onesided),
//! [`local`](crate::engine::local).

use cq_core::queue::Entry;
use cq_core::setup::{Access, QpType};
use cq_core::wc::WcStatus;
use cq_core::wr::{SendFlags, SendOp};
use heapless::Vec;

use crate::completion::push;
use crate::engine::complete;
use crate::engine::flush;
use crate::engine::identity::{self, Identity};
use crate::engine::rescheduled::Kicks;
use crate::engine::responder::{Peer, Unavailable};
use crate::engine::retry::WaitsFor;
use crate::engine::ring::{Payload, Ring, SendRequest};
use crate::engine::unreliable;
use crate::fabric::Fabric;
use crate::layout::QpSlot;
use crate::memory::atomics::Step;
use crate::memory::copy_guard::Window;
use crate::memory::region::Whose;
use crate::memory::sge::Pieces;
use crate::policy::imitation;
use crate::protocol::tag;
use crate::sync;

/// Why a request was not carried out.
pub enum Halt {
    /// It will be tried again when the peer runs this queue pair, or its time is over.
    Waits(WaitsFor),
    /// It failed.
    Failed(WcStatus),
    /// It is for this side alone, and carried out [between two runs](crate::engine::local).
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

/// Requests that are carried out in one go at most: one look at the peer's doors, and one lock for the
/// completions of each side.
const RUN: usize = 32;
/// So many bytes end it earlier: the first completion need not wait long.
const MUCH: u64 = 16 << 10;

/// The queue pair whose turn is held.
pub struct Initiator<'k> {
    pub fabric: &'static Fabric,
    pub slot: &'static QpSlot,
    pub me: Identity,
    pub kind: QpType,
    /// Who it is connected to; for datagrams nobody.
    pub peer: Peer,
    pub kicks: &'k mut Kicks,
    /// What the peer is to be told of receives, in their order.
    pub received: Vec<Entry, RUN>,
}

impl<'k> Initiator<'k> {
    /// Of the queue pair in this slot, which is `me`.
    #[inline]
    pub fn new(
        fabric: &'static Fabric,
        slot: &'static QpSlot,
        me: Identity,
        kicks: &'k mut Kicks,
    ) -> Self {
        let (dest, kind) = (sync::load(fabric.dest(me.number)), slot.qp_type());
        let peer = Peer::new(fabric, dest, me.number, kind);
        Self { fabric, slot, me, kind, peer, kicks, received: Vec::new() }
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
        let window = Window::open(self.fabric, self.me.number);
        while position != end && !sent.is_full() && !self.received.is_full() && bytes < MUCH {
            let request = ring.read_send(position);
            let carried = match self.kind {
                QpType::Rc | QpType::Uc => self.carry_out(&window, &request),
                QpType::Ud => self.bring(&window, &request, &ring.read_way(position)),
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
        drop(window);
        if self.peer.has_failed() {
            self.kicks.add(self.fabric, self.peer.number());
        }
        push::push(self.fabric, sync::load(&self.slot.send_cq), &sent);
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
    fn carry_out(&mut self, window: &Window<'_>, request: &SendRequest) -> Result<(), Halt> {
        match request.op {
            SendOp::Send { imm } => {
                let mut from = Pieces::new();
                self.source(window, &request.payload, &mut from)?;
                self.send(window, request, &from, imm)
            }
            SendOp::Write { remote, imm: None } => {
                let mut from = Pieces::new();
                self.source(window, &request.payload, &mut from)?;
                self.write(window, &from, remote)
            }
            SendOp::Read { remote } => self.read(window, request, remote),
            SendOp::FetchAdd { remote, add } => {
                self.atomic(window, request, remote, Step::FetchAdd { add })
            }
            SendOp::CompareSwap { remote, compare, swap } => {
                self.atomic(window, request, remote, Step::CompareSwap { compare, swap })
            }
            _ => self.carry_out_rare(window, request),
        }
    }

    #[cold]
    fn carry_out_rare(&mut self, window: &Window<'_>, request: &SendRequest) -> Result<(), Halt> {
        match request.op {
            SendOp::AtomicWrite { remote } => return self.atomic_write(window, request, remote),
            SendOp::Flush { remote, length, placement, selectivity } => {
                return self.flush(window, (remote, length), placement, selectivity);
            }
            SendOp::BindWindow(_) | SendOp::LocalInvalidate { .. } => return Err(Halt::ByItself),
            _ => {}
        }
        let mut from = Pieces::new();
        self.source(window, &request.payload, &mut from)?;
        match request.op {
            SendOp::SendInvalidate { rkey } => self.send_invalidate(window, request, &from, rkey),
            SendOp::Write { remote, imm: Some(imm) } => {
                self.write_imm(window, request, &from, remote, imm)
            }
            _ => Err(Halt::Failed(WcStatus::LOC_QP_OP_ERR)),
        }
    }

    /// The bytes of a request, to be read.
    #[inline]
    pub fn source<'w>(
        &self,
        window: &'w Window<'_>,
        payload: &Payload,
        from: &mut Pieces<'w>,
    ) -> Result<(), Halt> {
        match payload {
            &Payload::Inline(words, len) => from.push_words(words, len),
            Payload::Sges(..) => {
                let domain = Whose::local(sync::load(&self.slot.pd));
                let granted = window.source(from, domain, payload.pieces(), Access::empty());
                granted.ok_or_else(|| imitation::local_fault(self, window, payload))?;
            }
        }
        Ok(())
    }

    /// The peer's process does not answer. Nobody kicks when it does again: it is tried again soon.
    #[cold]
    pub fn unanswered(&self) -> Halt {
        sync::store(&self.fabric.own(self.me.number).unanswered, 1);
        if self.kind == QpType::Rc {
            // If there can be no alarm, the wait has none either, and fails.
            let _ = self.fabric.service().wake_soon(self.fabric, self.me.number);
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
            push::push(self.fabric, cq, &[self.sent(request, end)]);
        }
        sync::release(&self.slot.send.done, end);
    }

    /// The completion of a request that was carried out, and what it covers up to.
    #[inline]
    fn sent(&self, request: &SendRequest, end: u64) -> Entry {
        let returned = if request.op.returns_data() { request.payload.len() as u32 } else { 0 };
        let wc = complete::sent(request.wr_id, self.me.number, request.op, returned);
        let (tag, solicited) = (tag::of_send(end), false);
        if self.fabric.imitates_rxe() {
            return Entry { wc: imitation::sent(wc, request), tag, solicited };
        }
        Entry { wc, tag, solicited }
    }

    /// The state comes before the completion: who polls the failure finds the queue pair in ERR, or in SQE
    /// where nobody else is concerned.
    #[cold]
    pub fn failed(&mut self, halted: &Halted, status: WcStatus) {
        if self.kind == QpType::Rc || imitation::has_no_sqe(self.fabric) {
            identity::fail(self.slot, self.me.number);
        } else {
            identity::fail_sends(self.slot, self.me.number);
        }
        self.kicks.add(self.fabric, self.peer.number());
        let Halted { position, wr_id, .. } = *halted;
        flush::complete(self.fabric, self.slot, self.me.number, wr_id, position, status);
    }
}
