//! The states of a queue pair and the transitions between them.

use core::fmt;

use super::{QpAttrMask, QpType};
use crate::foreign_number;

foreign_number! {
    /// `enum ibv_qp_state`: the state of a queue pair ([Q1](crate::contract#q1)). A device writes it, so any number is
    /// legal ([C3](crate::contract#c3)).
    ///
    /// ```
    /// use cq_core::setup::{QpAttrMask, QpState, QpType};
    ///
    /// assert!(QpState::INIT.takes_recvs() && !QpState::INIT.receives());
    /// let rule = QpState::RESET.rule(QpState::INIT, QpType::Ud).unwrap();
    /// assert_eq!(rule.required, QpAttrMask::PKEY_INDEX | QpAttrMask::PORT | QpAttrMask::QKEY);
    /// assert!(QpState::RESET.rule(QpState::RTS, QpType::Ud).is_none());
    /// assert_eq!(QpState(99).to_string(), "an unknown state");
    /// ```
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
    QpState {
        /// New, or reset: accepts no requests.
        RESET = 0, "RESET";
        /// Accepts receives.
        INIT = 1, "INIT";
        /// Ready to receive.
        RTR = 2, "RTR";
        /// Ready to send as well.
        RTS = 3, "RTS";
        /// The send queue is drained. A request that has begun completes: one whose bytes are being moved, or
        /// that waits for its peer. Later ones wait until the queue pair is in RTS again, whenever they were
        /// posted; receives continue.
        SQD = 4, "SQD";
        /// The send queue failed: requests behind the failed one are flushed, and no more are accepted until the queue
        /// pair is in RTS again; receives continue. A reliable connection never enters this state: it goes to `ERR`.
        SQE = 5, "SQE";
        /// Failed: everything posted is flushed.
        ERR = 6, "ERR";
    }
}

impl QpState {
    /// Whether post_send accepts requests ([Q3](crate::contract#q3)).
    #[must_use]
    pub const fn takes_sends(self) -> bool {
        matches!(self, Self::RTS | Self::SQD | Self::ERR)
    }

    /// Whether post_recv accepts requests ([Q3](crate::contract#q3)).
    #[must_use]
    pub const fn takes_recvs(self) -> bool {
        !matches!(self, Self::RESET)
    }

    /// Whether the peer's messages are received.
    #[must_use]
    pub const fn receives(self) -> bool {
        matches!(self, Self::RTR | Self::RTS | Self::SQD | Self::SQE)
    }

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
            Self::RESET => Some(bare),
            Self::ERR => (self != Self::RESET).then_some(bare),
            _ => rules
                .iter()
                .find(|rule| (rule.0, rule.1) == (self, to))
                .map(|&(_, _, required, optional)| Rule { required, optional }),
        }
    }
}

impl fmt::Display for QpState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.text().unwrap_or("an unknown state"))
    }
}

/// The attributes of a state transition.
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
        (QpState::RESET, QpState::INIT, WHERE.union(ACCESS), NONE),
        (QpState::INIT, QpState::INIT, NONE, WHERE.union(ACCESS)),
        (QpState::INIT, QpState::RTR, RECEIVER, AT_PEER),
        (QpState::RTR, QpState::RTS, SENDER, RUNNING),
        (QpState::RTS, QpState::RTS, NONE, RUNNING),
        (QpState::RTS, QpState::SQD, NONE, QpAttrMask::EN_SQD_ASYNC_NOTIFY),
        (QpState::SQD, QpState::RTS, NONE, RUNNING),
        (QpState::SQD, QpState::SQD, NONE, DRAINED),
        (QpState::SQE, QpState::RTS, NONE, QpAttrMask::CUR_STATE.union(ACCESS)),
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
    const RUNNING: QpAttrMask = QpAttrMask::CUR_STATE.union(ACCESS).union(PATHS);
    const DRAINED: QpAttrMask =
        QpAttrMask::AV.union(QpAttrMask::PKEY_INDEX).union(PATHS).union(ACCESS);
    &[
        (QpState::RESET, QpState::INIT, WHERE.union(ACCESS), NONE),
        (QpState::INIT, QpState::INIT, NONE, WHERE.union(ACCESS)),
        (QpState::INIT, QpState::RTR, TO_PEER, AT_PEER),
        (QpState::RTR, QpState::RTS, QpAttrMask::SQ_PSN, RUNNING),
        (QpState::RTS, QpState::RTS, NONE, RUNNING),
        (QpState::RTS, QpState::SQD, NONE, QpAttrMask::EN_SQD_ASYNC_NOTIFY),
        (QpState::SQD, QpState::RTS, NONE, RUNNING),
        (QpState::SQD, QpState::SQD, NONE, DRAINED),
        (QpState::SQE, QpState::RTS, NONE, QpAttrMask::CUR_STATE.union(ACCESS)),
    ]
};

/// The same for datagrams, which have no peer, and a queue key instead of rights.
const DATAGRAMS: &[Change] = {
    const KEY: QpAttrMask = QpAttrMask::QKEY;
    const RUNNING: QpAttrMask = QpAttrMask::CUR_STATE.union(KEY);
    &[
        (QpState::RESET, QpState::INIT, WHERE.union(KEY), NONE),
        (QpState::INIT, QpState::INIT, NONE, WHERE.union(KEY)),
        (QpState::INIT, QpState::RTR, NONE, QpAttrMask::PKEY_INDEX.union(KEY)),
        (QpState::RTR, QpState::RTS, QpAttrMask::SQ_PSN, RUNNING),
        (QpState::RTS, QpState::RTS, NONE, RUNNING),
        (QpState::RTS, QpState::SQD, NONE, QpAttrMask::EN_SQD_ASYNC_NOTIFY),
        (QpState::SQD, QpState::RTS, NONE, RUNNING),
        (QpState::SQD, QpState::SQD, NONE, QpAttrMask::PKEY_INDEX.union(KEY)),
        (QpState::SQE, QpState::RTS, NONE, RUNNING),
    ]
};

#[cfg(all(test, not(loom)))]
mod tests;
