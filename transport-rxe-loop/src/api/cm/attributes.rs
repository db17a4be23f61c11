//! What the connection manager puts into force: the parameters of a connection, and the attributes of its queue pair.

use std::mem::swap;
use std::time::Duration;

use cq_verbs::cm::ConnParam;
use cq_verbs::setup::{
    Access, AckTimeout, AddressVector, Endpoint, Errno, Port, QpAttr, QpState, QpType, RnrTimer,
};

use crate::api::attr::MAX_RD_ATOMIC;
use crate::connections::id::Id;
use crate::protocol::cm::Service;
use crate::protocol::cm::message::{Kind, Message};

/// The queue key of `RDMA_PS_UDP` and `RDMA_PS_IPOIB`: RDMA_UDP_QKEY of <rdma/rdma_cma.h>.
pub const UDP_QKEY: u32 = 0x0123_4567;

/// How long the peer waits before it sends again where there is no receive, as Linux has it: 655.36 ms.
const MIN_RNR_TIMER: RnrTimer = RnrTimer::at_least(Duration::from_micros(655_360));
/// How long an answer may take before a request is sent again, as Linux has it on Ethernet: 2.15 s.
const TIMEOUT: AckTimeout = AckTimeout::at_least(Duration::from_secs(2));

/// The size of the private data of a message, which is padded with zeros. Those of librdmacm on InfiniBand.
pub const fn private_data_size(kind: Kind, service: Service) -> usize {
    match (kind, service) {
        (Kind::Req, Service::Connection) => 56,
        (Kind::Req, Service::Datagram) => 180,
        (Kind::Rep, Service::Connection) => 196,
        (Kind::Rep, Service::Datagram) => 136,
        (Kind::Rej, Service::Connection) => 148,
        (Kind::Rej, Service::Datagram) => 136,
        (Kind::Rtu | Kind::Dreq | Kind::Drep, _) => 0,
    }
}

/// A message with private data.
///
/// # Errors
/// EINVAL: it is too long.
pub fn message(kind: Kind, service: Service, private_data: &[u8]) -> Result<Message, Errno> {
    if private_data.len() > private_data_size(kind, service) {
        return Err(Errno::EINVAL);
    }
    let mut param = ConnParam::default();
    param.private_data = private_data.to_vec();
    Ok(Message { service, param, ..Message::of(kind) })
}

/// A request, or the answer to one, with the parameters of a connection.
///
/// # Errors
/// EINVAL: the private data is too long, or the device does not allow so many READs and atomics.
pub fn parameters(kind: Kind, id: &Id, param: &ConnParam<&[u8]>) -> Result<Message, Errno> {
    let asked = id.peer.as_ref().filter(|_| kind == Kind::Rep).map(|peer| &peer.param);
    let bound = |wanted: u8, asked: Option<u8>| match wanted {
        ConnParam::MOST => Ok(asked.unwrap_or(MAX_RD_ATOMIC).min(MAX_RD_ATOMIC)),
        wanted if wanted > MAX_RD_ATOMIC => Err(Errno::EINVAL),
        wanted => Ok(wanted),
    };
    let message = message(kind, id.service(), param.private_data)?;
    let param = ConnParam::new(param.qp_num, message.param.private_data)
        .srq(param.srq)
        .responder_resources(bound(
            param.responder_resources,
            asked.map(|peer| peer.initiator_depth),
        )?)
        .initiator_depth(bound(param.initiator_depth, asked.map(|peer| peer.responder_resources))?)
        .flow_control(param.flow_control)
        .retry_count(param.retry_count & 7)
        .rnr_retry_count(param.rnr_retry_count & 7);
    Ok(Message { psn: id.psn, qkey: UDP_QKEY, param, ..message })
}

/// The parameters of a peer's message, as an event has them: what the one side starts, the other answers.
pub fn received(message: &Message) -> ConnParam {
    let mut param = message.param.clone();
    param.private_data.resize(private_data_size(message.kind, message.service), 0);
    swap(&mut param.responder_resources, &mut param.initiator_depth);
    param
}

fn of_datagrams(id: &Id, port: &Port, to: QpState) -> Result<QpAttr, Errno> {
    match to {
        QpState::INIT => Ok(QpAttr::new().state(to).pkey_index(0).port(port.number).qkey(UDP_QKEY)),
        QpState::RTR => Ok(QpAttr::new().state(to)),
        QpState::RTS => Ok(QpAttr::new().state(to).sq_psn(id.psn)),
        _ => Err(Errno::EINVAL),
    }
}

/// The attributes with which an identifier's queue pair goes to a state.
///
/// # Errors
/// EINVAL: it needs the peer's, which has not sent them, or has given up.
pub fn of_state(id: &Id, port: &Port, to: QpState) -> Result<QpAttr, Errno> {
    let access = match id.qp_type {
        QpType::RC => Access::REMOTE,
        QpType::UC => Access::REMOTE_WRITE,
        _ => return of_datagrams(id, port, to),
    };
    let peer = id.peer.as_ref().ok_or(Errno::EINVAL);
    let attr = match to {
        QpState::INIT => QpAttr::init(port, access),
        QpState::RTR => {
            let &Message { psn, param: ConnParam { qp_num, initiator_depth, .. }, .. } = peer?;
            let (lid, gid, mtu) = (port.lid, port.gid, port.mtu);
            // With a traffic class it has a global route, which carries that.
            let mut av = AddressVector::new(port, gid, if id.tos == 0 { lid } else { 0 });
            av.route.iter_mut().for_each(|route| route.traffic_class = id.tos);
            QpAttr::rtr(port, &Endpoint::new(qp_num).psn(psn).lid(lid).gid(gid).mtu(mtu))
                .av(av)
                .min_rnr_timer(MIN_RNR_TIMER)
                .max_dest_rd_atomic(initiator_depth.min(MAX_RD_ATOMIC))
        }
        QpState::RTS => {
            let Message { kind, param, .. } = peer?;
            // The passive side tries as often as the request says, the active one as it has said itself.
            let retries = if *kind == Kind::Req { param.retry_count } else { id.retry_count };
            QpAttr::rts()
                .sq_psn(id.psn)
                .timeout(id.ack_timeout.unwrap_or(TIMEOUT))
                .retry_cnt(retries)
                .rnr_retry(param.rnr_retry_count)
                .max_rd_atomic(param.responder_resources.min(MAX_RD_ATOMIC))
        }
        _ => return Err(Errno::EINVAL),
    };
    Ok(attr.for_type(id.qp_type))
}
