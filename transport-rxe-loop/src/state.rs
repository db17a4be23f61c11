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

pub use crate::protocol::state::QpState;

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
}
