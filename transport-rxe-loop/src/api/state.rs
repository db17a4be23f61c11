//! The states of a queue pair and the transitions between them, as tables (Q1).

use cq_core::setup::{QpAttrMask, QpType};

pub use crate::protocol::state::QpState;

/// The attributes of a state transition.
///
/// ```
/// use transport_rxe_loop::{QpAttrMask, QpState, QpType};
///
/// let rule = QpState::Reset.rule(QpState::Init, QpType::Ud).unwrap();
/// assert_eq!(rule.required, QpAttrMask::PKEY_INDEX | QpAttrMask::PORT | QpAttrMask::QKEY);
/// assert!(QpState::Reset.rule(QpState::Rts, QpType::Ud).is_none());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The required attributes.
    pub required: QpAttrMask,
    /// The optional attributes.
    pub optional: QpAttrMask,
}

/// A transition, with its required and optional attributes.
type Change = (QpState, QpState, QpAttrMask, QpAttrMask);

const NONE: QpAttrMask = QpAttrMask::empty();
const WHERE: QpAttrMask = QpAttrMask::PKEY_INDEX.union(QpAttrMask::PORT);
const ACCESS: QpAttrMask = QpAttrMask::ACCESS_FLAGS;
const PATHS: QpAttrMask = QpAttrMask::ALT_PATH.union(QpAttrMask::PATH_MIG_STATE);

/// The transitions of a reliable connection, except those to RESET and ERR: required attributes as in
/// `ibv_modify_qp(3)`, optional ones as in Linux' table.
const RELIABLE: &[Change] = {
    use QpState::{Init, Reset, Rtr, Rts, Sqd, Sqe};
    const RUNNING: QpAttrMask =
        QpAttrMask::CUR_STATE.union(ACCESS).union(PATHS).union(QpAttrMask::MIN_RNR_TIMER);
    const RECEIVER: QpAttrMask =
        TO_PEER.union(QpAttrMask::MAX_DEST_RD_ATOMIC).union(QpAttrMask::MIN_RNR_TIMER);
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
        .union(ACCESS);
    &[
        (Reset, Init, WHERE.union(ACCESS), NONE),
        (Init, Init, NONE, WHERE.union(ACCESS)),
        (Init, Rtr, RECEIVER, AT_PEER),
        (Rtr, Rts, SENDER, RUNNING),
        (Rts, Rts, NONE, RUNNING),
        (Rts, Sqd, NONE, QpAttrMask::EN_SQD_ASYNC_NOTIFY),
        (Sqd, Rts, NONE, RUNNING),
        (Sqd, Sqd, NONE, DRAINED),
        (Sqe, Rts, NONE, QpAttrMask::CUR_STATE.union(ACCESS)),
    ]
};

/// Required for INIT→RTR of every connection.
const TO_PEER: QpAttrMask = QpAttrMask::AV
    .union(QpAttrMask::PATH_MTU)
    .union(QpAttrMask::DEST_QPN)
    .union(QpAttrMask::RQ_PSN);
/// Optional for INIT→RTR of every connection.
const AT_PEER: QpAttrMask = QpAttrMask::ALT_PATH.union(ACCESS).union(QpAttrMask::PKEY_INDEX);

/// The same for an unreliable connection, which has no timers, READs and atomics.
const UNRELIABLE: &[Change] = {
    use QpState::{Init, Reset, Rtr, Rts, Sqd, Sqe};
    const RUNNING: QpAttrMask = QpAttrMask::CUR_STATE.union(ACCESS).union(PATHS);
    const DRAINED: QpAttrMask =
        QpAttrMask::AV.union(QpAttrMask::PKEY_INDEX).union(PATHS).union(ACCESS);
    &[
        (Reset, Init, WHERE.union(ACCESS), NONE),
        (Init, Init, NONE, WHERE.union(ACCESS)),
        (Init, Rtr, TO_PEER, AT_PEER),
        (Rtr, Rts, QpAttrMask::SQ_PSN, RUNNING),
        (Rts, Rts, NONE, RUNNING),
        (Rts, Sqd, NONE, QpAttrMask::EN_SQD_ASYNC_NOTIFY),
        (Sqd, Rts, NONE, RUNNING),
        (Sqd, Sqd, NONE, DRAINED),
        (Sqe, Rts, NONE, QpAttrMask::CUR_STATE.union(ACCESS)),
    ]
};

/// The same for datagrams, which have no peer, and a queue key instead of rights.
const DATAGRAMS: &[Change] = {
    use QpState::{Init, Reset, Rtr, Rts, Sqd, Sqe};
    const KEY: QpAttrMask = QpAttrMask::QKEY;
    const RUNNING: QpAttrMask = QpAttrMask::CUR_STATE.union(KEY);
    &[
        (Reset, Init, WHERE.union(KEY), NONE),
        (Init, Init, NONE, WHERE.union(KEY)),
        (Init, Rtr, NONE, QpAttrMask::PKEY_INDEX.union(KEY)),
        (Rtr, Rts, QpAttrMask::SQ_PSN, RUNNING),
        (Rts, Rts, NONE, RUNNING),
        (Rts, Sqd, NONE, QpAttrMask::EN_SQD_ASYNC_NOTIFY),
        (Sqd, Rts, NONE, RUNNING),
        (Sqd, Sqd, NONE, QpAttrMask::PKEY_INDEX.union(KEY)),
        (Sqe, Rts, NONE, RUNNING),
    ]
};

impl QpState {
    /// The attributes of the transition from this state to `to`, for a queue pair of this type; `None` if there is no
    /// such transition. Every state has a transition to RESET, and every state but RESET has one to ERR.
    #[must_use]
    pub fn rule(self, to: Self, of: QpType) -> Option<Rule> {
        let bare = Rule { required: NONE, optional: NONE };
        let rules = match of {
            QpType::Rc => RELIABLE,
            QpType::Uc => UNRELIABLE,
            QpType::Ud => DATAGRAMS,
        };
        match to {
            Self::Reset => Some(bare),
            Self::Err => (self != Self::Reset).then_some(bare),
            _ => rules
                .iter()
                .find(|rule| (rule.0, rule.1) == (self, to))
                .map(|&(_, _, required, optional)| Rule { required, optional }),
        }
    }
}
