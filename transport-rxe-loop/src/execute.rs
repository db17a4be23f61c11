//! Carries out requests: whoever holds the turn of a queue pair takes its requests one after the other,
//! moves the bytes, and completes both sides.
//!
//! Nobody ever holds two turns. Work for other queue pairs that turns up on the way, a peer to be flushed,
//! a sender that waited for it, is noted in [`Kicks`] and done when the turn has been given back.

use cq_core::setup::Access;
use cq_core::soft::Entry;
use cq_core::wc::WcStatus;
use cq_core::wr::{SendFlags, SendOp};
use heapless::Vec;

use crate::async_event::{self, QpEvent};
use crate::completion;
use crate::cq;
use crate::fabric::Fabric;
use crate::flush;
use crate::identity::{self, Identity};
use crate::kicks::Kicks;
use crate::layout::{OwnQp, QpSlot};
use crate::memory::Pieces;
use crate::notes;
use crate::peer::{Peer, Unavailable};
use crate::protocol::tag;
use crate::queue::{Payload, RecvRequest, Ring, SendRequest};
use crate::reach::{self, Order, Trouble};
use crate::retry::{self, Verdict, WaitsFor};
use crate::state::QpState;
use crate::sync;
use crate::window::Window;

/// Does whatever can be done for a queue pair, and for those that this concerns. If another thread is at
/// it, that thread does.
#[inline]
pub fn run(fabric: &'static Fabric, qp: u32) {
    let mut kicks = Kicks::default();
    drive(fabric, qp, &mut kicks);
    loop {
        while let Some(next) = kicks.pop() {
            drive(fabric, next, &mut kicks);
        }
        if !notes::any(fabric) {
            return;
        }
        notes::take(fabric, |next| drive(fabric, next, &mut kicks));
    }
}

/// Has whatever can be done for a queue pair done: at once, if it is of this process.
pub fn kick(fabric: &'static Fabric, qp: u32) {
    if fabric.is_mine(qp) {
        run(fabric, qp);
    } else {
        notes::leave(fabric, qp);
    }
}

/// Kicks whoever is connected to the queue pair with this number, which has changed its state or is gone:
/// a request that waited for it may go on, or fail. Connected back or not; so all are looked at.
///
/// The fence stands against that of [`Window::open`], between a sender's connecting and its look at the
/// peer's state: either it sees the new state, or it is seen here.
pub fn kick_those_connected_to(fabric: &'static Fabric, number: u32) {
    sync::full_fence();
    for (dest, index) in fabric.tables().destinations.iter().zip(0..) {
        if sync::load_u32(dest) == number {
            kick(fabric, index);
        }
    }
}

/// Holds the turn of a queue pair for as long as there is something to do; but where its owner posts on
/// and on meanwhile, the service thread carries on, and this one can return.
#[inline]
fn drive(fabric: &'static Fabric, qp: u32, kicks: &mut Kicks) {
    let (slot, own) = (fabric.qp(qp), fabric.own(qp));
    while own.turn.enter() {
        // What an alarm or a note is of may be another process' by now. Under the turn it stays whose it is.
        if !fabric.is_mine(qp) {
            return own.turn.abandon();
        }
        slot.send.copying.correct();
        if hold(fabric, slot, own, kicks) {
            return;
        }
        // Whoever kicked is served by the service thread, or by who enters before it.
        own.turn.abandon();
        if fabric.service().hand_over(fabric, qp).is_ok() {
            return;
        }
    }
}

/// Works under the turn; true if it was given back, since there is nothing left to do.
#[inline]
fn hold(fabric: &'static Fabric, slot: &'static QpSlot, own: &OwnQp, kicks: &mut Kicks) -> bool {
    /// How many requests a thread carries out that were posted after it came.
    const LATER: u64 = 256;
    let limit = sync::load(&slot.send.posted).wrapping_add(LATER);
    while work(fabric, slot, kicks, limit) {
        if own.turn.leave() {
            return true;
        }
    }
    false
}

