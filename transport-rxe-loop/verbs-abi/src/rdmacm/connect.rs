//! The calls of identifiers, from an address to the end of the connection. Of an identifier without a channel, which is
//! synchronous, each returns once its event has come, and leaves that in `rdma_cm_id::event`.

use std::mem::offset_of;
use std::net::SocketAddr;

use cq_verbs::cm::{ConnParam, EventKind, Status};
use cq_verbs::setup::QpState;
use transport_rxe_loop::cm::{CmId, IdOption};

use crate::errno::Errno;
use crate::modify;
use crate::raw::cm::{OptionValue, PrivateData, SockAddr};
use crate::raw::system::uncancelled;
use crate::raw::{In, InOut, Out, Slot};
use crate::rdmacm::event;
use crate::rdmacm::id::{IDS, Id, channel_of, is_datagram, qp_of};
use crate::rdmacm::objects::{CHANNELS, EVENT, EVENTS, forget_event};
use crate::rdmacm::{address, qp};
use crate::sys::*;

/// A step of an identifier's connection.
fn step(
    slot: &'static Slot<Id>,
    step: impl FnOnce(&CmId) -> Result<(), cq_verbs::setup::Errno>,
) -> Result<(), Errno> {
    uncancelled(|| slot.with(|id| Ok(step(id.cm()?)?))?)
}

/// Of a synchronous identifier: waits for the event of its last call. A thread may be cancelled meanwhile: its callers have
/// nothing that is to be dropped, and do what comes before it [uncancelled].
///
/// # Errors
/// ECONNREFUSED: it was rejected. What the event says. As for `rdma_get_cm_event`.
pub fn complete(slot: &'static Slot<Id>) -> Result<(), Errno> {
    if !slot.with(|id| id.is_synchronous)? {
        return Ok(());
    }
    forget_event(slot);
    let face = event::next(CHANNELS.find(channel_of(slot))?)?;
    slot.store(EVENT, face);
    let taken = EVENTS.find(face)?;
    let status: c_int = taken.load(offset_of!(rdma_cm_event, status));
    let kind: rdma_cm_event_type = taken.load(offset_of!(rdma_cm_event, event));
    match status {
        0 => Ok(()),
        _ if kind == RDMA_CM_EVENT_REJECTED => Err(Errno::of(libc::ECONNREFUSED)),
        // Below 0 it is an errno, above a reason of the connection manager's.
        status => Err(Errno::of(status.wrapping_abs())),
    }
}

/// `rdma_bind_addr(3)`. -1 with EADDRNOTAVAIL, EADDRINUSE. EINVAL, ENOENT: no identifier, no address, one of another family
/// than IPv4's and IPv6's, or it is bound. EMFILE, ENFILE, EAFNOSUPPORT: the system can't be asked whether it has the address.
pub fn bind_addr(id: *const rdma_cm_id, addr: SockAddr<'_>) -> Result<(), Errno> {
    bind(IDS.find(id)?, addr.given()?)
}

/// Does what `rdma_bind_addr` does.
pub fn bind(slot: &'static Slot<Id>, addr: SocketAddr) -> Result<(), Errno> {
    step(slot, |id| id.bind(addr))?;
    address::tell_addresses(slot, !addr.ip().is_unspecified())
}

/// `rdma_resolve_addr(3)`. As for `rdma_bind_addr`, with either address; but what no machine has is an event.
pub fn resolve_addr(
    id: *const rdma_cm_id,
    src_addr: SockAddr<'_>,
    dst_addr: SockAddr<'_>,
    _timeout_ms: c_int,
) -> Result<(), Errno> {
    resolve(IDS.find(id)?, src_addr.optional()?, dst_addr.given()?)
}

/// Does what `rdma_resolve_addr` does.
pub fn resolve(
    slot: &'static Slot<Id>,
    from: Option<SocketAddr>,
    to: SocketAddr,
) -> Result<(), Errno> {
    uncancelled(|| {
        step(slot, |id| id.resolve_addr(from, to))?;
        // The address that was asked for is there even if it is not found.
        address::tell_addresses(slot, false)
    })?;
    complete(slot)
}

