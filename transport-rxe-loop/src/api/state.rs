//! The states of a queue pair and the changes between them, as data (Q1).
//!
//! ```
//! use transport_rxe_loop::{QpAttrMask, QpState, QpType};
//!
//! let rule = QpState::Reset.rule(QpState::Init, QpType::Ud).unwrap();
//! assert_eq!(rule.required, QpAttrMask::PKEY_INDEX | QpAttrMask::PORT | QpAttrMask::QKEY);
//! assert!(QpState::Reset.rule(QpState::Rts, QpType::Ud).is_none());
//! ```

use cq_core::setup::{QpAttrMask, QpType};

pub use crate::protocol::state::QpState;

/// What a change of state takes along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Attributes that have to be given.
    pub required: QpAttrMask,
    /// Attributes that may be given.
    pub optional: QpAttrMask,
}

/// A change of state, with what it requires and what it allows.
type Change = (QpState, QpState, QpAttrMask, QpAttrMask);

const NONE: QpAttrMask = QpAttrMask::empty();
const WHERE: QpAttrMask = QpAttrMask::PKEY_INDEX.union(QpAttrMask::PORT);
const ACCESS: QpAttrMask = QpAttrMask::ACCESS_FLAGS;
const PATHS: QpAttrMask = QpAttrMask::ALT_PATH.union(QpAttrMask::PATH_MIG_STATE);

/// Every change of a reliable connection that takes attributes, as in `ibv_modify_qp(3)` and, for what
/// is optional, Linux' table. To RESET and to ERR see [`QpState::rule`].
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

/// What connecting takes of every connection.
const TO_PEER: QpAttrMask = QpAttrMask::AV
    .union(QpAttrMask::PATH_MTU)
    .union(QpAttrMask::DEST_QPN)
    .union(QpAttrMask::RQ_PSN);
/// What connecting allows.
const AT_PEER: QpAttrMask = QpAttrMask::ALT_PATH.union(ACCESS).union(QpAttrMask::PKEY_INDEX);

/// The same of an unreliable connection, which has no timers, and no READs and atomics.
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

/// The same of datagrams, which have no peer, and a queue key instead of rights.
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
    /// What going from here to `to` takes of a queue pair of this type; `None` if that is no legal change.
    /// Anything goes to RESET, and anything but RESET to ERR.
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
