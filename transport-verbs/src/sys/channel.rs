//! A completion channel: events are taken here, counted, and acknowledged in batches.

#![allow(unsafe_code)]

use std::collections::HashSet;
use std::ffi::c_void;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{io, ptr};

use cq_core::transport::CqKey;
use rdma_sys::{
    ibv_ack_cq_events, ibv_comp_channel, ibv_cq, ibv_create_comp_channel, ibv_destroy_comp_channel,
    ibv_get_cq_event,
};

use super::context::Context;
use super::object::Object;
use super::{check, check_errno};

/// A completion channel; destroyed when its last queue is gone.
#[derive(Debug)]
pub struct Channel {
    raw: Object<ibv_comp_channel>,
    context: Arc<Context>,
    /// The keys of its queues.
    queues: Mutex<HashSet<CqKey>>,
}

impl Channel {
    /// Makes one whose descriptor does not block.
    pub fn new(context: &Arc<Context>) -> io::Result<Self> {
        // SAFETY: the context is open; every queue of the channel keeps it alive.
        let raw = unsafe {
            Object::new(ibv_create_comp_channel(context.raw()), ibv_destroy_comp_channel, check)?
        };
        let channel = Self { raw, context: Arc::clone(context), queues: Mutex::default() };
        rustix::io::ioctl_fionbio(&channel, true)?;
        Ok(channel)
    }

    /// As libibverbs names it.
    pub const fn raw(&self) -> *mut ibv_comp_channel {
        self.raw.raw()
    }

    /// Of which device.
    pub const fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// The keys of the queues whose events come through this channel.
    pub fn queues(&self) -> MutexGuard<'_, HashSet<CqKey>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an event, if there is one of a queue of ours that is not being destroyed. All others are acknowledged.
    pub fn next(&self) -> io::Result<Option<CqKey>> {
        loop {
            let mut cq: *mut ibv_cq = ptr::null_mut();
            let mut context: *mut c_void = ptr::null_mut();
            // SAFETY: the channel is alive, and so are the two variables.
            let taken = unsafe { ibv_get_cq_event(self.raw(), &mut cq, &mut context) };
            if let Err(error) = check_errno(taken) {
                return match error.kind() {
                    io::ErrorKind::WouldBlock => Ok(None),
                    io::ErrorKind::Interrupted => continue,
                    _ => Err(error),
                };
            }
            // SAFETY: so many events of the queue were taken and not acknowledged, which keeps it alive.
            let acknowledge = |count| unsafe { ibv_ack_cq_events(cq, count) };
            match self.context.named.cqs.get(cq) {
                Some(reports) => {
                    if let Some(key) = reports.taken(acknowledge) {
                        return Ok(Some(key));
                    }
                }
                None => acknowledge(1),
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
