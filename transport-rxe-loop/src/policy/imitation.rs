//! The device as Linux' Soft-RoCE driver would be: what a program has to live with there, though the contract
//! says otherwise. Whoever asks for it is [asked](Fabric::imitates_rxe) here, and what is otherwise is said here.
//!
//! What is listed was seen on `rxe` of Linux 6.1 with the provider of rdma-core 44. The conformance suite judges
//! the device so, too: where that one deviates, this one must, but for what is not imitated.
//!
//! | rule | what is otherwise | by |
//! |---|---|---|
//! | C4 | a failure says 0 everywhere but in its id, status and queue pair: as a SEND would | [`mod@push`] |
//! | C5 | a SEND with invalidate is told by IP_CSUM_OK (4), not by WITH_INV | [`mod@push`] |
//! | C7 | receives have GRH set on every type; a datagram comes from local identifier 0, by service level 0 | [`mod@push`] |
//! | C7 | sends say their length, and those with immediate WITH_IMM | [`sent`] |
//! | C7 | there is no handle of an address without a route | [`needs_route`] |
//! | O1, Q4 | queues take 2^k - 1; only completion queues say so | [`capacity`] |
//! | O2–O5 | a completion without room is dropped and told by CQ_ERR, each; nobody is woken; a receive's queue pair alone goes to ERR, and the queue works on | [`mod@push`] |
//! | N3 | failures raise no event for who waits for solicited completions, but for flushed receives | [`mod@push`] |
//! | Q1 | the current state that is named is taken for true; numbers of packets are cut to 24 bits; any number of retries, and of the peer's READs, is taken; an unreliable connection in SQD takes no address | [`check`] |
//! | Q1–Q3 | there is no SQE: UC and UD go to ERR | [`has_no_sqe`] |
//! | Q1 | going back to RTS does not resume: posting does | [`resumes`] |
//! | Q1 | SQ_DRAINED comes unasked | [`tells_drained`] |
//! | Q2 | in ERR, receives that are posted stay until the queue pair is run | [`flushes_at_once`] |
//! | Q5 | slots of the send queue come back when requests are done | [`slots_back`] |
//! | Q6 | a queue key of a datagram counts as it is, highest bit and all | [`own_key`] |
//! | Q7 | a receive that is too small or bad: LOC_QP_OP, and REM_OP at the sender; of a WRITE with immediate REM_ACCESS | [`mismatch`] |
//! | Q7 | a dead local key of a SEND, WRITE or atomic write is LOC_QP_OP | [`local_fault`] |
//! | Q7 | SEND with invalidate on an unreliable connection is LOC_QP_OP | [`carries_invalidations`] |
//! | Q7 | an atomic that is not aligned, or of fewer than eight bytes, is refused (EINVAL); of more it succeeds | [`judge`], [`lets_atomic_pass`] |
//! | Q7 | a datagram longer than a packet succeeds, and is dropped | [`drops_long`] |
//! | Q7 | without a timeout nobody tells that a peer is gone | [`answers_for_the_dead`] |
//! | Q9 | unreliable connections may take shared receives | `qp::judge::check_shares` |
//! | Q7, Q9 | no event is told of a queue pair but SQ_DRAINED | [`is_silent`] |
//!
//! Not imitated:
//!
//! | what | why |
//! |---|---|
//! | a fenced request that is tried again waits for a READ behind it; what waits is never tried again once a request behind it has failed | requests are carried out one after the other |
//! | without a timeout, what was sent before the peer listened is lost | nothing is lost here |
//! | READ with `max_rd_atomic` 0 waits for ever | posting refuses it, which tells more |
//! | a message of an unreliable connection arrives at a peer that is connected elsewhere | a connection's receives have one taker |
//! | lengths are added up in 32 bits; the device tells of more requests than it can make room for | nothing worth surviving |
//! | ATOMIC_WRITE, FLUSH, moderation and ignoring overruns are missing | who does not use them notices nothing; a queue that ignores overruns is an ordinary one in all |
//! | order and time: completions within `post_send`, `retry_cnt` 7 for ever | programs may not count on them |
//!
//! All of it holds for the completion queues of the process that imitates, and for the requests that it carries
//! out: where two processes talk, both have to. Nobody else pays for more than a look at a flag.

