//! `rdma_create_ep(3)` and `rdma_get_request(3)`: synchronous identifiers, from an address to a queue pair in one call.

use std::mem::offset_of;

use crate::errno::Errno;
use crate::raw::cm::{Kept, Target, like};
use crate::raw::system::uncancelled;
use crate::raw::{Functions, In, InOut, Out, Slot};
use crate::rdmacm::id::{IDS, Id, channel_of};
use crate::rdmacm::objects::{CHANNELS, EVENT, EVENTS, ack_cm_event, forget_event};
use crate::rdmacm::{connect, event, make, qp, srq};
use crate::sys::*;

/// Where an identifier has its protection domain: of a listener, that of its requests.
const PD: usize = offset_of!(rdma_cm_id, pd);

/// `rdma_create_ep(3)`. Of an active address, the address and the route are resolved, and there is a queue pair if attributes
/// are given; of a passive one, the identifier is bound. Nothing is waited for: the events are there at once, and are nobody
/// else's. -1 with EINVAL: no address, no buffer. As for what it does.
pub fn create_ep(
    id: Out<'_, *mut rdma_cm_id>,
    res: In<'_, rdma_addrinfo>,
    pd: *mut ibv_pd,
    init: InOut<'_, ibv_qp_init_attr>,
    functions: &'static Functions,
) -> Result<(), Errno> {
    id.check()?;
    let target = res.target()?;
    let of = (target.port_space, target.qp_type);
    let slot = make::create(None, std::ptr::null_mut(), of, functions)?;
    match prepare(slot, target, pd, init) {
        Ok(()) => id.put(slot.face()),
        Err(errno) => {
            destroy_ep(slot.face());
            Err(errno)
        }
    }
}

fn prepare(
    slot: &'static Slot<Id>,
    target: Target,
    pd: *mut ibv_pd,
    init: InOut<'_, ibv_qp_init_attr>,
) -> Result<(), Errno> {
    let init = init.changed().ok();
    if target.is_passive {
        let source = target.source.ok_or(Errno::INVAL)?;
        connect::bind(slot, source)?;
        let of_type = |init| ibv_qp_init_attr { qp_type: target.qp_type, ..like(init) };
        let template = init.map(|init| Kept(of_type(init)));
        if !pd.is_null() {
            slot.store(PD, pd);
        }
        return slot.with(|id| id.template = template);
    }
    let destination = target.destination.ok_or(Errno::INVAL)?;
    connect::resolve(slot, target.source, destination)?;
    connect::resolve_route(slot.face(), 0)?;
    slot.with(|id| id.connect_data = target.connect_data)?;
    match init {
        Some(init) => {
            init.qp_type = target.qp_type;
            qp::create_with(slot.face(), pd, init)
        }
        None => Ok(()),
    }
}

/// `rdma_destroy_ep(3)`: with its queue pair and its shared receive queue.
pub fn destroy_ep(id: *const rdma_cm_id) {
    qp::destroy_qp(id);
    srq::destroy_srq(id);
    let _ = make::destroy_id(id);
}

/// `rdma_get_request(3)`. -1 with EINVAL: the listener is not synchronous. As for `rdma_get_cm_event` and `rdma_create_qp`.
/// The status of an event, or EINVAL: it is no request, and stays with the listener until its next call.
pub fn get_request(listen: *const rdma_cm_id, id: Out<'_, *mut rdma_cm_id>) -> Result<(), Errno> {
    id.check()?;
    let slot = IDS.find(listen)?;
    let (is_synchronous, template) = slot.with(|id| {
        let template = id.template.as_ref().map(|Kept(init)| like(init));
        (id.is_synchronous, template)
    })?;
    if !is_synchronous {
        return Err(Errno::INVAL);
    }
    forget_event(slot);
    let face = event::next(CHANNELS.find(channel_of(slot))?)?;
    uncancelled(|| {
        let request = requested(face).inspect_err(|_| slot.store(EVENT, face))?;
        if let Some(mut init) = template {
            let made = qp::create_with(request.face(), slot.load(PD), &mut init);
            made.inspect_err(|_| {
                let _ = make::destroy_id(request.face());
                let _ = ack_cm_event(face);
            })?;
        }
        request.store(EVENT, face);
        id.put(request.face())
    })
}

/// The identifier that an event brings.
fn requested(event: *const rdma_cm_event) -> Result<&'static Slot<Id>, Errno> {
    let taken = EVENTS.find(event)?;
    let kind: rdma_cm_event_type = taken.load(offset_of!(rdma_cm_event, event));
    match taken.load::<c_int>(offset_of!(rdma_cm_event, status)) {
        0 if kind == RDMA_CM_EVENT_CONNECT_REQUEST => {
            IDS.find(taken.load::<*mut rdma_cm_id>(offset_of!(rdma_cm_event, id)))
        }
        0 => Err(Errno::INVAL),
        status => Err(Errno::of(status)),
    }
}

#[cfg(test)]
pub mod tests;
