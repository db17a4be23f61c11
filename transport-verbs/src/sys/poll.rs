//! Polling a completion queue.

#![allow(unsafe_code)]

use std::ffi::c_int;
use std::sync::Arc;

use cq_core::wc::Wc;
use rdma_sys::ibv_cq;

use super::cq::Cq;
use super::polling::Polling;
use super::reports::Reports;

/// Who polls a queue. What a poll needs is at hand, and not behind what the queue pairs share.
#[derive(Debug)]
pub struct Poller {
    raw: *mut ibv_cq,
    reports: Arc<Reports>,
    _cq: Arc<Cq>,
}

// SAFETY: libibverbs may be called from any thread, with the same queue from several at once.
unsafe impl Send for Poller {}
// SAFETY: as above.
unsafe impl Sync for Poller {}

impl Poller {
    /// The one of this queue.
    pub fn new(cq: &Arc<Cq>) -> Self {
        Self { raw: cq.raw(), reports: Arc::clone(cq.reports()), _cq: Arc::clone(cq) }
    }

    /// How it is polled.
    #[inline]
    pub fn polling(&self) -> &Polling {
        &self.reports.polling
    }

    /// `ibv_poll_cq(3)`: the count, or a negative number, as [`Polling::poll`] returns it.
    #[inline]
    pub fn poll(&mut self, out: &mut [Wc]) -> c_int {
        let capacity = c_int::try_from(out.len()).unwrap_or(c_int::MAX);
        let polling = self.polling();
        // SAFETY: the queue is alive; `Wc` is `ibv_wc` (asserted in `layout`), and there is space for as many.
        unsafe { polling.poll(self.raw, capacity, out.as_mut_ptr().cast()) }
    }
}
