//! The states of a queue pair and the changes between them, as data (Q1).
//!
//! ```
//! use transport_rxe_loop::{QpAttrMask, QpState};
//!
//! let rule = QpState::Reset.rule(QpState::Init).unwrap();
//! assert_eq!(rule.required, QpAttrMask::PKEY_INDEX | QpAttrMask::PORT | QpAttrMask::ACCESS_FLAGS);
//! assert!(QpState::Reset.rule(QpState::Rts).is_none());
//! ```

use cq_core::setup::QpAttrMask;

use std::fmt;

/// `enum ibv_qp_state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum QpState {
    /// New, or emptied: takes no requests.
    Reset = 0,
    /// Takes receives.
    Init = 1,
    /// Ready to receive.
    Rtr = 2,
    /// Ready to send, too.
    Rts = 3,
    /// The send queue is drained. A request that has begun is carried out: one that bytes are being moved
    /// for, or that waits for its peer. Those behind it wait until the queue pair is in RTS again, whenever
    /// they were posted; receives go on.
    Sqd = 4,
    /// The send queue failed. A reliable connection never gets here: it goes to `Err`.
    Sqe = 5,
    /// Failed: everything posted is flushed.
    Err = 6,
}

/// What a change of state takes along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Attributes that have to be given.
    pub required: QpAttrMask,
    /// Attributes that may be given.
    pub optional: QpAttrMask,
}

/// Every change of a reliable connection that takes attributes, as in `ibv_modify_qp(3)` and, for what
/// is optional, Linux' table. To RESET and to ERR see [`QpState::rule`].
const RULES: &[(QpState, QpState, QpAttrMask, QpAttrMask)] = {
    use QpState::{Init, Reset, Rtr, Rts, Sqd, Sqe};
    const A: QpAttrMask = QpAttrMask::ACCESS_FLAGS;
    const NONE: QpAttrMask = QpAttrMask::empty();
    const WHERE: QpAttrMask = QpAttrMask::PKEY_INDEX.union(QpAttrMask::PORT);
    const PATHS: QpAttrMask = QpAttrMask::ALT_PATH.union(QpAttrMask::PATH_MIG_STATE);
    const RUNNING: QpAttrMask =
        QpAttrMask::CUR_STATE.union(A).union(PATHS).union(QpAttrMask::MIN_RNR_TIMER);
    const RECEIVER: QpAttrMask = QpAttrMask::AV
        .union(QpAttrMask::PATH_MTU)
        .union(QpAttrMask::DEST_QPN)
        .union(QpAttrMask::RQ_PSN)
        .union(QpAttrMask::MAX_DEST_RD_ATOMIC)
        .union(QpAttrMask::MIN_RNR_TIMER);
    const RETRIES: QpAttrMask =
        QpAttrMask::TIMEOUT.union(QpAttrMask::RETRY_CNT).union(QpAttrMask::RNR_RETRY);
    const SENDER: QpAttrMask =
        RETRIES.union(QpAttrMask::SQ_PSN).union(QpAttrMask::MAX_QP_RD_ATOMIC);
    const DRAINED: QpAttrMask = WHERE
        .union(QpAttrMask::AV)
        .union(RETRIES)
        .union(QpAttrMask::MAX_QP_RD_ATOMIC)
        .union(QpAttrMask::MAX_DEST_RD_ATOMIC)
        .union(QpAttrMask::MIN_RNR_TIMER)
        .union(PATHS)
        .union(A);
    &[
        (Reset, Init, WHERE.union(A), NONE),
        (Init, Init, NONE, WHERE.union(A)),
        (Init, Rtr, RECEIVER, QpAttrMask::ALT_PATH.union(A).union(QpAttrMask::PKEY_INDEX)),
        (Rtr, Rts, SENDER, RUNNING),
        (Rts, Rts, NONE, RUNNING),
        (Rts, Sqd, NONE, QpAttrMask::EN_SQD_ASYNC_NOTIFY),
        (Sqd, Rts, NONE, RUNNING),
        (Sqd, Sqd, NONE, DRAINED),
        (Sqe, Rts, NONE, QpAttrMask::CUR_STATE.union(A)),
    ]
};

impl QpState {
    /// Every state, in the order of their numbers.
    pub const ALL: [Self; 7] =
        [Self::Reset, Self::Init, Self::Rtr, Self::Rts, Self::Sqd, Self::Sqe, Self::Err];

    /// What going from here to `to` takes; `None` if that is no legal change. Anything goes to RESET, and
    /// anything but RESET to ERR.
    #[must_use]
    pub fn rule(self, to: Self) -> Option<Rule> {
        let bare = Rule { required: QpAttrMask::empty(), optional: QpAttrMask::empty() };
        match to {
            Self::Reset => Some(bare),
            Self::Err => (self != Self::Reset).then_some(bare),
            _ => RULES
                .iter()
                .find(|rule| (rule.0, rule.1) == (self, to))
                .map(|&(_, _, required, optional)| Rule { required, optional }),
        }
    }

    /// Whether post_send takes requests (Q3).
    #[must_use]
    pub const fn takes_sends(self) -> bool {
        matches!(self, Self::Rts | Self::Sqd | Self::Err)
    }

    /// Whether post_recv takes requests (Q3).
    #[must_use]
    pub const fn takes_recvs(self) -> bool {
        !matches!(self, Self::Reset)
    }

    /// Whether messages of the peer are taken.
    #[must_use]
    pub const fn receives(self) -> bool {
        matches!(self, Self::Rtr | Self::Rts | Self::Sqd | Self::Sqe)
    }

    /// The state of this number; what is no state is ERR, in which a queue pair does no harm.
    pub(crate) const fn from_bits(bits: u32) -> Self {
        match bits {
            0 => Self::Reset,
            1 => Self::Init,
            2 => Self::Rtr,
            3 => Self::Rts,
            4 => Self::Sqd,
            5 => Self::Sqe,
            _ => Self::Err,
        }
    }
}

impl fmt::Display for QpState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reset => "RESET",
            Self::Init => "INIT",
            Self::Rtr => "RTR",
            Self::Rts => "RTS",
            Self::Sqd => "SQD",
            Self::Sqe => "SQE",
            Self::Err => "ERR",
        })
    }
}