/// Does what there is to do; false if it came to the request at `limit`.
fn work(fabric: &'static Fabric, slot: &'static QpSlot, kicks: &mut Kicks, limit: u64) -> bool {
    loop {
        let me = identity::read(slot);
        // After the state: a place that is being made anew has no state until its ring is recorded.
        let Some(ring) = Ring::of(fabric, &slot.send_ring) else { return true };
        let position = sync::load(&slot.send.done);
        match me.state {
            QpState::Rts => {}
            // What was begun is ended.
            QpState::Sqd if retry::has_begun(slot, position) => {}
            QpState::Sqd => return drained(fabric, slot, me.number),
            QpState::Err => {
                flush::both(fabric, slot, me.number, &ring);
                return true;
            }
            _ => return true,
        }
        let posted = sync::acquire(&slot.send.posted);
        if !ring.has_any(position, posted) {
            return true;
        }
        if position == limit {
            return false;
        }
        let mut left = posted.wrapping_sub(position).min(limit.wrapping_sub(position));
        if me.state == QpState::Sqd {
            left = 1;
        }
        let mut initiator = Initiator::new(fabric, slot, me, kicks);
        let Some(halted) = initiator.run(&ring, position, left) else { continue };
        match halted.why {
            Halt::Failed(status) => initiator.failed(&halted, status),
            Halt::Waits(waits_for) => {
                match retry::judge(fabric, me.number, halted.position, waits_for) {
                    Verdict::Wait => return true,
                    Verdict::TryAgain => {}
                    Verdict::Fail(status) => initiator.failed(&halted, status),
                }
            }
        }
    }
}

/// In SQD, and everything that was begun is done: says so once, if that was asked for. That is all there
/// is to do: true.
#[cold]
fn drained(fabric: &'static Fabric, slot: &QpSlot, number: u32) -> bool {
    if sync::swap_if(&slot.send.report_drained, 1, 0).is_ok() {
        async_event::report_qp(fabric, number, QpEvent::Drained);
    }
    true
}

/// Why a request was not carried out.
pub enum Halt {
    /// It will be tried again when the peer runs this queue pair, or its time is over.
    Waits(WaitsFor),
    /// It failed.
    Failed(WcStatus),
}

impl Halt {
    /// A key, a range or a right of this side's is wrong.
    pub const LOCAL_PROTECTION: Self = Self::Failed(WcStatus::LOC_PROT_ERR);
}

/// Which request that was, and where it is.
struct Halted {
    position: u64,
    wr_id: u64,
    why: Halt,
}

/// Why a message did not get into the receive that was there for it.
enum Refusal {
    /// Both sides fail, and this is how they see it.
    Mismatch { theirs: WcStatus, ours: WcStatus },
    /// The peer's process does not answer.
    NoAnswer,
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
    me: Identity,
    pub peer: Peer,
    kicks: &'k mut Kicks,
    /// What the peer is to be told of receives, in their order.
    received: Vec<Entry, RUN>,
}

impl<'k> Initiator<'k> {
    #[inline]
    fn new(
        fabric: &'static Fabric,
        slot: &'static QpSlot,
        me: Identity,
        kicks: &'k mut Kicks,
    ) -> Self {
        let peer = Peer::new(fabric, sync::load_u32(fabric.dest(me.number)), me.number);
        Self { fabric, slot, me, peer, kicks, received: Vec::new() }
    }

