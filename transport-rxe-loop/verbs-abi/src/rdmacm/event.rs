//! Events: `rdma_get_cm_event(3)`. An event of an identifier that has a queue pair is told
//! once the queue pair has followed it: an answer connects it, a rejection fails it.

use std::mem::offset_of;
use std::os::fd::RawFd;
use std::ptr;

use cq_verbs::cm::{CmEvent, EventKind, Status};
use cq_verbs::setup::{AddressVector, QpState};
use transport_rxe_loop::cm::{EventChannel, IdEvent};

use crate::ah;
use crate::errno::Errno;
use crate::raw::cm::{Data, wait_for_signal, wait_readable};
use crate::raw::{Out, Slot};
use crate::rdmacm::channel::descriptor;
use crate::rdmacm::id::{Id, Request, is_datagram, named, qp_of};
use crate::rdmacm::objects::{CHANNELS, Channel, EVENTS, Taken};
use crate::rdmacm::{address, make, qp};
use crate::sys::*;
use crate::wait::{Look, until_found_by};

/// `rdma_get_cm_event(3)`. -1 with EINVAL, ENOENT: no channel, no buffer. EAGAIN: none, and the descriptor does not block.
/// EINTR: a signal. EBADF, EINVAL: the program has closed the descriptor. ENOMEM: too many events that are not acknowledged.
///
/// What the system refuses for a request is told by EMFILE, ENFILE, ENOBUFS, ENOMEM or ENOSPC. A request for whose connection
/// there is no descriptor waits, and the next call tries again. One that was taken is gone, and its peer is rejected: where
/// there is no channel for its synchronous identifier, and where there is no place for its identifier, or for the event.
pub fn get_cm_event(
    channel: *const rdma_event_channel,
    event: Out<'_, *mut rdma_cm_event>,
) -> Result<(), Errno> {
    event.check()?;
    let slot = CHANNELS.find(channel)?;
    event.put(next(slot)?)
}

/// The next event of a channel. A thread that waits at a channel that is destroyed is woken by a signal only, as in librdmacm,
/// whose call has the file open; so is one that comes later. Programs rely on it, such as rping, which destroys the channel
/// and ends while its thread waits.
pub fn next(channel: &'static Slot<Channel>) -> Result<*mut rdma_cm_event, Errno> {
    const NEVER: RawFd = -1;
    let is_its_own = |why| [libc::EINTR, libc::EAGAIN].map(Errno::of).contains(&why);
    match until_found_by(|| look(channel), wait_readable) {
        Err(why) if !is_its_own(why) && channel.with(|_| ()).is_err() => {
            until_found_by(|| Ok(Look::Nothing(NEVER)), wait_for_signal)
        }
        found => found,
    }
}

fn look(channel: &'static Slot<Channel>) -> Result<Look<*mut rdma_cm_event>, Errno> {
    loop {
        match channel.with(|taken_from| take(channel, &taken_from.0))?? {
            None => return Ok(Look::Nothing(descriptor(channel))),
            Some(taken) => {
                if let Some(event) = tell(taken)? {
                    return Ok(Look::Found(event));
                }
            }
        }
    }
}

/// An event that was taken from a channel, with the identifiers that it names.
struct Named {
    /// Whose it is, counted as one that waits for its acknowledgement.
    of: &'static Slot<Id>,
    /// What a request brings.
    new: Option<&'static Slot<Id>>,
    event: CmEvent,
    qkey: u32,
    arg: u64,
}

/// Takes the next event of an identifier that is not being destroyed. Its channel is locked: [moving](make::migrate_id) an
/// identifier sees all that were taken. An event of a request's identifier comes once the request is acknowledged, or accepted:
/// no other thread gets it before the program knows whose it is.
fn take(slot: &'static Slot<Channel>, channel: &EventChannel) -> Result<Option<Named>, Errno> {
    while let Some(IdEvent { id, event, qkey, request, arg, .. }) = channel.take_held()? {
        let Some(of) = named(id) else { continue };
        match request.map(|request| make::requested(of, slot, request)).transpose() {
            Ok(new) => return Ok(Some(Named { of, new, event, qkey, arg })),
            Err(errno) => give_up(of, errno)?,
        }
    }
    Ok(None)
}

/// An event is not returned. That is right if its identifier is being destroyed.
fn give_up(of: &Slot<Id>, why: Errno) -> Result<(), Errno> {
    let stays = is_there(of);
    of.side().reports.acknowledge(1);
    if stays { Err(why) } else { Ok(()) }
}

