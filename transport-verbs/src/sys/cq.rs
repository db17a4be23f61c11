//! A completion queue.

#![allow(unsafe_code)]

use std::ffi::c_int;
use std::sync::Arc;
use std::{io, ptr};

use rdma_sys::{
    ibv_ack_cq_events, ibv_cq, ibv_create_cq, ibv_destroy_cq, ibv_req_notify_cq, ibv_resize_cq,
};

use super::channel::Channel;
use super::context::Context;
use super::object::Object;
use super::polling::Polling;
use super::reports::Reports;
use super::{check, ext};
use crate::trace;

/// A completion queue; destroyed when its last queue pair is gone.
#[derive(Debug)]
pub struct Cq {
    raw: Object<ibv_cq>,
    reports: Arc<Reports>,
    channel: Option<Arc<Channel>>,
    context: Arc<Context>,
}

impl Cq {
    /// Makes one that holds at least `capacity` completions.
    pub fn new(
        context: &Arc<Context>,
        capacity: c_int,
        channel: Option<&Arc<Channel>>,
        comp_vector: u32,
    ) -> io::Result<Self> {
        let vector = c_int::try_from(comp_vector).unwrap_or(c_int::MAX);
        // SAFETY: the context is open.
        let polling = unsafe { Polling::new(context.raw()) };
        let reports = Arc::new(Reports::new(polling));
        let raw_channel = channel.map_or(ptr::null_mut(), |channel| channel.raw());
        // SAFETY: the context is open and the channel alive, or there is none. Every queue pair keeps the queue alive.
        let raw = unsafe {
            let raw = ibv_create_cq(context.raw(), capacity, ptr::null_mut(), raw_channel, vector);
            Object::new(raw, ibv_destroy_cq, check)?
        };
        context.named.cqs.add(raw.raw(), Arc::clone(&reports));
        if let Some(channel) = channel {
            channel.queues().insert(reports.key);
        }
        Ok(Self { raw, reports, channel: channel.cloned(), context: Arc::clone(context) })
    }

    /// As libibverbs names it.
    pub const fn raw(&self) -> *mut ibv_cq {
        self.raw.raw()
    }

    /// What its events report.
    pub const fn reports(&self) -> &Arc<Reports> {
        &self.reports
    }

    /// Of which device.
    pub const fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Whether it can be armed.
    pub const fn has_channel(&self) -> bool {
        self.channel.is_some()
    }

    /// `ibv_req_notify_cq(3)`.
    pub fn arm(&self, solicited_only: bool) -> io::Result<()> {
        // SAFETY: the queue is alive.
        check(unsafe { ibv_req_notify_cq(self.raw(), solicited_only.into()) })
    }

    /// `ibv_resize_cq(3)`.
    pub fn resize(&self, capacity: c_int) -> io::Result<()> {
        // SAFETY: the queue is alive.
        check(unsafe { ibv_resize_cq(self.raw(), capacity) })
    }

    /// `ibv_modify_cq(3)`.
    pub fn moderate(&self, count: u16, period: u16) -> io::Result<()> {
        // SAFETY: the queue is alive.
        unsafe { ext::moderate_cq(self.raw(), count, period) }
    }

    /// How many completions it holds.
    pub fn capacity(&self) -> c_int {
        // SAFETY: the queue is alive. Only resizing writes it, which has the queue alone.
        unsafe { (*self.raw()).cqe }
    }
}

impl Drop for Cq {
    fn drop(&mut self) {
        if !self.raw.is_ours() {
            return;
        }
        trace::event!(DEBUG, cq = %self.reports.key, "completion queue destroyed");
        self.context.named.cqs.remove(self.raw());
        if let Some(channel) = &self.channel {
            channel.queues().remove(&self.reports.key);
        }
        let pending = self.reports.close();
        if pending > 0 {
            // SAFETY: so many events were taken and not acknowledged.
            unsafe { ibv_ack_cq_events(self.raw(), pending) };
        }
    }
}