use std::env;

use cq_core::setup::{Access, QpAttrMask, QpType};
use cq_core::transport::Refused;
use cq_core::wc::{Wc, WcStatus};
use cq_core::wr::{Data, SendOp};
use rustix::io::Errno;

use crate::api::attr::QpAttr;
use crate::api::device::MAX_RD_ATOMIC;
use crate::api::state::QpState;
use crate::completion::async_event::QpEvent;
use crate::engine::requester::{Halt, Initiator};
use crate::engine::ring::{Payload, SendRequest};
use crate::error::{ModifyError, OpenError};
use crate::fabric::Fabric;
use crate::layout::QpSlot;
use crate::memory::copy_guard::Window;
use crate::memory::region::Whose;
use crate::sync::{self, AtomicU64};

/// The environment variable that names what programs are to see which ask for nothing.
const VARIABLE: &str = "RXE_LOOP_IMITATE";

/// Whether the environment asks for it.
pub fn from_env() -> Result<bool, OpenError> {
    match env::var_os(VARIABLE) {
        None => Ok(false),
        Some(what) if what == "rxe" => Ok(true),
        Some(what) => Err(OpenError::UnknownImitation { what }),
    }
}

/// How much a queue holds of which so much is asked for, at most `max`.
pub fn capacity(fabric: &Fabric, asked: u32, max: u32) -> u32 {
    if fabric.imitates_rxe() { ((asked + 1).next_power_of_two() - 1).min(max) } else { asked }
}

/// The completion of a send that was carried out.
#[cold]
pub fn sent(wc: Wc, request: &SendRequest) -> Wc {
    let wc = wc.with_byte_len(request.payload.len() as u32);
    match request.op {
        SendOp::Send { imm: Some(_) } | SendOp::Write { imm: Some(_), .. } => wc.with_imm([0; 4]),
        _ => wc,
    }
}

/// Whether a handle of an address can't be without a global route.
pub const fn needs_route(fabric: &Fabric) -> bool {
    fabric.imitates_rxe()
}

/// Judges a change of a queue pair in state `is`: the state that it leads to.
pub fn check(attr: &QpAttr, is: QpState, of: QpType) -> Result<QpState, ModifyError> {
    const BITS24: u32 = (1 << 24) - 1;
    const RETRIES: u8 = 7;
    let mut judged = *attr;
    (judged.rq_psn, judged.sq_psn) = (attr.rq_psn & BITS24, attr.sq_psn & BITS24);
    (judged.retry_cnt, judged.rnr_retry) =
        (attr.retry_cnt.min(RETRIES), attr.rnr_retry.min(RETRIES));
    judged.max_dest_rd_atomic = attr.max_dest_rd_atomic.min(MAX_RD_ATOMIC);
    let from = if attr.has(QpAttrMask::CUR_STATE) { attr.cur_state } else { is };
    let to = judged.check(from, of)?;
    let superfluous = attr.mask().intersection(QpAttrMask::AV);
    if (from, to, of) == (QpState::Sqd, QpState::Sqd, QpType::Uc) && !superfluous.is_empty() {
        return Err(ModifyError::Superfluous { from, to, superfluous });
    }
    Ok(if attr.has(QpAttrMask::STATE) { to } else { is })
}

/// Whether a queue pair goes on after this change with what it was about.
pub fn resumes(fabric: &Fabric, from: QpState, to: QpState) -> bool {
    !fabric.imitates_rxe() || (from, to) != (QpState::Sqd, QpState::Rts)
}

/// Whether SQ_DRAINED is told, if it was asked for or not.
pub const fn tells_drained(fabric: &Fabric, asked: bool) -> bool {
    asked || fabric.imitates_rxe()
}