    /// Carries out up to `count` requests, from a position on, and completes them on both sides. `Some` is the
    /// one that was not carried out, which ends this, as a change of state does.
    #[inline]
    fn run(&mut self, ring: &Ring, first: u64, count: u64) -> Option<Halted> {
        self.peer.expect_send(&self.slot.send.landing);
        let (mut position, end) = (first, first.wrapping_add(count));
        let (mut sent, mut bytes, mut halted) = (Vec::<Entry, RUN>::new(), 0, None);
        let window = Window::open(self.fabric, self.me.number);
        while position != end && !sent.is_full() && !self.received.is_full() && bytes < MUCH {
            let request = ring.read_send(position);
            if let Err(why) = self.carry_out(&window, &request) {
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
        cq::push(self.fabric, sync::load_u32(&self.slot.send_cq), &sent);
        sync::store(&self.slot.send.done, position);
        halted
    }

    /// Tells the peer of its receives.
    #[inline]
    fn deliver(&mut self) {
        if self.received.is_empty() {
            return;
        }
        self.peer.push(&self.received);
        sync::store_u32(&self.slot.send.landing, self.peer.landing());
        self.received.clear();
    }

    fn carry_out(&mut self, window: &Window<'_>, request: &SendRequest) -> Result<(), Halt> {
        if request.op.returns_data() {
            return self.fetch(window, request);
        }
        let from = self.source(window, &request.payload).ok_or(Halt::LOCAL_PROTECTION)?;
        match request.op {
            SendOp::Write { remote, imm: None } => self.write(window, &from, remote),
            SendOp::Send { imm } => {
                let solicited = request.flags.contains(SendFlags::SOLICITED);
                self.send(window, &from, imm, solicited)
            }
            _ => Err(Halt::Failed(WcStatus::LOC_QP_OP_ERR)),
        }
    }

    /// The bytes of a request, to be read.
    fn source<'w>(&self, window: &'w Window<'_>, payload: &Payload) -> Option<Pieces<'w>> {
        match payload {
            &Payload::Inline(words, len) => Some(Pieces::of_words(words, len)),
            Payload::Sges(..) => {
                let domain = sync::load_u32(&self.slot.pd);
                window.source(domain, payload.pieces(), Access::empty())
            }
        }
    }

    fn send(
        &mut self,
        window: &Window<'_>,
        from: &Pieces<'_>,
        imm: Option<[u8; 4]>,
        solicited: bool,
    ) -> Result<(), Halt> {
        let nth = self.received.len() as u64;
        let receive = self.peer.receive(&self.slot.send.ahead, nth).map_err(Self::halt)?;
        match land(window, self.fabric, from, &self.peer, &receive.request) {
            Ok(()) => {
                // There is room: it was looked for.
                let _ =
                    self.received.push(self.peer.received(&receive, from.len(), imm, solicited));
                Ok(())
            }
            Err(Refusal::Mismatch { theirs, ours }) => {
                self.deliver();
                self.peer.refused(&receive, theirs);
                Err(Halt::Failed(ours))
            }
            Err(Refusal::NoAnswer) => Err(self.unanswered()),
        }
    }

    /// The peer's process does not answer. Nobody kicks when it does again: it is tried again soon.
    #[cold]
    pub fn unanswered(&self) -> Halt {
        /// In nanoseconds.
        const SOON: u64 = 50_000_000;
        let service = self.fabric.service();
        // If there can be no alarm, the wait has none either, and fails.
        let _ = service.wake_at(self.fabric, self.me.number, service.now() + SOON);
        Halt::Waits(WaitsFor::Answer)
    }

    /// What it means for a request that the peer takes none.
    pub fn halt(why: Unavailable) -> Halt {
        match why {
            Unavailable::Gone => Halt::Failed(WcStatus::RETRY_EXC_ERR),
            Unavailable::NoReceive => Halt::Waits(WaitsFor::Receive),
            Unavailable::NotReady => Halt::Waits(WaitsFor::Answer),
        }
    }

    /// The completion of a request that was carried out, and what it covers up to.
    #[inline]
    fn sent(&self, request: &SendRequest, end: u64) -> Entry {
        let returned = if request.op.returns_data() { request.payload.len() as u32 } else { 0 };
        let wc = completion::sent(request.wr_id, self.me.number, request.op, returned);
        Entry { wc, tag: tag::of_send(end), solicited: false }
    }

    /// The state comes before the completion: who polls the failure finds the queue pair in ERR.
    #[cold]
    fn failed(&mut self, halted: &Halted, status: WcStatus) {
        identity::fail(self.slot, self.me.number);
        self.kicks.add(self.fabric, self.peer.number());
        let Halted { position, wr_id, .. } = *halted;
        flush::complete(self.fabric, self.slot, self.me.number, wr_id, position, status);
    }
}

/// Puts a message into the receive that was taken for it.
fn land(
    window: &Window<'_>,
    fabric: &'static Fabric,
    from: &Pieces<'_>,
    peer: &Peer,
    receive: &RecvRequest,
) -> Result<(), Refusal> {
    let len = from.len() as u64;
    if len > receive.sges.len() {
        let (theirs, ours) = (WcStatus::LOC_LEN_ERR, WcStatus::REM_INV_REQ_ERR);
        return Err(Refusal::Mismatch { theirs, ours });
    }
    let (theirs, ours) = (WcStatus::LOC_PROT_ERR, WcStatus::REM_OP_ERR);
    let sges = receive.sges.pieces();
    let Some(to) = window.target(peer.domain(), sges, Access::LOCAL_WRITE, len) else {
        return Err(Refusal::Mismatch { theirs, ours });
    };
    reach::copy(fabric, from, &to, Order::Any).map_err(|trouble| match trouble {
        Trouble::Fault => Refusal::Mismatch { theirs, ours },
        Trouble::NoAnswer => Refusal::NoAnswer,
    })
}
