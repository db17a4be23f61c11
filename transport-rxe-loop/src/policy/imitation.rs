//! The device as Linux' Soft-RoCE driver would be: what a program has to live with there, though the contract
//! says otherwise. Whoever asks for it is asked here, and what is otherwise is said here.
//!
//! What is listed was seen on `rxe` of Linux 6.1 with the provider of rdma-core 44. The conformance suite judges
//! the device so, too: where that one deviates, this one must, but for what is not imitated.
//!
//! | rule | what is otherwise | by |
//! |---|---|---|
//! | C4 | a failure says 0 everywhere but in its id, status and queue pair: as a SEND would | `completion::soft_roce` |
//! | C5 | a SEND with invalidate is told by IP_CSUM_OK (4), not by WITH_INV | `completion::soft_roce` |
//! | C7 | receives have GRH set on every type; a datagram comes from local identifier 0, by service level 0 | `completion::soft_roce` |
//! | C7 | sends say their length, and those with immediate WITH_IMM | [`sent`](Imitation::sent) |
//! | C7 | there is no handle of an address without a route | [`needs_route`](Imitation::needs_route) |
//! | O1, Q4 | queues take 2^k - 1; only completion queues say so | [`capacity`](Imitation::capacity) |
//! | O2–O5 | a completion without room is dropped and told by CQ_ERR, each; nobody is woken; a receive's queue pair alone goes to ERR, and the queue works on | `completion::soft_roce` |
//! | N3 | failures raise no event for who waits for solicited completions, but for flushed receives | `completion::soft_roce` |
//! | Q1 | the current state that is named is taken for true; numbers of packets are cut to 24 bits; any number of retries, and of the peer's READs, is taken; an unreliable connection in SQD takes no address | `qp::judge`, for who [believes](Imitation::believes_attributes) |
//! | Q1–Q3 | there is no SQE: UC and UD go to ERR | [`has_no_sqe`](Imitation::has_no_sqe) |
//! | Q1 | going back to RTS does not resume: posting does | [`resumes`](Imitation::resumes) |
//! | Q1 | SQ_DRAINED comes unasked | [`tells_drained`](Imitation::tells_drained) |
//! | Q2 | in ERR, receives that are posted stay until the queue pair is run | [`flushes_at_once`](Imitation::flushes_at_once) |
//! | Q5 | slots of the send queue come back when requests are done | [`slots_back`](Imitation::slots_back) |
//! | Q6 | a queue key of a datagram counts as it is, highest bit and all | [`own_key`](Imitation::own_key) |
//! | Q7 | a receive that is too small or bad: LOC_QP_OP, and REM_OP at the sender; of a WRITE with immediate REM_ACCESS | [`mismatch`](Imitation::mismatch) |
//! | Q7 | a dead local key of a SEND, WRITE or atomic write is LOC_QP_OP | [`local_fault`](Imitation::local_fault) |
//! | Q7 | SEND with invalidate on an unreliable connection is LOC_QP_OP | [`carries_invalidations`](Imitation::carries_invalidations) |
//! | Q7 | an atomic that is not aligned, or of fewer than eight bytes, is refused (EINVAL); of more it succeeds | [`judge`](Imitation::judge), [`lets_atomic_pass`](Imitation::lets_atomic_pass) |
//! | Q7 | a datagram longer than a packet succeeds, and is dropped | [`drops_long`](Imitation::drops_long) |
//! | Q7 | without a timeout nobody tells that a peer is gone | [`answers_for_the_dead`](Imitation::answers_for_the_dead) |
//! | Q9 | unreliable connections may take shared receives | `qp::judge::check_shares` |
//! | Q7, Q9 | no event is told of a queue pair but SQ_DRAINED | [`is_silent`](Imitation::is_silent) |
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

use cq_core::setup::QpType;
use cq_core::transport::Refused;
use cq_core::wc::{Wc, WcStatus};
use cq_core::wr::{Data, SendOp};
use rustix::io::Errno;

use crate::completion::async_event::QpEvent;
use crate::protocol::state::QpState;

/// What the device is like: as the contract says, or as Soft-RoCE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Imitation {
    is_rxe: bool,
}

/// As objects are made.
impl Imitation {
    /// As the contract says, or as Soft-RoCE.
    pub const fn new(is_rxe: bool) -> Self {
        Self { is_rxe }
    }

    /// How much a queue holds of which so much is asked for, at most `max`.
    pub fn capacity(self, asked: u32, max: u32) -> u32 {
        if self.is_rxe { ((asked + 1).next_power_of_two() - 1).min(max) } else { asked }
    }

    /// Whether completion queues are like Soft-RoCE's.
    pub const fn has_queues_like_rxe(self) -> bool {
        self.is_rxe
    }