/// Whether a receive that is posted in ERR is flushed then.
pub const fn flushes_at_once(fabric: &Fabric) -> bool {
    !fabric.imitates_rxe()
}

/// Up to where the slots of a send queue have come back.
pub const fn slots_back<'s>(fabric: &Fabric, slot: &'s QpSlot) -> &'s AtomicU64 {
    if fabric.imitates_rxe() { &slot.send.done } else { &slot.retired.0 }
}

/// Which bit of a datagram's queue key says that the sender's own is meant; 0 if none does.
pub const fn own_key(fabric: &Fabric) -> u32 {
    if fabric.imitates_rxe() { 0 } else { 1 << 31 }
}

/// How the two sides see a receive that is not for the message which it was taken for.
#[cold]
pub fn mismatch(fabric: &Fabric, theirs: WcStatus, ours: WcStatus) -> (WcStatus, WcStatus) {
    if !fabric.imitates_rxe() {
        return (theirs, ours);
    }
    match theirs {
        WcStatus::LOC_LEN_ERR | WcStatus::LOC_PROT_ERR => {
            (WcStatus::LOC_QP_OP_ERR, WcStatus::REM_OP_ERR)
        }
        WcStatus::LOC_ACCESS_ERR => (WcStatus::REM_ACCESS_ERR, ours),
        _ => (theirs, ours),
    }
}

/// What it means for a request that its pieces can't be read.
#[cold]
pub fn local_fault(initiator: &Initiator<'_>, window: &Window<'_>, payload: &Payload) -> Halt {
    let domain = Whose::local(sync::load(&initiator.slot.pd));
    let is_dead = |key| !window.knows(domain, key, Access::empty());
    if initiator.fabric.imitates_rxe()
        && payload.pieces().any(|piece| piece.length > 0 && is_dead(piece.lkey))
    {
        return Halt::Failed(WcStatus::LOC_QP_OP_ERR);
    }
    Halt::LOCAL_PROTECTION
}

/// Judges a request that is posted.
#[inline]
pub fn judge(fabric: &Fabric, op: &SendOp, data: &Data<'_>) -> Result<(), Refused> {
    if fabric.imitates_rxe() { validate(op, data.len()) } else { Ok(()) }
}

#[cold]
fn validate(op: &SendOp, len: u64) -> Result<(), Refused> {
    match op {
        SendOp::CompareSwap { remote, .. } | SendOp::FetchAdd { remote, .. }
            if len < 8 || !remote.addr.is_multiple_of(8) =>
        {
            Err(Refused::Device(Errno::INVAL.raw_os_error()))
        }
        _ => Ok(()),
    }
}

/// Whether an atomic is carried out whose pieces are so many bytes.
pub const fn lets_atomic_pass(fabric: &Fabric, len: u64) -> bool {
    len == 8 || (fabric.imitates_rxe() && len > 8)
}

/// Whether a datagram that is too long is dropped, and not told.
pub const fn drops_long(fabric: &Fabric) -> bool {
    fabric.imitates_rxe()
}

/// Whether it is known of a queue pair that it is gone, and not only that it does not answer.
pub const fn answers_for_the_dead(fabric: &Fabric) -> bool {
    !fabric.imitates_rxe()
}

/// Whether there is no SQE, so that a failure on its own side sends a queue pair of any type to ERR.
pub const fn has_no_sqe(fabric: &Fabric) -> bool {
    fabric.imitates_rxe()
}

/// Whether queue pairs of a type can take keys away from their peers.
pub fn carries_invalidations(fabric: &Fabric, kind: QpType) -> bool {
    kind == QpType::Rc || !fabric.imitates_rxe()
}

/// Whether nobody is told that this happened to a queue pair.
pub const fn is_silent(fabric: &Fabric, event: QpEvent) -> bool {
    fabric.imitates_rxe() && !matches!(event, QpEvent::Drained)
}

#[cfg(test)]
mod tests;
