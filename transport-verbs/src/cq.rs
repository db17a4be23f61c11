//! Completion queues: the caller's slice goes to `ibv_poll_cq` as it is.

use std::ffi::c_int;
use std::sync::Arc;

use cq_core::transport::{Arm, ArmError, Armed, CqKey, Notify, Poll, PollError};
use cq_core::wc::Wc;
use rdma_sys::ibv_cq;

use crate::channel::CompletionChannel;
use crate::error::{Attempt, DeviceError, InUse};
use crate::sys::context::Context;
use crate::sys::cq;
use crate::sys::poll::OVERRUN;

/// A completion queue.
#[derive(Debug)]
pub struct Cq {
    raw: Arc<cq::Cq>,
}

impl Cq {
    pub(crate) fn new(
        context: &Arc<Context>,
        capacity: u32,
        channel: Option<&CompletionChannel>,
    ) -> Result<Self, DeviceError> {
        let capacity = c_int::try_from(capacity).unwrap_or(c_int::MAX);
        let raw = cq::Cq::new(context, capacity, channel.map(CompletionChannel::raw))
            .attempt("create a completion queue")?;
        Ok(Self { raw: Arc::new(raw) })
    }

    pub(crate) const fn raw(&self) -> &Arc<cq::Cq> {
        &self.raw
    }

    /// How many completions it holds (O1).
    #[must_use]
    pub fn capacity(&self) -> u32 {
        self.raw.capacity() as u32
    }

    /// Makes it hold at least `capacity` completions; says how many it holds then (Q12).
    ///
    /// # Errors
    /// More completions wait in it than that, or the capacity is out of range; nothing changed.
    pub fn resize(&mut self, capacity: u32) -> Result<u32, DeviceError> {
        let capacity = c_int::try_from(capacity).unwrap_or(c_int::MAX);
        self.raw.resize(capacity).attempt("resize the completion queue")?;
        Ok(self.capacity())
    }

    /// Lets an event wait for `count` completions, or for `period` microseconds after the first of them;
    /// 1 and 0 end that. The most of either is in [`DeviceAttr`](crate::DeviceAttr).
    ///
    /// # Errors
    /// The device can't (EOPNOTSUPP), or not so much (EINVAL).
    pub fn moderate(&mut self, count: u16, period: u16) -> Result<(), DeviceError> {
        self.raw.moderate(count, period).attempt("moderate the completion queue's events")
    }

    /// As libibverbs names it, for calls that this crate does not have. It is valid as long as this handle is.
    #[must_use]
    pub fn as_raw(&self) -> *mut ibv_cq {
        self.raw.raw()
    }

    /// Destroys it, and drops its completions and unread events. Dropping does, too, once the last queue
    /// pair of it is gone.
    ///
    /// # Errors
    /// A queue pair completes on it; the handle comes back (EBUSY, Q11).
    pub fn destroy(self) -> Result<(), InUse<Self>> {
        Arc::try_unwrap(self.raw)
            .map(drop)
            .map_err(|raw| InUse::new(Self { raw }, "completion queue", "its queue pairs"))
    }
}

impl Poll for Cq {
    #[inline]
    fn poll(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
        match self.raw.poll(out) {
            failed if failed < 0 => Err(why(failed)),
            count => Ok(count as usize),
        }
    }
}

#[cold]
const fn why(failed: c_int) -> PollError {
    match failed {
        OVERRUN => PollError::Overrun { dropped: None },
        code => PollError::Device(code),
    }
}

impl Arm for Cq {
    fn arm(&mut self, on: Notify) -> Result<Armed, ArmError> {
        if !self.raw.has_channel() {
            return Err(ArmError::NoChannel);
        }
        match self.raw.arm(on == Notify::Solicited) {
            Ok(()) => Ok(Armed::MayHaveMissed),
            Err(error) => Err(ArmError::Device(error.raw_os_error().unwrap_or(0))),
        }
    }

    fn key(&self) -> CqKey {
        self.raw.reports().key()
    }
}
