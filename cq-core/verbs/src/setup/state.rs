//! The states of a queue pair and the transitions between them.

use cq_core::foreign_number;

use super::{QpAttrMask, QpType};

foreign_number! {
    /// `enum ibv_qp_state`: the state of a queue pair ([Q1](cq_core::contract#q1)). A device writes it, so any number is
    /// legal ([C3](cq_core::contract#c3)).
    ///
    /// ```
    /// use cq_verbs::setup::{QpAttrMask, QpState, QpType};
    ///
    /// assert!(QpState::INIT.takes_recvs() && !QpState::INIT.receives());
    /// let rule = QpState::RESET.rule(QpState::INIT, QpType::UD).unwrap();
    /// assert_eq!(rule.required, QpAttrMask::PKEY_INDEX | QpAttrMask::PORT | QpAttrMask::QKEY);
    /// assert!(QpState::RESET.rule(QpState::RTS, QpType::UD).is_none());
    /// assert_eq!(QpState(99).to_string(), "an unknown state");
    /// ```
    QpState("ibv_qp_state"), "an unknown state" {
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
    /// Whether post_send accepts requests ([Q3](cq_core::contract#q3)).
    #[must_use]
    pub const fn takes_sends(self) -> bool {
        matches!(self, Self::RTS | Self::SQD | Self::ERR)
    }

    /// Whether post_recv accepts requests ([Q3](cq_core::contract#q3)).
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
    /// such transition, or the type is not a [known one](QpType::KNOWN). Every state has a transition to RESET, and every state but RESET has one to ERR.
    #[must_use]
    pub const fn rule(self, to: Self, of: QpType) -> Option<Rule> {
        let by_type = match of {
            QpType::RC => RELIABLE,
            QpType::UC => UNRELIABLE,
            QpType::UD => DATAGRAMS,
            _ => return None,
        };
        let ByType { rights, receiver, at_peer, sender, running, drained, resumed } = by_type;
        let (required, optional) = match (self, to) {
            (Self::RESET, Self::ERR) => return None,
            (_, Self::RESET | Self::ERR) => (NONE, NONE),
            (Self::RESET, Self::INIT) => (WHERE.union(rights), NONE),
            (Self::INIT, Self::INIT) => (NONE, WHERE.union(rights)),
            (Self::INIT, Self::RTR) => (receiver, at_peer),
            (Self::RTR, Self::RTS) => (sender, running),
            (Self::RTS | Self::SQD, Self::RTS) => (NONE, running),
            (Self::RTS, Self::SQD) => (NONE, QpAttrMask::EN_SQD_ASYNC_NOTIFY),
            (Self::SQD, Self::SQD) => (NONE, drained),
            (Self::SQE, Self::RTS) => (NONE, resumed),
            _ => return None,
        };
        Some(Rule { required, optional })
    }
}

/// The attributes of a state transition.
///
/// ```
/// use cq_verbs::setup::{QpAttr, QpAttrMask, QpState, QpType, Rule};
///
/// let attr = QpAttr::new().state(QpState::INIT).port(1);
/// let Rule { required, optional } = QpState::RESET.rule(QpState::INIT, QpType::RC).unwrap();
/// let missing = required.difference(attr.mask());
/// assert_eq!(missing, QpAttrMask::PKEY_INDEX | QpAttrMask::ACCESS_FLAGS);
/// assert!(optional.is_empty());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Rule {
    /// The required attributes.
    pub required: QpAttrMask,
    /// The optional attributes.
    pub optional: QpAttrMask,
}

/// What differs between the transitions of the types: required attributes as in `ibv_modify_qp(3)`, optional ones as in
/// Linux' table.
struct ByType {
    /// What a peer may do: required for RESET→INIT.
    rights: QpAttrMask,
    /// Required for INIT→RTR.
    receiver: QpAttrMask,
    /// Optional for INIT→RTR.
    at_peer: QpAttrMask,
    /// Required for RTR→RTS.
    sender: QpAttrMask,
    /// Optional for RTR→RTS, and for RTS→RTS and SQD→RTS.
    running: QpAttrMask,
    /// Optional for SQD→SQD.
    drained: QpAttrMask,
    /// Optional for SQE→RTS.
    resumed: QpAttrMask,
}

const NONE: QpAttrMask = QpAttrMask::empty();
const WHERE: QpAttrMask = QpAttrMask::PKEY_INDEX.union(QpAttrMask::PORT);
const ACCESS: QpAttrMask = QpAttrMask::ACCESS_FLAGS;
const PATHS: QpAttrMask = QpAttrMask::ALT_PATH.union(QpAttrMask::PATH_MIG_STATE);
const RETRIES: QpAttrMask =
    QpAttrMask::TIMEOUT.union(QpAttrMask::RETRY_CNT).union(QpAttrMask::RNR_RETRY);
const TARGET: QpAttrMask = QpAttrMask::MAX_DEST_RD_ATOMIC.union(QpAttrMask::MIN_RNR_TIMER);
const SENDER: QpAttrMask = RETRIES.union(QpAttrMask::MAX_QP_RD_ATOMIC);
/// What queue pairs of the other types do not take.
pub(super) const ONLY_RELIABLE: QpAttrMask = TARGET.union(SENDER);

/// An unreliable connection has no timers, READs and atomics.
const UNRELIABLE: ByType = ByType {
    rights: ACCESS,
    receiver: QpAttrMask::AV
        .union(QpAttrMask::PATH_MTU)
        .union(QpAttrMask::DEST_QPN)
        .union(QpAttrMask::RQ_PSN),
    at_peer: QpAttrMask::ALT_PATH.union(ACCESS).union(QpAttrMask::PKEY_INDEX),
    sender: QpAttrMask::SQ_PSN,
    running: QpAttrMask::CUR_STATE.union(ACCESS).union(PATHS),
    drained: QpAttrMask::AV.union(QpAttrMask::PKEY_INDEX).union(PATHS).union(ACCESS),
    resumed: QpAttrMask::CUR_STATE.union(ACCESS),
};

const RELIABLE: ByType = ByType {
    receiver: UNRELIABLE.receiver.union(TARGET),
    sender: UNRELIABLE.sender.union(SENDER),
    running: UNRELIABLE.running.union(QpAttrMask::MIN_RNR_TIMER),
    drained: UNRELIABLE.drained.union(QpAttrMask::PORT).union(ONLY_RELIABLE),
    ..UNRELIABLE
};

/// Datagrams have no peer, and a queue key instead of rights.
const DATAGRAMS: ByType = {
    const KEY: QpAttrMask = QpAttrMask::QKEY;
    ByType {
        rights: KEY,
        receiver: NONE,
        at_peer: QpAttrMask::PKEY_INDEX.union(KEY),
        sender: QpAttrMask::SQ_PSN,
        running: QpAttrMask::CUR_STATE.union(KEY),
        drained: QpAttrMask::PKEY_INDEX.union(KEY),
        resumed: QpAttrMask::CUR_STATE.union(KEY),
    }
};
