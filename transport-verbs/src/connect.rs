//! Bringing a queue pair from RESET to RTS with usual attributes.

use crate::qp::QueuePair;
use cq_verbs::setup::{Access, AtomicCap, Endpoint, ModifyError, Port, QpAttr, QpState, QpType};

/// Outstanding READs and atomics, if the device allows so many.
const RD_ATOMIC: u8 = 16;

impl QueuePair {
    /// What the peer has to know to [connect](Self::connect) to this queue pair.
    #[must_use]
    pub fn endpoint(&self, port: &Port) -> Endpoint {
        let (qp_num, psn, responder_resources) =
            (self.number(), self.psn(), self.responder_resources());
        let &Port { lid, gid, mtu, .. } = port;
        Endpoint::new(qp_num)
            .psn(psn)
            .lid(lid)
            .gid(gid)
            .mtu(mtu)
            .responder_resources(responder_resources)
    }

    /// Connects to the queue pair of this endpoint: goes from RESET to RTS. The peer may WRITE, READ and use atomics, as
    /// far as the memory regions, the device and the type of connection allow. Sends of a reliable connection wait for
    /// receives without limit, and for a peer that does not answer for some seconds at most. Each side may have 16 READs
    /// and atomics outstanding, or as many as its device allows and the peer answers. Both sides connect, in any order,
    /// before either sends.
    ///
    /// # Errors
    /// The queue pair is not in RESET, the device has no path to the endpoint, or the type is UD
    /// ([`activate`](Self::activate)). It stays in the state before the step that failed.
    pub fn connect(&mut self, port: &Port, peer: &Endpoint) -> Result<(), ModifyError> {
        let (limits, qp_type) = (self.limits(), self.qp_type());
        let access = match limits.atomic_cap {
            _ if qp_type == QpType::UC => Access::REMOTE_WRITE,
            AtomicCap::NONE => Access::REMOTE_WRITE | Access::REMOTE_READ,
            _ => Access::REMOTE,
        };
        let rtr = QpAttr::rtr(port, peer).max_dest_rd_atomic(self.responder_resources());
        let depth = limits.max_qp_init_rd_atom.min(RD_ATOMIC).min(peer.responder_resources);
        let rts = QpAttr::rts().sq_psn(self.psn()).max_rd_atomic(depth);
        let steps = [QpAttr::init(port, access), rtr, rts].map(|step| step.for_type(qp_type));
        steps.iter().try_for_each(|step| self.modify(step))
    }

    /// How many READs and atomics of the peer it answers at a time.
    fn responder_resources(&self) -> u8 {
        self.limits().max_qp_rd_atom.min(RD_ATOMIC)
    }

    /// Activates a UD queue pair: goes from RESET to RTS. It receives datagrams that carry `qkey`.
    ///
    /// # Errors
    /// The queue pair is not in RESET, or its type is not UD. It stays in the state before the step that failed.
    pub fn activate(&mut self, port: &Port, qkey: u32) -> Result<(), ModifyError> {
        let steps = [
            QpAttr::new().state(QpState::INIT).pkey_index(0).port(port.number).qkey(qkey),
            QpAttr::new().state(QpState::RTR),
            QpAttr::new().state(QpState::RTS).sq_psn(self.psn()),
        ];
        steps.iter().try_for_each(|step| self.modify(step))
    }
}
