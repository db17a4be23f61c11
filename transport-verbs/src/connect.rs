//! Bringing a queue pair from RESET to RTS with usual attributes.

use cq_core::setup::{Access, QpAttrMask, QpState, QpType};

use crate::attr::QpAttr;
use crate::attributes::AtomicCap;
use crate::endpoint::Endpoint;
use crate::error::ModifyError;
use crate::port::Port;
use crate::qp::QueuePair;

/// READs and atomics under way, where the device allows so many.
const RD_ATOMIC: u8 = 16;

/// What only a reliable connection is given.
const RELIABLE: QpAttrMask = QpAttrMask::MAX_DEST_RD_ATOMIC
    .union(QpAttrMask::MIN_RNR_TIMER)
    .union(QpAttrMask::TIMEOUT)
    .union(QpAttrMask::RETRY_CNT)
    .union(QpAttrMask::RNR_RETRY)
    .union(QpAttrMask::MAX_QP_RD_ATOMIC);

impl QueuePair {
    /// What the other side has to know to [connect](Self::connect) to it.
    #[must_use]
    pub fn endpoint(&self, port: &Port) -> Endpoint {
        let (qp_num, psn) = (self.number(), self.psn());
        Endpoint { qp_num, psn, lid: port.lid(), gid: port.gid(), mtu: port.mtu() }
    }

    /// Connects to the queue pair of this endpoint, from RESET to RTS. The peer may WRITE, READ and use
    /// atomics as far as the memory regions, the device and the kind of connection allow it. Sends of a
    /// reliable connection wait for receives as long as it takes, and some seconds at most for a peer that
    /// does not answer. Either side may have sixteen READs and atomics under way, or as many as its device
    /// allows. Both sides connect, in any order, before either sends.
    ///
    /// # Errors
    /// It is not in RESET, the peer's address leads nowhere, or it is for datagrams
    /// ([`activate`](Self::activate)). It is left where the step that failed found it.
    pub fn connect(&mut self, port: &Port, peer: &Endpoint) -> Result<(), ModifyError> {
        let limits = self.limits();
        let access = match limits.atomic_cap {
            AtomicCap::NONE => Access::REMOTE_WRITE | Access::REMOTE_READ,
            _ => Access::REMOTE,
        };
        let init = QpAttr::init(port, access);
        let rtr = QpAttr::rtr(port, peer).max_dest_rd_atomic(limits.max_qp_rd_atom.min(RD_ATOMIC));
        let rts = QpAttr::rts()
            .sq_psn(self.psn())
            .max_rd_atomic(limits.max_qp_init_rd_atom.min(RD_ATOMIC));
        let steps = match self.qp_type() {
            QpType::Uc => {
                [init.access(Access::REMOTE_WRITE), rtr.without(RELIABLE), rts.without(RELIABLE)]
            }
            _ => [init, rtr, rts],
        };
        steps.iter().try_for_each(|step| self.modify(step))
    }

    /// Makes a queue pair of datagrams ready, from RESET to RTS: it takes those that carry `qkey`.
    ///
    /// # Errors
    /// It is not in RESET, or is a connection. It is left where the step that failed found it.
    pub fn activate(&mut self, port: &Port, qkey: u32) -> Result<(), ModifyError> {
        let steps = [
            QpAttr::to(QpState::INIT).pkey_index(0).port(port.number()).qkey(qkey),
            QpAttr::to(QpState::RTR),
            QpAttr::to(QpState::RTS).sq_psn(self.psn()),
        ];
        steps.iter().try_for_each(|step| self.modify(step))
    }
}
