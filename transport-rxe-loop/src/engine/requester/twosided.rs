//! Two-sided operations, which take a receive of the responder: SEND, and WRITE with immediate.
//!
//! # Errors, in the order in which they are checked (Q7)
//! On RC. On UC the requester does not learn of what concerns the responder, and a message without a receive is lost: see
//! `unreliable`.
//!
//! | error | requester | receive | responder |
//! |---|---|---|---|
//! | a local key or range | LOC_PROT, ERR | | |
//! | WRITE with immediate: the responder's queue pair lacks the right | REM_INV_REQ, ERR | | ERR |
//! | no receive | RNR_RETRY_EXC, ERR | | |
//! | SEND: the receive is too small | REM_INV_REQ, ERR | LOC_LEN | ERR |
//! | SEND: a key or range of the receive, or a region without LOCAL_WRITE | REM_OP, ERR | LOC_PROT | ERR |
//! | SEND with invalidate: no memory window of the responder's queue pair has the key | | REM_INV_REQ | ERR |
//! | WRITE with immediate: the remote key, its range, or its region's rights | REM_ACCESS, ERR | LOC_ACCESS | ERR |
//!
//! A WRITE with immediate does not use the buffers of the receive that it takes, so their SGEs are not checked.

use cq_core::wc::WcStatus;
use cq_verbs::setup::{Access, QpType};
use cq_verbs::wr::{RemoteAddr, SendFlags};

use super::onesided::remote_sge;
use super::{Halt, Requester, local};
use crate::engine::Engine;
use crate::engine::complete::ReceivedOp;
use crate::engine::responder::Receive;
use crate::engine::ring::SendRequest;
use crate::engine::shared_receives::Unavailable;
use crate::memory::copy;
use crate::memory::copy_guard::CopyGuard;
use crate::memory::key::Key;
use crate::memory::sge::{Spans, Target};
use crate::memory::transfer::{Order, Trouble};
use crate::policy::imitation::StartingOp;

/// Why a message was not placed into its receive.
enum Refusal {
    /// Both sides fail, with these statuses.
    Mismatch { responder_status: WcStatus, requester_status: WcStatus },
    /// The responder's process does not answer.
    NoAnswer,
    /// The requester's own memory is not mapped.
    Own,
}

impl Refusal {
    /// The refusal for a failed copy; the statuses are those of a memory fault.
    const fn of(trouble: Trouble, responder_status: WcStatus, requester_status: WcStatus) -> Self {
        match trouble {
            Trouble::Fault => Self::Mismatch { responder_status, requester_status },
            Trouble::NoAnswer => Self::NoAnswer,
            Trouble::Own => Self::Own,
        }
    }
}

