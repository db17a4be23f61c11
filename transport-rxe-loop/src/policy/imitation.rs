//! The imitation of Linux' Soft-RoCE driver: its deviations from the contract, as decisions that the other layers ask
//! for.
//!
//! The deviations were observed on `rxe` of Linux 6.1 with the provider of rdma-core 44. The conformance suite judges
//! the device by the same list: where the driver deviates, this device must, except for what is not imitated.
//!
//! | rule | deviation | by |
//! |---|---|---|
//! | C4 | a failure has 0 in all fields but its id, status and queue pair, as a SEND would | `completion::soft_roce` |
//! | C5 | a SEND with invalidate sets IP_CSUM_OK (4) instead of WITH_INV | `completion::soft_roce` |
//! | C7 | receives have GRH set on every type; a datagram comes from local identifier 0, with service level 0 | `completion::soft_roce` |
//! | C7 | sends have their length, and those with immediate WITH_IMM | [`sent`](Imitation::sent) |
//! | C7 | an address handle needs a global route | [`needs_route`](Imitation::needs_route) |
//! | O1, Q4 | queues have a capacity of 2^k - 1; only completion queues report it | [`capacity`](Imitation::capacity) |
//! | O2–O5 | a completion that does not fit is dropped, and reported by CQ_ERR, each; no event is raised; only a receive's queue pair goes to ERR, and the queue stays usable | `completion::soft_roce` |
//! | N3 | failures raise no event if solicited completions are awaited, except flushed receives | `completion::soft_roce` |
//! | Q1 | a given current state is not checked; packet sequence numbers are truncated to 24 bits; any retry count and `max_dest_rd_atomic` is accepted; an unreliable connection in SQD refuses an address | `api::qp::judge`, by [`believes_attributes`](Imitation::believes_attributes) |
//! | Q1–Q3 | there is no SQE: UC and UD go to ERR | [`has_no_sqe`](Imitation::has_no_sqe) |
//! | Q1 | changing back to RTS does not resume: posting does | [`resumes`](Imitation::resumes) |
//! | Q1 | SQ_DRAINED is reported without a request | [`tells_drained`](Imitation::tells_drained) |
//! | Q2 | receives that are posted in ERR stay until the queue pair is run | [`flushes_at_once`](Imitation::flushes_at_once) |
//! | Q5 | slots of the send queue are freed when requests complete | [`slots_back`](Imitation::slots_back) |
//! | Q6 | the highest bit of a datagram's queue key has no special meaning | [`own_key`](Imitation::own_key) |
//! | Q7 | a receive that is too small or bad: LOC_QP_OP, and REM_OP at the sender; for a WRITE with immediate REM_ACCESS | [`mismatch`](Imitation::mismatch) |
//! | Q7 | an invalid local key of a SEND, WRITE or atomic write is LOC_QP_OP | [`local_fault`](Imitation::local_fault) |
//! | Q7 | SEND with invalidate on an unreliable connection is LOC_QP_OP | [`carries_invalidations`](Imitation::carries_invalidations) |
//! | Q7 | an atomic that is not aligned, or of fewer than eight bytes, is refused (EINVAL); of more it succeeds | [`judge`](Imitation::judge), [`lets_atomic_pass`](Imitation::lets_atomic_pass) |
//! | Q7 | a datagram longer than a packet succeeds, and is dropped | [`drops_long`](Imitation::drops_long) |
//! | Q7 | without a timeout, a request to a peer that is gone never fails | [`answers_for_the_dead`](Imitation::answers_for_the_dead) |
//! | Q9 | unreliable connections may use a shared receive queue | [`shares_receives`](Imitation::shares_receives) |
//! | Q7, Q9 | no event of a queue pair is reported but SQ_DRAINED | [`is_silent`](Imitation::is_silent) |
//!
//! Not imitated:
//!
//! | what | why |
//! |---|---|
//! | a fenced request that is retried waits for a READ behind it; a waiting request is never retried once a request behind it has failed | requests are carried out one after the other |
//! | without a timeout, what was sent before the peer was ready is lost | nothing is lost here |
//! | READ with `max_rd_atomic` 0 waits for ever | posting refuses it, which is clearer |
//! | a message of an unreliable connection arrives at a peer that is connected elsewhere | a connection's receives are taken by its peer only |
//! | lengths are added up in 32 bits; the device reports a higher limit for requests than it can allocate | not useful for tests |
//! | ATOMIC_WRITE, FLUSH, moderation and ignoring overruns are missing | programs that do not use them see no difference; a queue that ignores overruns is an ordinary one throughout |
//! | order and time: completions within `post_send`, `retry_cnt` 7 for ever | programs must not rely on them |
//!
//! All deviations apply to the completion queues of the process that imitates, and to the requests that it carries
//! out: two processes that communicate both have to imitate. Others pay for one load of a flag.

