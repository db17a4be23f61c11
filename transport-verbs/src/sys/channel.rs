//! A completion channel: events are taken here, counted, and acknowledged in batches.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr::{self, NonNull};
use std::sync::Arc;

use cq_core::transport::CqKey;
use rdma_sys::{
    ibv_ack_cq_events, ibv_comp_channel, ibv_cq, ibv_create_comp_channel, ibv_destroy_comp_channel,
    ibv_get_cq_event,
};

use super::context::Context;
use super::reports::Reports;

/// A completion channel; destroyed when its last queue is gone.
#[derive(Debug)]
pub struct Channel {
    raw: NonNull<ibv_comp_channel>,
    context: Arc<Context>,
}

// SAFETY: libibverbs may be called from any thread, with the same channel from several at once.
unsafe impl Send for Channel {}
// SAFETY: as above.
unsafe impl Sync for Channel {}

impl Channel {
    /// Makes one whose descriptor does not block.
    pub fn new(context: &Arc<Context>) -> io::Result<Self> {
        // SAFETY: the context is open.
        let raw = unsafe { ibv_create_comp_channel(context.raw()) };
        let raw = NonNull::new(raw).ok_or_else(io::Error::last_os_error)?;
        let channel = Self { raw, context: Arc::clone(context) };
        rustix::io::ioctl_fionbio(&channel, true)?;
        Ok(channel)
    }

    /// As libibverbs names it.
    pub const fn raw(&self) -> *mut ibv_comp_channel {
        self.raw.as_ptr()
    }

    /// Of which device.
    pub const fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Takes an event, if there is one of a queue that is not being destroyed.
    pub fn next(&self) -> io::Result<Option<CqKey>> {
        loop {
            let mut cq: *mut ibv_cq = ptr::null_mut();
            let mut context: *mut c_void = ptr::null_mut();
            // SAFETY: the channel is alive, and so are the two variables.
            if unsafe { ibv_get_cq_event(self.raw(), &mut cq, &mut context) } != 0 {
                let error = io::Error::last_os_error();
                return match error.kind() {
                    io::ErrorKind::WouldBlock => Ok(None),
                    io::ErrorKind::Interrupted => continue,
                    _ => Err(error),
                };
            }
            // SAFETY: `context` is what the queue was made with, a pointer to its reports, which are alive
            // until the queue is destroyed; and that waits until this event is acknowledged.
            let reports = unsafe { Reports::of(context) };
            // SAFETY: so many events of the queue were taken and not acknowledged, which keeps it alive.
            let acknowledge = |count| unsafe { ibv_ack_cq_events(cq, count) };
            if let Some(key) = reports.taken(acknowledge) {
                return Ok(Some(key));
            }
        }
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is open as long as the channel is.
        unsafe { BorrowedFd::borrow_raw((*self.raw()).fd) }
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        // SAFETY: every queue of it keeps it alive, so none refers to it any more.
        unsafe { ibv_destroy_comp_channel(self.raw()) };
    }
}
