//! [`QueuePair::connect`] and [`QueuePair::activate`]: from RESET to RTS with usual attributes.

use cq_core::setup::{Access, QpAttrMask, QpState, QpType};

use crate::api::attr::ModifyError;
use crate::api::attr::QpAttr;
use crate::api::qp::QueuePair;

/// Attributes that only a reliable connection has.
const RELIABLE: QpAttrMask = QpAttrMask::MAX_DEST_RD_ATOMIC
    .union(QpAttrMask::MIN_RNR_TIMER)
    .union(QpAttrMask::TIMEOUT)
    .union(QpAttrMask::RETRY_CNT)
    .union(QpAttrMask::RNR_RETRY)
    .union(QpAttrMask::MAX_QP_RD_ATOMIC);

impl QueuePair {
    /// Connects to the queue pair with this number: goes from RESET to RTS. The peer may WRITE, READ and use atomics,
    /// as far as the memory regions and the type of connection allow. Sends of a reliable connection wait for receives
    /// without limit, and half a second for the peer to connect; those of an unreliable connection do not wait.
    ///
    /// # Errors
    /// The queue pair is not in RESET, the number has more than 24 bits, or the type is UD
    /// ([`activate`](Self::activate)).
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

    /// Activates a UD queue pair: goes from RESET to RTS. It receives datagrams that carry `qkey`.
    ///
    /// # Errors
    /// The queue pair is not in RESET, or its type is not UD. It stays in the state before the step that failed.
    pub fn activate(&mut self, qkey: u32) -> Result<(), ModifyError> {
        let steps = [
            QpAttr::to(QpState::INIT).pkey_index(0).port(1).qkey(qkey),
            QpAttr::to(QpState::RTR),
            QpAttr::to(QpState::RTS).sq_psn(0),
        ];
        steps.iter().try_for_each(|step| self.modify(step))
    }
}
