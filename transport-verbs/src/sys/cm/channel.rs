//! Event channels, their events, and the identifiers that come with connection requests.

#![allow(unsafe_code)]

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr::{self, NonNull};

use cq_verbs::cm::{CmEvent, ConnParam, EventKind, Status};
use rdma_sys::rdma_cm_event_type::RDMA_CM_EVENT_CONNECT_REQUEST;
use rdma_sys::{
    rdma_ack_cm_event, rdma_cm_event, rdma_cm_id, rdma_create_event_channel,
    rdma_destroy_event_channel, rdma_destroy_id, rdma_event_channel, rdma_get_cm_event,
};

use super::super::check_errno as check;
use super::super::object::Object;

/// An identifier that is destroyed before its channel is.
pub type RawId = Object<rdma_cm_id>;

/// A channel whose descriptor does not block.
#[derive(Debug)]
pub struct Channel(Object<rdma_event_channel>);

impl Channel {
    /// Opens one.
    pub fn new() -> io::Result<Self> {
        unsafe extern "C" fn destroy(raw: *mut rdma_event_channel) -> c_int {
            // SAFETY: guaranteed by the caller.
            unsafe { rdma_destroy_event_channel(raw) };
            0
        }
        // SAFETY: the identifier that speaks through it is destroyed before.
        let channel = Self(unsafe { Object::new(rdma_create_event_channel(), destroy, check)? });
        rustix::io::ioctl_fionbio(&channel, true)?;
        Ok(channel)
    }

    /// As librdmacm names it.
    pub const fn as_ptr(&self) -> *mut rdma_event_channel {
        self.0.raw()
    }

    /// Takes an event, if there is one, and the identifier that a connection request brings.
    pub fn take(&mut self) -> io::Result<Option<(CmEvent, Option<RawId>)>> {
        let mut raw = ptr::null_mut();
        // SAFETY: the channel is open, and `raw` outlives the call.
        match check(unsafe { rdma_get_cm_event(self.as_ptr(), &mut raw) }) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error),
        }
        let Some(raw) = NonNull::new(raw) else { return Ok(None) };
        // SAFETY: the event has just been taken.
        let taken = unsafe { copy(raw) };
        // SAFETY: it was taken once, and is acknowledged once; nothing of it is used any more.
        unsafe { rdma_ack_cm_event(raw.as_ptr()) };
        Ok(Some(taken))
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is open as long as the channel is.
        unsafe { BorrowedFd::borrow_raw((*self.as_ptr()).fd) }
    }
}

/// The content of an event, and the identifier that a connection request brings.
///
/// # Safety
/// The event was taken and not acknowledged, and this is called for it once.
unsafe fn copy(event: NonNull<rdma_cm_event>) -> (CmEvent, Option<RawId>) {
    // SAFETY: the event is alive until it is acknowledged.
    let raw = unsafe { event.as_ref() };
    // SAFETY: librdmacm writes zeros first, and identifiers for connections have no other parameters.
    let conn = unsafe { &raw.param.conn };
    let private_data = match conn.private_data.is_null() {
        true => Vec::new(),
        // SAFETY: librdmacm keeps this many bytes with the event.
        false => unsafe {
            std::slice::from_raw_parts(conn.private_data.cast::<u8>(), conn.private_data_len.into())
        }
        .to_vec(),
    };
    let param = ConnParam::new(conn.qp_num, private_data)
        .srq(conn.srq != 0)
        .responder_resources(conn.responder_resources)
        .initiator_depth(conn.initiator_depth)
        .flow_control(conn.flow_control != 0)
        .retry_count(conn.retry_count)
        .rnr_retry_count(conn.rnr_retry_count);
    let mut copied = CmEvent::new(EventKind(raw.event), Status(raw.status));
    copied.param = param;
    let is_request = raw.event == RDMA_CM_EVENT_CONNECT_REQUEST;
    // SAFETY: a request's identifier is who takes the event's to destroy; no other's is taken charge of.
    let request = is_request.then(|| unsafe { Object::new(raw.id, rdma_destroy_id, check) });
    (copied, request.and_then(Result::ok))
}