/// Whether nobody has begun to destroy it.
fn is_there(id: &Slot<Id>) -> bool {
    id.with(|id| id.cm.is_some()).unwrap_or(false)
}

/// Gives an event a place, once what belongs to it is done; `None` if its identifier is being destroyed.
fn tell(Named { of, new, event, qkey, arg }: Named) -> Result<Option<*mut rdma_cm_event>, Errno> {
    let told = followed(of, event).and_then(|event| insert(of, new, event, (qkey, arg)));
    told.map(Some).or_else(|errno| {
        if let Some(new) = new {
            // The program does not know it.
            let _ = make::destroy_id(new.face());
        }
        give_up(of, errno).map(|()| None)
    })
}

/// The event of an identifier, which waits for its acknowledgement: of a request, that is the listener, and not the new one.
fn insert(
    of: &'static Slot<Id>,
    new: Option<&'static Slot<Id>>,
    event: CmEvent,
    (qkey, arg): (u32, u64),
) -> Result<*mut rdma_cm_event, Errno> {
    let (id, listener) = (new.unwrap_or(of), new.map(|_| of));
    let data = Data::new(&event.param.private_data);
    let param = match (event.kind.0, is_datagram(id)) {
        (RDMA_CM_EVENT_USER, _) => rdma_cm_event_param { conn: own_param(&event, &data, arg) },
        (_, true) => rdma_cm_event_param { ud: ud_param(&event, &data, qkey)? },
        (_, false) => rdma_cm_event_param { conn: conn_param(&event, &data) },
    };
    let public = rdma_cm_event {
        id: id.face(),
        listen_id: listener.map_or(ptr::null_mut(), Slot::face),
        event: event.kind.0,
        status: event.status.0,
        param,
    };
    let taken = Taken { private_data: data, of, request: new.and_then(Request::of) };
    Ok(EVENTS.insert(taken, |_| public)?.face())
}

/// The event as the program gets it: its queue pair has followed it.
fn followed(id: &'static Slot<Id>, mut event: CmEvent) -> Result<CmEvent, Errno> {
    let has_qp = !qp_of(id).is_null();
    match event.kind {
        EventKind::ADDR_RESOLVED => address::tell_addresses(id, true)?,
        EventKind::ROUTE_RESOLVED => address::tell_path(id)?,
        EventKind::CONNECT_RESPONSE if has_qp => {
            let connected = qp::enter(id, QpState::RTR, None)
                .and_then(|()| qp::enter(id, QpState::RTS, None))
                .and_then(|()| id.with(|id| Ok(id.cm()?.establish()?))?);
            let (kind, status) = match connected {
                Ok(()) => (EventKind::ESTABLISHED, 0),
                Err(errno) if !is_there(id) => return Err(errno),
                Err(errno) => {
                    // No other event follows.
                    qp::fail_and_reject(id);
                    (EventKind::CONNECT_ERROR, -errno.number())
                }
            };
            (event.kind, event.status) = (kind, Status(status));
            return Ok(event);
        }
        EventKind::REJECTED if has_qp => qp::fail(id),
        _ => {}
    }
    Ok(event)
}

fn conn_param(event: &CmEvent, data: &Data) -> rdma_conn_param {
    let (param, (private_data, private_data_len)) = (&event.param, data.parts());
    rdma_conn_param {
        private_data,
        private_data_len,
        responder_resources: param.responder_resources,
        initiator_depth: param.initiator_depth,
        flow_control: param.flow_control.into(),
        retry_count: param.retry_count,
        rnr_retry_count: param.rnr_retry_count,
        srq: param.srq.into(),
        qp_num: param.qp_num,
    }
}

/// The argument of the program's own event: newer headers have a number in the union, where its members begin with a pointer.
fn own_param(event: &CmEvent, data: &Data, arg: u64) -> rdma_conn_param {
    const _: () = assert!(offset_of!(rdma_conn_param, private_data) == 0);
    let private_data = ptr::without_provenance(arg as usize);
    rdma_conn_param { private_data, ..conn_param(event, data) }
}

/// How the peer of a datagram service is reached.
fn ud_param(event: &CmEvent, data: &Data, qkey: u32) -> Result<rdma_ud_param, Errno> {
    let port = address::of_device()?;
    let ((private_data, private_data_len), qp_num) = (data.parts(), event.param.qp_num);
    let ah_attr = ah::attr(&AddressVector::new(&port, port.gid, port.lid));
    Ok(rdma_ud_param { private_data, private_data_len, ah_attr, qp_num, qkey })
}

#[cfg(test)]
mod tests;
