//! What a strict device does otherwise with a request of a connected queue pair: as hardware may, so that a program
//! which relies on more is found out.
//!
//! | of a request | ordinary | strict |
//! |---|---|---|
//! | the last eight bytes of a WRITE | are seen last | are seen [first](crate::policy::strict::Strict::write_order) |
//! | the completions of a SEND | the receive's comes first | the send's, if its queue has no channel and can take it at once |
//! | more READs and atomics outstanding than the responder allows | are carried out in turn | the first of them fails with REM_INV_REQ |
//! | what a READ or an atomic returns | is there before the next request begins | comes after the next request, unless that has a fence |
//!
//! Requests are deferred, so only the owner of a send queue gets here: with one of them, or with two if the second is
//! not to see what the first returns.

use std::iter;

use cq_core::wc::WcStatus;
use cq_verbs::setup::{QpState, QpType};
use cq_verbs::wr::{SendFlags, SendOp};

use super::{Halt, Halted, Requester, Sent};
use crate::engine::connection::Connection;
use crate::engine::ring::SendRequest;
use crate::engine::{complete, retry};
use crate::memory::atomic_op::{self, AtomicOp};
use crate::memory::copy_guard::CopyGuard;
use crate::memory::sge::{self, Spans, Target};
use crate::protocol::number::Position;
use crate::sync::{self, AtomicU64};

/// Bytes that come late, at most.
const MOST: u64 = 1 << 20;

/// What a READ or an atomic returned, and where it is to land.
struct Returned<'w> {
    words: Box<[AtomicU64]>,
    len: usize,
    to: Target<'w>,
}

impl Requester<'_> {
    /// Carries out the request at a position, of those that are posted up to another, and completes it on both sides. A
    /// request that is not carried out is returned.
    #[cold]
    pub fn run_strictly(&mut self, position: Position, posted: Position) -> Option<Halted> {
        let request = self.connection.ring.read_send(position);
        let halted = |why| Halted { position, wr_id: request.wr_id, why };
        let (guard, mut sent) = (self.copy_guard(), Sent::new());
        let (end, halted) = if let Err(why) = self.check_outstanding(&request, position, posted) {
            (position, Some(halted(why)))
        } else if self.is_overtaken(&request, position.next(), posted) {
            match self.fetch(&guard, &request) {
                Err(why) => (position, Some(halted(why))),
                Ok(returned) => self.overtake(&guard, (&request, position), &returned, &mut sent),
            }
        } else {
            match self.unusual(&guard, position, &mut sent) {
                Err(halted) => (position, Some(halted)),
                Ok(_) => (position.next(), None),
            }
        };
        self.complete_strictly(guard, end, &sent);
        halted
    }

    /// Completes the requests before position `end`.
    fn complete_strictly(&mut self, guard: CopyGuard<'static>, end: Position, sent: &Sent) {
        let Connection { slots, send_cq, .. } = &mut *self.connection;
        let me = (self.slot, &*slots);
        let is_sent = complete::push_sent_at_once(self.engine, me, send_cq, end, sent);
        self.deliver();
        self.close(&mut Some(guard));
        if !is_sent {
            self.push_sent(end, sent);
        }
    }

    /// Checks that no more READs and atomics are outstanding, from this request on, than the responder allows. A fence
    /// ends them: what has one waits for those before it, and all others wait behind it.
    fn check_outstanding(
        &mut self,
        request: &SendRequest,
        position: Position,
        posted: Position,
    ) -> Result<(), Halt> {
        // One that was tried before has begun.
        let has_begun = retry::has_begun(self.slot, position);
        if !request.op.returns_data() || has_begun || self.connection.peer.listens().is_err() {
            return Ok(());
        }
        let ring = &self.connection.ring;
        let behind = (1..posted.since(position)).map(|nth| ring.read_send(position.plus(nth)));
        let unfenced = behind.take_while(|behind| !behind.flags.contains(SendFlags::FENCE));
        let others = unfenced.filter(|behind| behind.op.returns_data()).count() as u32;
        if self.connection.peer.allows_outstanding(1 + others, self.slot) {
            Ok(())
        } else {
            Err(self.refused(WcStatus::REM_INV_REQ_ERR))
        }
    }

    /// Whether the request behind one is carried out before that has returned its data.
    fn is_overtaken(&self, request: &SendRequest, behind: Position, posted: Position) -> bool {
        let Connection { me, kind, ref ring, .. } = *self.connection;
        let may = self.engine.policy.lands_late
            && me.state() == QpState::RTS
            && kind == QpType::RC
            && request.op.returns_data()
            && request.payload.len() <= MOST
            && behind != posted;
        may && {
            let behind = ring.read_send(behind);
            let reads = behind.op.carries_data() && !behind.op.returns_data();
            reads && !behind.flags.contains(SendFlags::FENCE)
        }
    }

    /// Carries out a READ or an atomic, but for its result.
    fn fetch<'w>(
        &mut self,
        guard: &'w CopyGuard<'_>,
        request: &SendRequest,
    ) -> Result<Returned<'w>, Halt> {
        let len = request.payload.len() as usize;
        let words: Box<[_]> =
            iter::repeat_with(AtomicU64::default).take(len.div_ceil(8).max(1)).collect();
        let mut returned = Returned { words, len, to: Target::new() };
        let held = match request.op {
            SendOp::Read { remote } => {
                let mut from = Spans::new();
                self.read_source(guard, request, remote, &mut from)?;
                self.answer(guard, request, &mut returned.to)?;
                self.move_read(&from, &Target::of_words(&returned.words, len))?;
                return Ok(returned);
            }
            SendOp::CompareSwap { remote, compare, swap } => {
                self.exchange(guard, request, remote, AtomicOp::CompareSwap { compare, swap })?
            }
            SendOp::FetchAdd { remote, add } => {
                self.exchange(guard, request, remote, AtomicOp::FetchAdd { add })?
            }
            _ => return Err(Halt::Failed(WcStatus::LOC_QP_OP_ERR)),
        };
        self.answer(guard, request, &mut returned.to)?;
        sync::store(&returned.words[0], held);
        returned.len = atomic_op::LEN;
        Ok(returned)
    }

    /// Carries out the request behind one before the data of that lands. Returns the end of those that were carried
    /// out, and the one that was not.
    fn overtake(
        &mut self,
        guard: &CopyGuard<'_>,
        (request, position): (&SendRequest, Position),
        returned: &Returned<'_>,
        sent: &mut Sent,
    ) -> (Position, Option<Halted>) {
        let (behind, len) = (position.next(), request.payload.len());
        self.sent(sent, request.wr_id, &request.op, request.flags, position, len);
        let overtaken = self.unusual(guard, behind, sent);
        sge::copy(&Spans::of_words(&returned.words, returned.len), &returned.to);
        match overtaken {
            Ok(_) => (behind.next(), None),
            Err(halted) => (behind, Some(halted)),
        }
    }
}
