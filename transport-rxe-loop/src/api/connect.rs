//! [`QueuePair::connect`] and [`QueuePair::activate`]: from RESET to RTS with usual attributes.

use cq_verbs::setup::{Access, Endpoint, ModifyError, Port, QpAttr, QpState, QpType};

use crate::api::attr::MAX_RD_ATOMIC;
use crate::api::qp::QueuePair;

impl QueuePair {
    /// What the peer has to know to [connect](Self::connect) to this queue pair. The first packet is number 0.
    #[must_use]
    pub fn endpoint(&self, port: &Port) -> Endpoint {
        end(port, self.number())
    }

    /// Connects to the queue pair of this endpoint: goes from RESET to RTS. The peer may WRITE, READ and use atomics,
    /// as far as the memory regions and the type of connection allow. Sends of a reliable connection wait for receives
    /// without limit, and half a second for the peer to connect; those of an unreliable connection do not wait. Each side
    /// may have 16 READs and atomics outstanding, or as many as the peer answers. Both sides connect, in any order, before
    /// either sends.
    ///
    /// # Errors
    /// The queue pair is not in RESET, the endpoint is invalid, or the type is UD ([`activate`](Self::activate)). It
    /// stays in the state before the step that failed.
    pub fn connect(&mut self, port: &Port, peer: &Endpoint) -> Result<(), ModifyError> {
        let access = match self.qp_type() {
            QpType::UC => Access::REMOTE_WRITE,
            _ => Access::REMOTE,
        };
        let steps = [
            QpAttr::init(port, access),
            QpAttr::rtr(port, peer).max_dest_rd_atomic(MAX_RD_ATOMIC),
            QpAttr::rts().max_rd_atomic(MAX_RD_ATOMIC.min(peer.responder_resources)),
        ];
        let unreliable = self.qp_type() == QpType::UC;
        steps.into_iter().try_for_each(|step| {
            self.modify(&if unreliable { step.for_type(QpType::UC) } else { step })
        })
    }

    /// [Connects](Self::connect) to the queue pair with this number. A fabric has one port, so that the number is all
    /// that there is to know. Only here: on other transports a number is not enough.
    ///
    /// # Errors
    /// As for [`connect`](Self::connect).
    pub fn connect_to(&mut self, peer: u32) -> Result<(), ModifyError> {
        let port = self.claimed.queue.engine.port_attributes();
        self.connect(&port, &end(&port, peer))
    }

    /// Activates a UD queue pair: goes from RESET to RTS. It receives datagrams that carry `qkey`.
    ///
    /// # Errors
    /// The queue pair is not in RESET, or its type is not UD. It stays in the state before the step that failed.
    pub fn activate(&mut self, port: &Port, qkey: u32) -> Result<(), ModifyError> {
        let steps = [
            QpAttr::new().state(QpState::INIT).pkey_index(0).port(port.number).qkey(qkey),
            QpAttr::new().state(QpState::RTR),
            QpAttr::new().state(QpState::RTS).sq_psn(0),
        ];
        steps.iter().try_for_each(|step| self.modify(step))
    }
}

/// The end that is a queue pair at a port of the device.
const fn end(port: &Port, qp_num: u32) -> Endpoint {
    let &Port { lid, gid, mtu, .. } = port;
    Endpoint::new(qp_num).psn(0).lid(lid).gid(gid).mtu(mtu).responder_resources(MAX_RD_ATOMIC)
}
