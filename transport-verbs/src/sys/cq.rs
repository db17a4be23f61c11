//! A completion queue, and what its events report.

#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cq_core::transport::CqKey;
use cq_core::wc::Wc;
use rdma_sys::{
    ibv_ack_cq_events, ibv_cq, ibv_create_cq, ibv_destroy_cq, ibv_req_notify_cq, ibv_resize_cq,
};

use super::channel::Channel;
use super::check;
use super::context::Context;
use super::ext;
use super::poll::Polling;

/// How many events are acknowledged at a time: each acknowledgement takes a lock of the queue.
const BATCH: u32 = 64;

/// What is known of a queue where its events are read: its `cq_context`.
#[derive(Debug)]
pub struct Reports {
    key: CqKey,
    polling: Polling,
    acks: Mutex<Acks>,
}

/// Events that were taken and not acknowledged.
#[derive(Debug, Default)]
struct Acks {
    pending: u32,
    /// Nobody will acknowledge for the reader any more.
    closing: bool,
}

impl Reports {
    fn new(polling: Polling) -> Self {
        // Numbers are never used again, so a dead queue's key names no other.
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let key = CqKey { index: number as u32, generation: (number >> 32) as u32 };
        Self { key, polling, acks: Mutex::default() }
    }

    /// A queue's name in events.
    pub const fn key(&self) -> CqKey {
        self.key
    }

    /// The device reported that the queue overran.
    pub fn overran(&self) {
        self.polling.overran();
    }

    /// The reports of a queue.
    ///
    /// # Safety
    /// `context` is the `cq_context` of a queue of [`Cq::new`] that is not destroyed before this returns.
    pub unsafe fn of(context: *mut c_void) -> Arc<Self> {
        let reports = context.cast_const().cast::<Self>();
        // SAFETY: `Cq::new` made the pointer of an `Arc`, which the queue holds until it is destroyed.
        unsafe {
            Arc::increment_strong_count(reports);
            Arc::from_raw(reports)
        }
    }

    /// Counts an event, so that it is acknowledged with others. None if the queue is being destroyed: the
    /// event is acknowledged at once then, and nobody hears of it.
    ///
    /// # Safety
    /// An event of `cq`, whose reports these are, has been taken and not been acknowledged.
    pub unsafe fn taken(&self, cq: *mut ibv_cq) -> Option<CqKey> {
        let mut acks = self.acks.lock().unwrap_or_else(PoisonError::into_inner);
        let closing = acks.closing;
        if !closing {
            acks.pending += 1;
            if acks.pending < BATCH {
                return Some(self.key);
            }
        }
        let count = acks.pending.max(1);
        acks.pending = 0;
        drop(acks);
        // SAFETY: so many events have been taken and not been acknowledged, which keeps the queue alive.
        unsafe { ibv_ack_cq_events(cq, count) };
        (!closing).then_some(self.key)
    }
}

/// A completion queue; destroyed when its last queue pair is gone.
#[derive(Debug)]
pub struct Cq {
    raw: NonNull<ibv_cq>,
    reports: Arc<Reports>,
    channel: Option<Arc<Channel>>,
    _context: Arc<Context>,
}

// SAFETY: libibverbs may be called from any thread, with the same queue from several at once.
unsafe impl Send for Cq {}
// SAFETY: as above.
unsafe impl Sync for Cq {}

impl Cq {
    /// Makes one that holds at least `capacity` completions.
    pub fn new(
        context: &Arc<Context>,
        capacity: c_int,
        channel: Option<&Arc<Channel>>,
    ) -> io::Result<Self> {
        // SAFETY: the context is open.
        let polling = unsafe { Polling::new(context.raw()) };
        let reports = Arc::new(Reports::new(polling));
        let cq_context = Arc::as_ptr(&reports).cast_mut().cast::<c_void>();
        let raw_channel = channel.map_or(ptr::null_mut(), |channel| channel.raw());
        // SAFETY: the context is open and the channel alive, or there is none.
        let raw = unsafe { ibv_create_cq(context.raw(), capacity, cq_context, raw_channel, 0) };
        let raw = NonNull::new(raw).ok_or_else(io::Error::last_os_error)?;
        let (channel, context) = (channel.cloned(), Arc::clone(context));
        Ok(Self { raw, reports, channel, _context: context })
    }

    /// As libibverbs names it.
    pub const fn raw(&self) -> *mut ibv_cq {
        self.raw.as_ptr()
    }

    /// What its events report.
    pub const fn reports(&self) -> &Arc<Reports> {
        &self.reports
    }

    /// Whether it can be armed.
    pub const fn has_channel(&self) -> bool {
        self.channel.is_some()
    }

    /// `ibv_poll_cq(3)`: the count, [`OVERRUN`](super::poll::OVERRUN), or another negative number.
    #[inline]
    pub fn poll(&self, out: &mut [Wc]) -> c_int {
        let room = c_int::try_from(out.len()).unwrap_or(c_int::MAX);
        // SAFETY: the queue is alive; `Wc` is `ibv_wc` (asserted in `layout`), and there is room for as many.
        unsafe { self.reports.polling.poll(self.raw(), room, out.as_mut_ptr().cast()) }
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
        // SAFETY: the queue is alive.
        unsafe { (*self.raw()).cqe }
    }
}

impl Drop for Cq {
    fn drop(&mut self) {
        let mut acks = self.reports.acks.lock().unwrap_or_else(PoisonError::into_inner);
        acks.closing = true;
        let pending = std::mem::take(&mut acks.pending);
        drop(acks);
        // SAFETY: so many events were taken and not acknowledged. Every queue pair of it keeps it alive, so
        // none refers to it; destroying waits for a reader that has taken an event and not counted it yet,
        // who acknowledges it by itself.
        unsafe {
            if pending > 0 {
                ibv_ack_cq_events(self.raw(), pending);
            }
            ibv_destroy_cq(self.raw());
        }
    }
}
