//! The imitation of Linux' Soft-RoCE driver: its [deviations](crate::manual#imitation-of-soft-roce) from the contract, as
//! decisions that the other layers ask for at [named points](crate::policy). Completions, overrun and events are those of
//! `completion::soft_roce`.
//!
//! The conformance suite judges the device by the same list: where the driver deviates, this device must, except for what
//! is not imitated. A process that does not imitate pays for one load of a flag.

use cq_core::wc::{Wc, WcStatus};
use cq_verbs::setup::QpType;
use cq_verbs::wr::SendOp;

use crate::completion::async_event::QpEvent;

/// How the device behaves: by the contract, or like Soft-RoCE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Imitation {
    is_rxe: bool,
}

/// How a queue pair behaves towards its program.
#[derive(Clone, Copy, Debug)]
pub struct QpBehavior {
    /// The capacities of the send and the receive queue.
    pub capacities: [u32; 2],
    /// Whether it may use a shared receive queue: by `ibv_create_qp(3)`, an unreliable connection may not.
    pub may_share_receives: bool,
    /// Whether a given current state is not checked, and attributes out of range are truncated.
    pub believes_attributes: bool,
    /// Whether its requests resume when it changes from SQD back to RTS.
    pub resumes_from_sqd: bool,
    /// Whether SQ_DRAINED is reported without a request.
    pub always_reports_drained: bool,
    /// Whether posting refuses an atomic that is not aligned, or too short.
    pub checks_atomics: bool,
    /// Whether slots of the send queue are freed when requests complete, and not when completions are polled.
    pub frees_slots_early: bool,
    /// Whether a receive that is posted in ERR is flushed at once.
    pub flushes_at_once: bool,
    /// Whether slots of the receive queue are freed when completions are polled, and not when requests complete.
    pub frees_receives_late: bool,
}

/// How a completion queue behaves.
#[derive(Clone, Copy, Debug)]
pub struct CqBehavior {
    pub capacity: u32,
    /// Whether its completions and its overrun are Soft-RoCE's.
    pub is_like_rxe: bool,
}

/// When objects are created.
impl Imitation {
    /// By the contract, or like Soft-RoCE.
    pub const fn new(is_rxe: bool) -> Self {
        Self { is_rxe }
    }

    /// Whether it is like Soft-RoCE.
    pub const fn is_on(self) -> bool {
        self.is_rxe
    }

    /// A queue pair with these capacities of the send and the receive queue, at most `max`.
    pub fn queue_pair(self, kind: QpType, asked: [u32; 2], max: u32) -> QpBehavior {
        let Self { is_rxe } = self;
        QpBehavior {
            capacities: asked.map(|asked| self.capacity(asked, max)),
            may_share_receives: kind != QpType::UC || is_rxe,
            believes_attributes: is_rxe,
            resumes_from_sqd: !is_rxe,
            always_reports_drained: is_rxe,
            checks_atomics: is_rxe,
            frees_slots_early: is_rxe,
            flushes_at_once: !is_rxe,
            frees_receives_late: false,
        }
    }

    /// A completion queue with this capacity, at most `max`.
    pub fn completion_queue(self, asked: u32, max: u32) -> CqBehavior {
        CqBehavior { capacity: self.capacity(asked, max), is_like_rxe: self.is_rxe }
    }

    /// The capacity of a queue for a requested one. One that exceeds `max` is returned as it is.
    pub fn capacity(self, asked: u32, max: u32) -> u32 {
        let rounds = self.is_rxe && asked < max;
        if rounds { ((asked + 1).next_power_of_two() - 1).min(max) } else { asked }
    }

    /// Whether an address handle needs a global route.
    pub const fn needs_route(self) -> bool {
        self.is_rxe
    }
}

/// A request that this policy may fail, drop or change when it is begun.
#[derive(Clone, Copy, Debug)]
pub enum StartingOp {
    /// An atomic whose SGEs have this length.
    Atomic { len: u64 },
    /// A SEND with invalidate of a queue pair of this type.
    SendInvalidate { kind: QpType },
    /// A datagram with this queue key.
    Datagram { qkey: u32, is_too_long: bool },
}

/// What happens to a request that is begun and does not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    Runs,
    /// It is sent with its sender's own queue key.
    RunsWithOwnKey,
    /// It succeeds without being sent.
    Dropped,
}

/// How requests of a queue pair fail.
#[derive(Clone, Copy, Debug)]
pub struct Failing {
    /// The status of a request that reads local memory with an invalid key.
    pub invalid_key: WcStatus,
    /// Whether the queue pair goes to SQE, and not to ERR.
    pub to_sqe: bool,
    /// Whether a peer is known to be gone, and not only not to answer.
    pub knows_gone: bool,
}

/// When a request is carried out.
impl Imitation {
    /// What happens to a request that is begun.
    ///
    /// # Errors
    /// It fails with this status.
    #[inline]
    pub fn start(self, request: StartingOp) -> Result<Start, WcStatus> {
        let Self { is_rxe } = self;
        match request {
            StartingOp::Atomic { len } if len < 8 || (len > 8 && !is_rxe) => {
                Err(WcStatus::LOC_LEN_ERR)
            }
            StartingOp::SendInvalidate { kind } if kind != QpType::RC && is_rxe => {
                Err(WcStatus::LOC_QP_OP_ERR)
            }
            StartingOp::Datagram { is_too_long: true, .. } if is_rxe => Ok(Start::Dropped),
            StartingOp::Datagram { is_too_long: true, .. } => Err(WcStatus::LOC_LEN_ERR),
            // With the highest bit set, the sender's own Q_Key is used.
            StartingOp::Datagram { qkey, .. } if qkey >> 31 == 1 && !is_rxe => {
                Ok(Start::RunsWithOwnKey)
            }
            _ => Ok(Start::Runs),
        }
    }

    /// How requests of a queue pair of this type fail.
    pub fn failing(self, kind: QpType) -> Failing {
        let Self { is_rxe } = self;
        Failing {
            invalid_key: if is_rxe { WcStatus::LOC_QP_OP_ERR } else { WcStatus::LOC_PROT_ERR },
            to_sqe: kind != QpType::RC && !is_rxe,
            knows_gone: !is_rxe,
        }
    }

    /// The statuses of both sides for a receive that does not fit its message.
    #[cold]
    pub fn mismatch(
        self,
        responder_status: WcStatus,
        requester_status: WcStatus,
    ) -> (WcStatus, WcStatus) {
        match responder_status {
            _ if !self.is_rxe => (responder_status, requester_status),
            WcStatus::LOC_LEN_ERR | WcStatus::LOC_PROT_ERR => {
                (WcStatus::LOC_QP_OP_ERR, WcStatus::REM_OP_ERR)
            }
            WcStatus::LOC_ACCESS_ERR => (WcStatus::REM_ACCESS_ERR, requester_status),
            _ => (responder_status, requester_status),
        }
    }
}

/// When something is reported.
impl Imitation {
    /// The completion of a successful send of this length.
    #[inline]
    pub fn sent(self, wc: Wc, op: &SendOp, len: u64) -> Wc {
        if self.is_rxe { sent_there(wc, op, len) } else { wc }
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