    /// Whether a handle of an address can't be without a global route.
    pub const fn needs_route(self) -> bool {
        self.is_rxe
    }

    /// Whether queue pairs of a type may take from a shared receive queue.
    pub fn shares_receives(self, kind: QpType) -> bool {
        kind != QpType::Uc || self.is_rxe
    }
}

/// As a queue pair is changed.
impl Imitation {
    /// Whether the current state that is named is believed, and attributes that can't be are cut to size.
    pub const fn believes_attributes(self) -> bool {
        self.is_rxe
    }

    /// Whether a queue pair goes on after this change with what it was about.
    pub fn resumes(self, from: QpState, to: QpState) -> bool {
        !self.is_rxe || (from, to) != (QpState::Sqd, QpState::Rts)
    }

    /// Whether SQ_DRAINED is told, if it was asked for or not.
    pub const fn tells_drained(self, asked: bool) -> bool {
        asked || self.is_rxe
    }
}

/// As a request is posted.
impl Imitation {
    /// Judges a request.
    ///
    /// # Errors
    /// An atomic that is not aligned, or too short.
    #[inline]
    pub fn judge(self, op: &SendOp, data: &Data<'_>) -> Result<(), Refused> {
        if self.is_rxe { validate(op, data.len()) } else { Ok(()) }
    }

    /// Whether slots of a send queue come back as soon as requests are done, and not as completions are polled.
    #[inline]
    pub const fn slots_back(self) -> bool {
        self.is_rxe
    }

    /// Whether a receive that is posted in ERR is flushed then.
    pub const fn flushes_at_once(self) -> bool {
        !self.is_rxe
    }
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

/// As a request is carried out.
impl Imitation {
    /// Which bit of a datagram's queue key says that the sender's own is meant; 0 if none does.
    pub const fn own_key(self) -> u32 {
        if self.is_rxe { 0 } else { 1 << 31 }
    }

    /// Whether a datagram that is too long is dropped, and not told.
    pub const fn drops_long(self) -> bool {
        self.is_rxe
    }

    /// Whether an atomic is carried out whose SGEs are so many bytes.
    pub const fn lets_atomic_pass(self, len: u64) -> bool {
        len == 8 || (self.is_rxe && len > 8)
    }

    /// Whether queue pairs of a type can invalidate keys of their peers.
    pub fn carries_invalidations(self, kind: QpType) -> bool {
        kind == QpType::Rc || !self.is_rxe
    }

    /// Whether it is known of a queue pair that it is gone, and not only that it does not answer.
    pub const fn answers_for_the_dead(self) -> bool {
        !self.is_rxe
    }
}

/// As a request completes.
impl Imitation {
    /// The completion of a send that was carried out, of this length.
    #[inline]
    pub fn sent(self, wc: Wc, op: &SendOp, len: impl FnOnce() -> u64) -> Wc {
        if self.is_rxe { sent_there(wc, op, len()) } else { wc }
    }

    /// What it means for a request that its SGEs can't be read: one of their keys is `dead`, or something else is wrong.
    pub fn local_fault(self, is_dead: impl FnOnce() -> bool) -> WcStatus {
        if self.is_rxe && is_dead() { WcStatus::LOC_QP_OP_ERR } else { WcStatus::LOC_PROT_ERR }
    }

    /// How the two sides see a receive that is not for the message which it was taken for.
    #[cold]
    pub fn mismatch(self, theirs: WcStatus, ours: WcStatus) -> (WcStatus, WcStatus) {
        match theirs {
            _ if !self.is_rxe => (theirs, ours),
            WcStatus::LOC_LEN_ERR | WcStatus::LOC_PROT_ERR => {
                (WcStatus::LOC_QP_OP_ERR, WcStatus::REM_OP_ERR)
            }
            WcStatus::LOC_ACCESS_ERR => (WcStatus::REM_ACCESS_ERR, ours),
            _ => (theirs, ours),
        }
    }

    /// Whether there is no SQE, so that a failure on its own side sends a queue pair of any type to ERR.
    pub const fn has_no_sqe(self) -> bool {
        self.is_rxe
    }

    /// Whether nobody is told that this happened to a queue pair.
    pub const fn is_silent(self, event: QpEvent) -> bool {
        self.is_rxe && !matches!(event, QpEvent::Drained)
    }
}

#[cold]
fn sent_there(wc: Wc, op: &SendOp, len: u64) -> Wc {
    let wc = wc.with_byte_len(len as u32);
    match op {
        SendOp::Send { imm: Some(_) } | SendOp::Write { imm: Some(_), .. } => wc.with_imm([0; 4]),
        _ => wc,
    }
}