/// `rdma_resolve_route(3)`. -1 with EINVAL: the address is not resolved. EINVAL, ENOENT: no identifier.
pub fn resolve_route(id: *const rdma_cm_id, _timeout_ms: c_int) -> Result<(), Errno> {
    let slot = IDS.find(id)?;
    step(slot, CmId::resolve_route)?;
    complete(slot)
}

/// `rdma_write_cm_event(3)`. -1 with EINVAL: another event than RDMA_CM_EVENT_USER. EINVAL, ENOENT: no identifier.
pub fn write_cm_event(
    id: *const rdma_cm_id,
    event: rdma_cm_event_type,
    status: c_int,
    arg: u64,
) -> Result<(), Errno> {
    let slot = IDS.find(id)?;
    if event != RDMA_CM_EVENT_USER {
        return Err(Errno::INVAL);
    }
    report(slot, event, (status, arg))
}

/// Queues an event of an identifier's own.
pub fn report(
    slot: &'static Slot<Id>,
    event: rdma_cm_event_type,
    (status, arg): (c_int, u64),
) -> Result<(), Errno> {
    step(slot, |id| id.queue_event(EventKind(event), Status(status), arg))
}

/// `rdma_listen(3)`. -1 with EADDRINUSE. EINVAL: it listens, or is connected. EINVAL, ENOENT: no identifier. One that was bound by
/// this stays bound if it fails.
pub fn listen(id: *const rdma_cm_id, backlog: c_int) -> Result<(), Errno> {
    let slot = IDS.find(id)?;
    let listens = step(slot, |id| id.listen(backlog));
    // It is bound even if it can't listen.
    address::tell_addresses(slot, false).and(listens)
}

/// The parameters of a connection, with the queue pair's number, where the identifier has one.
fn param<'a>(
    slot: &Slot<Id>,
    given: Option<&rdma_conn_param>,
    private_data: &'a [u8],
) -> ConnParam<&'a [u8]> {
    let (qp_num, srq) = qp::number_and_srq(slot)
        .or_else(|| given.map(|param| (param.qp_num & 0xff_ffff, param.srq != 0)))
        .unwrap_or_default();
    let of_queue_pair = ConnParam::new(qp_num, private_data).srq(srq);
    given.map_or(of_queue_pair.retry_count(7), |param| {
        of_queue_pair
            .responder_resources(param.responder_resources)
            .initiator_depth(param.initiator_depth)
            .flow_control(param.flow_control != 0)
            .retry_count(param.retry_count)
            .rnr_retry_count(param.rnr_retry_count)
    })
}

/// `rdma_connect(3)`. The private data of `rdma_create_ep` comes before that of the call. -1 with EINVAL: the route is not
/// resolved, there are neither parameters nor a queue pair, it was connected before, the private data is too long, or too many
/// READs and atomics. EINVAL, ENOENT: no identifier. If the system refuses something in the middle, the identifier is used up.
pub fn connect(id: *const rdma_cm_id, given: In<'_, rdma_conn_param>) -> Result<(), Errno> {
    let slot = IDS.find(id)?;
    uncancelled(|| {
        let (given, data) = given.parts().unzip();
        if given.is_none() && qp_of(slot).is_null() && !is_datagram(slot) {
            return Err(Errno::INVAL);
        }
        let data = slot.with(|id| [&id.connect_data[..], data.unwrap_or_default()].concat())?;
        let param = param(slot, given, &data);
        step(slot, |id| id.connect(&param))?;
        slot.with(|id| id.connect_data.clear())
    })?;
    complete(slot)
}

/// `rdma_accept(3)`. -1 with EINVAL: the peer has given up, the private data is too long, or too many READs and atomics. A
/// queue pair goes to ERR then, and the peer is rejected; without one nothing has changed. EINVAL, ENOENT: no identifier.
pub fn accept(id: *const rdma_cm_id, given: In<'_, rdma_conn_param>) -> Result<(), Errno> {
    let slot = IDS.find(id)?;
    let is_datagram = is_datagram(slot);
    uncancelled(|| {
        let (given, data) = given.parts().unzip();
        let param = param(slot, given, data.unwrap_or_default());
        let accepted = match is_datagram || qp_of(slot).is_null() {
            true => Ok(()),
            false => qp::answer(slot, &param),
        };
        let accepted = accepted.and_then(|()| step(slot, |id| id.accept(&param)));
        accepted.inspect_err(|_| qp::fail_and_reject(slot))
    })?;
    if is_datagram {
        // No event follows. That of the request is the listener's, which can go then.
        forget_event(slot);
        return Ok(());
    }
    complete(slot)
}