use cq_core::setup::QpType;
use cq_core::transport::Refused;
use cq_core::wc::{Wc, WcStatus};
use cq_core::wr::{Data, SendOp};
use rustix::io::Errno;

use crate::completion::async_event::QpEvent;
use crate::protocol::state::QpState;

/// How the device behaves: by the contract, or like Soft-RoCE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Imitation {
    is_rxe: bool,
}

/// When objects are created.
impl Imitation {
    /// By the contract, or like Soft-RoCE.
    pub const fn new(is_rxe: bool) -> Self {
        Self { is_rxe }
    }

    /// The capacity of a queue for a requested one, at most `max`.
    pub fn capacity(self, asked: u32, max: u32) -> u32 {
        if self.is_rxe { ((asked + 1).next_power_of_two() - 1).min(max) } else { asked }
    }

    /// Whether completion queues behave like Soft-RoCE's.
    pub const fn has_queues_like_rxe(self) -> bool {
        self.is_rxe
    }

    /// Whether an address handle needs a global route.
    pub const fn needs_route(self) -> bool {
        self.is_rxe
    }

    /// Whether queue pairs of a type may use a shared receive queue.
    pub fn shares_receives(self, kind: QpType) -> bool {
        kind != QpType::Uc || self.is_rxe
    }
}

/// When a queue pair is modified.
impl Imitation {
    /// Whether a given current state is not checked, and attributes out of range are truncated.
    pub const fn believes_attributes(self) -> bool {
        self.is_rxe
    }

    /// Whether a queue pair resumes its requests after this change.
    pub fn resumes(self, from: QpState, to: QpState) -> bool {
        !self.is_rxe || (from, to) != (QpState::Sqd, QpState::Rts)
    }

    /// Whether SQ_DRAINED is reported, by whether it was requested.
    pub const fn tells_drained(self, asked: bool) -> bool {
        asked || self.is_rxe
    }
}

/// When a request is posted.
impl Imitation {
    /// Checks a request.
    ///
    /// # Errors
    /// An atomic is not aligned, or too short.
    #[inline]
    pub fn judge(self, op: &SendOp, data: &Data<'_>) -> Result<(), Refused> {
        if self.is_rxe { validate(op, data.len()) } else { Ok(()) }
    }

    /// Whether slots of a send queue are freed when requests complete, and not when completions are polled.
    #[inline]
    pub const fn slots_back(self) -> bool {
        self.is_rxe
    }

    /// Whether a receive that is posted in ERR is flushed at once.
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

/// When a request is carried out.
impl Imitation {
    /// The bit of a datagram's queue key that selects the sender's own key; 0 if there is none.
    pub const fn own_key(self) -> u32 {
        if self.is_rxe { 0 } else { 1 << 31 }
    }

    /// Whether a datagram that is too long is dropped without an error.
    pub const fn drops_long(self) -> bool {
        self.is_rxe
    }

    /// Whether an atomic is carried out whose SGEs have this length.
    pub const fn lets_atomic_pass(self, len: u64) -> bool {
        len == 8 || (self.is_rxe && len > 8)
    }

    /// Whether queue pairs of a type can invalidate keys of their peers.
    pub fn carries_invalidations(self, kind: QpType) -> bool {
        kind == QpType::Rc || !self.is_rxe
    }

    /// Whether a queue pair is known to be gone, and not only not to answer.
    pub const fn answers_for_the_dead(self) -> bool {
        !self.is_rxe
    }
}

/// When a request completes.
impl Imitation {
    /// The completion of a successful send of this length.
    #[inline]
    pub fn sent(self, wc: Wc, op: &SendOp, len: impl FnOnce() -> u64) -> Wc {
        if self.is_rxe { sent_there(wc, op, len()) } else { wc }
    }

    /// The status of a request whose SGEs can't be read: one of their keys is invalid (`is_dead`), or something else
    /// is wrong.
    pub fn local_fault(self, is_dead: impl FnOnce() -> bool) -> WcStatus {
        if self.is_rxe && is_dead() { WcStatus::LOC_QP_OP_ERR } else { WcStatus::LOC_PROT_ERR }
    }

    /// The statuses of both sides for a receive that does not fit its message.
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

    /// Whether there is no SQE, so that a local failure moves a queue pair of any type to ERR.
    pub const fn has_no_sqe(self) -> bool {
        self.is_rxe
    }

    /// Whether this event of a queue pair is not reported.
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
