//! Bringing a queue pair from RESET to RTS with usual attributes.

use cq_core::setup::{Access, QpAttrMask, QpType};

use crate::api::attr::ModifyError;
use crate::api::attr::QpAttr;
use crate::api::qp::QueuePair;
use crate::api::state::QpState;

/// What only a reliable connection is given.
const RELIABLE: QpAttrMask = QpAttrMask::MAX_DEST_RD_ATOMIC
    .union(QpAttrMask::MIN_RNR_TIMER)
    .union(QpAttrMask::TIMEOUT)
    .union(QpAttrMask::RETRY_CNT)
    .union(QpAttrMask::RNR_RETRY)
    .union(QpAttrMask::MAX_QP_RD_ATOMIC);

impl QueuePair {
    /// Connects to the queue pair with this number, from RESET to RTS: the peer may WRITE, READ and use
    /// atomics, as far as the memory regions and the kind of connection allow it. Sends of a reliable
    /// connection wait for receives as long as it takes, and half a second for the peer to be connected,
    /// too; those of an unreliable one wait for nothing.
    ///
    /// # Errors
    /// It is not in RESET, the number is none, or it is for datagrams ([`activate`](Self::activate)).
    pub fn connect(&mut self, peer: u32) -> Result<(), ModifyError> {
        let (init, rtr, rts) = (QpAttr::init(Access::REMOTE), QpAttr::rtr(peer), QpAttr::rts());
        let steps = match self.qp_type() {
            QpType::Uc => {
                [init.access(Access::REMOTE_WRITE), rtr.without(RELIABLE), rts.without(RELIABLE)]
            }
            QpType::Rc | QpType::Ud => [init, rtr, rts],
        };
        steps.iter().try_for_each(|step| self.modify(step))
    }

    /// Makes a queue pair of datagrams ready, from RESET to RTS: it takes those that carry `qkey`.
    ///
    /// # Errors
    /// It is not in RESET, or is a connection. It is left where the step that failed found it.
    pub fn activate(&mut self, qkey: u32) -> Result<(), ModifyError> {
        let steps = [
            QpAttr::to(QpState::Init).pkey_index(0).port(1).qkey(qkey),
            QpAttr::to(QpState::Rtr),
            QpAttr::to(QpState::Rts).sq_psn(0),
        ];
        steps.iter().try_for_each(|step| self.modify(step))
    }
}