/// `rdma_establish`: of a queue pair that is the program's. -1 with EINVAL: it is the identifier's, or the peer has not
/// answered, or has given up. EINVAL, ENOENT: no identifier.
pub fn establish(id: *const rdma_cm_id) -> Result<(), Errno> {
    let slot = IDS.find(id)?;
    if !qp_of(slot).is_null() {
        return Err(Errno::INVAL);
    }
    step(slot, CmId::establish)
}

/// `rdma_reject(3)`. -1 with EINVAL: there is nothing to reject, or the private data is too long. EINVAL, ENOENT: no
/// identifier.
pub fn reject(id: *const rdma_cm_id, data: PrivateData<'_>, len: u8) -> Result<(), Errno> {
    step(IDS.find(id)?, |id| id.reject(data.bytes(len)))
}

/// `rdma_disconnect(3)`: the queue pair goes to ERR. -1 with EINVAL: it is new, bound or resolved. Where there is no connection, or none any more, the call
/// succeeds, and no event comes. EINVAL, ENOENT: no identifier.
pub fn disconnect(id: *const rdma_cm_id) -> Result<(), Errno> {
    let slot = IDS.find(id)?;
    uncancelled(|| {
        qp::fail(slot);
        step(slot, CmId::disconnect)
    })?;
    complete(slot)
}

/// `rdma_notify(3)`. -1 with EISCONN: it is established. EINVAL: it has not accepted, or another event than
/// IBV_EVENT_COMM_EST. EINVAL, ENOENT: no identifier.
pub fn notify(id: *const rdma_cm_id, event: ibv_event_type) -> Result<(), Errno> {
    match event {
        ibv_event_type::COMM_EST => step(IDS.find(id)?, CmId::notify),
        _ => Err(Errno::INVAL),
    }
}

/// `rdma_init_qp_attr(3)`. -1 with EINVAL: the state needs what the peer has not sent, or no such state; no buffer. EINVAL,
/// ENOENT: no identifier.
pub fn init_qp_attr(
    id: *const rdma_cm_id,
    attr: InOut<'_, ibv_qp_attr>,
    mask: Out<'_, c_int>,
) -> Result<(), Errno> {
    let (slot, attr) = (IDS.find(id)?, attr.changed()?);
    mask.check()?;
    let known = slot.with(|id| Ok::<_, Errno>(id.cm()?.qp_attr(QpState(attr.qp_state))?))??;
    modify::put(&known, attr);
    mask.put(known.mask().bits().cast_signed())
}

/// `rdma_set_option(3)`. -1 with ENOSYS: the device has no such option. EINVAL: no such value, of another size, or not in
/// this state. EINVAL, ENOENT: no identifier.
pub fn set_option(
    id: *const rdma_cm_id,
    level: c_int,
    option: c_int,
    value: OptionValue,
    len: usize,
) -> Result<(), Errno> {
    let slot = IDS.find(id)?;
    let byte = || value.bytes(len).map(u8::from_ne_bytes);
    let number = || value.bytes(len).map(|bytes| c_int::from_ne_bytes(bytes) != 0);
    let option = match (level.cast_unsigned(), option.cast_unsigned()) {
        (RDMA_OPTION_ID, RDMA_OPTION_ID_TOS) => IdOption::Tos(byte()?),
        (RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT) => {
            IdOption::AckTimeout(modify::ack_timeout(byte()?)?)
        }
        (RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR) => IdOption::ReuseAddr(number()?),
        (RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY) => IdOption::AfOnly(number()?),
        _ => return Err(Errno::of(libc::ENOSYS)),
    };
    step(slot, |id| id.set_option(option))
}

#[cfg(test)]
mod cancel_tests;
#[cfg(test)]
mod failure_tests;
#[cfg(test)]
pub mod tests;