impl Requester<'_> {
    /// A SEND of `from`.
    #[inline]
    pub fn send(
        &mut self,
        guard: &CopyGuard<'_>,
        request: &SendRequest,
        from: &Spans<'_>,
        imm: Option<[u8; 4]>,
    ) -> Result<(), Halt> {
        let receive = self.next_receive();
        // By reference, because a receive is large.
        let receive = receive.as_ref().map_err(|&why| self.halt(why))?;
        let scattered = scatter(guard, self.engine, from, receive);
        self.end(receive, request, from.len(), ReceivedOp::Send { imm }, scattered)
    }

    /// A SEND of `from` that invalidates a memory window of the responder once the bytes are there. A wrong key fails
    /// the responder alone.
    #[cold]
    pub fn send_invalidate(
        &mut self,
        guard: &CopyGuard<'_>,
        request: &SendRequest,
        from: &Spans<'_>,
        rkey: u32,
    ) -> Result<(), Halt> {
        self.start(StartingOp::SendInvalidate { kind: self.connection.kind })?;
        let receive = self.next_receive().map_err(|why| self.halt(why))?;
        let scattered = scatter(guard, self.engine, from, &receive);
        if scattered.is_ok()
            && !local::invalidate(self.engine, self.connection.peer.number, Key::new(rkey))
        {
            let refused = self.connection.peer.refused(&receive, WcStatus::REM_INV_REQ_ERR);
            self.add_received(refused);
            return Ok(());
        }
        self.end(&receive, request, from.len(), ReceivedOp::SendInvalidate { rkey }, scattered)
    }

    /// A WRITE of `from` with immediate data. It takes its receive before its key is checked.
    #[cold]
    pub fn write_imm(
        &mut self,
        guard: &CopyGuard<'_>,
        request: &SendRequest,
        from: &Spans<'_>,
        remote: RemoteAddr,
        imm: [u8; 4],
    ) -> Result<(), Halt> {
        let domain = self.check_right(Access::REMOTE_WRITE)?;
        let receive = self.next_receive().map_err(|why| self.halt(why))?;
        let (responder_status, requester_status) =
            (WcStatus::LOC_ACCESS_ERR, WcStatus::REM_ACCESS_ERR);
        let len = from.len() as u64;
        let (mut to, target) = (Target::new(), remote_sge(remote, len));
        let scattered = match guard.target(&mut to, domain, target, Access::REMOTE_WRITE, len) {
            None => Err(Refusal::Mismatch { responder_status, requester_status }),
            Some(()) => {
                copy::copy(self.engine.memory, from, &to, self.engine.policy.strict.write_order())
                    .map_err(|trouble| Refusal::of(trouble, responder_status, requester_status))
            }
        };
        // An unreliable responder does not learn of what is dropped.
        if self.connection.kind == QpType::UC && matches!(scattered, Err(Refusal::Mismatch { .. }))
        {
            self.connection.peer.give_back(&receive);
            return Err(Halt::Failed(requester_status));
        }
        self.end(&receive, request, from.len(), ReceivedOp::Write { imm }, scattered)
    }

    /// The responder's receive that the next message takes.
    #[inline]
    pub fn next_receive(&mut self) -> Result<Receive, Unavailable> {
        self.connection.peer.receive(self.received.len() as u64)
    }

    /// Completes or fails the receive of a message of `len` bytes.
    #[inline]
    fn end(
        &mut self,
        receive: &Receive,
        request: &SendRequest,
        len: usize,
        received_op: ReceivedOp,
        scattered: Result<(), Refusal>,
    ) -> Result<(), Halt> {
        match scattered {
            Ok(()) => {
                let solicited = request.flags.contains(SendFlags::SOLICITED);
                let peer = &self.connection.peer;
                self.add_received(peer.received(receive, len, received_op, solicited));
                Ok(())
            }
            Err(Refusal::Mismatch { responder_status, requester_status }) => {
                let peer = &mut self.connection.peer;
                let (failed, status) = peer.mismatched(receive, responder_status, requester_status);
                self.add_received(failed);
                Err(Halt::Failed(status))
            }
            Err(Refusal::NoAnswer) => {
                self.connection.peer.give_back(receive);
                Err(self.unanswered())
            }
            Err(Refusal::Own) => {
                self.connection.peer.give_back(receive);
                Err(Halt::LOCAL_PROTECTION)
            }
        }
    }
}

/// Places a message into the receive that was taken for it.
#[inline]
fn scatter(
    guard: &CopyGuard<'_>,
    engine: &'static Engine,
    from: &Spans<'_>,
    receive: &Receive,
) -> Result<(), Refusal> {
    let len = from.len() as u64;
    let Receive { domain, ref request, .. } = *receive;
    if len > request.sges.len() {
        let (responder_status, requester_status) =
            (WcStatus::LOC_LEN_ERR, WcStatus::REM_INV_REQ_ERR);
        return Err(Refusal::Mismatch { responder_status, requester_status });
    }
    let (responder_status, requester_status) = (WcStatus::LOC_PROT_ERR, WcStatus::REM_OP_ERR);
    let mut to = Target::new();
    let sges = request.sges.iter();
    if guard.target_all(&mut to, domain, sges, Access::LOCAL_WRITE, len).is_none() {
        return Err(Refusal::Mismatch { responder_status, requester_status });
    }
    copy::copy(engine.memory, from, &to, Order::Any)
        .map_err(|trouble| Refusal::of(trouble, responder_status, requester_status))
}
