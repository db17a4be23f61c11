//! Completion queues: the caller's slice goes to `ibv_poll_cq` as it is.

use std::ffi::c_int;
use std::sync::Arc;

use cq_core::setup::InUse;
use cq_core::transport::{Arm, ArmError, Armed, CqKey, Notify, PollCq, PollError};
use cq_core::wc::Wc;
use rdma_sys::ibv_cq;
use rustix::io::Errno;

use crate::channel::CompletionChannel;
use crate::error::{Attempt, CapacityError, DeviceError, ModerateError};
use crate::sys::context::Context;
use crate::sys::cq;
use crate::sys::poll::Poller;
use crate::sys::polling::OVERRUN;

/// A completion queue. One thread polls it at a time; it may move to another.
///
/// ```no_run
/// use cq_core::transport::{Arm, ArmError, Notify, PollCq};
/// use cq_core::wc::Wc;
/// use transport_verbs::Context;
///
/// let mut cq = Context::open_first()?.create_cq(16, None)?;
/// assert!(cq.capacity() >= 16);
/// assert_eq!(cq.poll(&mut [Wc::default(); 4]), Ok(0));
/// assert_eq!(cq.arm(Notify::Next), Err(ArmError::NoChannel)); // N11
/// cq.destroy()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Overrun
/// What a device does with a completion that finds the queue full is its own. It reports a CQ_ERR; once
/// that [event is taken](crate#overrun), polling hands out what is stored, and then fails with
/// [`PollError::Overrun`] for ever (O3), also where the device goes on with the queue. How many were dropped
/// nobody knows. Give a queue room for everything that is outstanding on its queue pairs, and there is none
/// (O7).
///
/// Destroying it twice, or polling it from two places at once, does not compile:
/// ```compile_fail,E0382
/// # fn twice(cq: transport_verbs::Cq) {
/// cq.destroy();
/// cq.destroy();
/// # }
/// ```
/// ```compile_fail,E0499
/// # fn twice(mut cq: transport_verbs::Cq) {
/// # use cq_core::transport::PollCq;
/// let (one, other) = (&mut cq, &mut cq);
/// let _ = (one.poll(&mut []), other.poll(&mut []));
/// # }
/// ```
#[derive(Debug)]
pub struct Cq {
    poller: Poller,
}

impl Cq {
    pub(crate) fn new(
        context: &Arc<Context>,
        capacity: u32,
        channel: Option<&CompletionChannel>,
    ) -> Result<Self, CapacityError> {
        let channel = channel.map(CompletionChannel::raw);
        if channel.is_some_and(|channel| !Arc::ptr_eq(channel.context(), context)) {
            let attempt =
                "create a completion queue (its channel is of another opening of the device)";
            return Err(DeviceError::new(attempt, Errno::INVAL.into()).into());
        }
        let made = cq::Cq::new(context, foreign(context, capacity)?, channel);
        let made = made.attempt("create a completion queue");
        let queue = made.map_err(|refused| diagnose(context, capacity, refused))?;
        Ok(Self { poller: Poller::new(Arc::new(queue)) })
    }

    pub(crate) const fn raw(&self) -> &Arc<cq::Cq> {
        self.poller.cq()
    }

    /// How many completions it holds (O1).
    #[must_use]
    pub fn capacity(&self) -> u32 {
        u32::try_from(self.raw().capacity()).unwrap_or(0)
    }

    /// Makes it hold at least `capacity` completions; says how many it holds then (Q12).
    ///
    /// # Errors
    /// More completions wait in it than that, the capacity is out of range, or the device can't resize;
    /// nothing changed.
    pub fn resize(&mut self, capacity: u32) -> Result<u32, CapacityError> {
        let context = self.raw().context();
        let resized = self.raw().resize(foreign(context, capacity)?);
        let resized = resized.attempt("resize the completion queue");
        resized.map_err(|refused| diagnose(context, capacity, refused))?;
        Ok(self.capacity())
    }

    /// Lets an event wait for `count` completions, or for `period` microseconds after the first of them;
    /// 1 and 0 end that. The most of either is in [`DeviceAttr`](crate::DeviceAttr).
    ///
    /// # Errors
    /// The device can't, or not so much.
    pub fn moderate(&mut self, count: u16, period: u16) -> Result<(), ModerateError> {
        self.raw().moderate(count, period).map_err(|error| {
            let refused = DeviceError::new("moderate the completion queue's events", error);
            match refused.errno() {
                unsupported if unsupported == Errno::OPNOTSUPP.raw_os_error() => {
                    ModerateError::Unsupported
                }
                _ => ModerateError::Refused(refused),
            }
        })
    }

    /// As libibverbs names it, for calls that this crate does not have. It is valid as long as this handle
    /// is.
    #[must_use]
    pub fn as_raw(&self) -> *mut ibv_cq {
        self.raw().raw()
    }

    #[cold]
    fn why(&self, failed: c_int) -> PollError {
        match failed {
            OVERRUN => {
                self.poller.polling().ended();
                PollError::Overrun { dropped: None }
            }
            code => PollError::Device(code),
        }
    }

    /// Destroys it, and drops its completions and unread events. Dropping does, too, once the last queue
    /// pair of it is gone.
    ///
    /// # Errors
    /// A queue pair completes on it; the handle comes back (EBUSY, Q11).
    pub fn destroy(self) -> Result<(), InUse<Self>> {
        Arc::try_unwrap(self.poller.into_cq()).map(drop).map_err(|queue| {
            let handle = Self { poller: Poller::new(queue) };
            InUse::new(handle, "completion queue", "its queue pairs")
        })
    }
}

/// A capacity as libibverbs takes it.
fn foreign(context: &Context, capacity: u32) -> Result<c_int, CapacityError> {
    if capacity == 0 {
        return Err(CapacityError::Zero);
    }
    let max = context.attributes().max_cqe;
    c_int::try_from(capacity).map_err(|_| CapacityError::TooMany { asked: capacity, max })
}

/// Why the device refused a capacity.
fn diagnose(context: &Context, asked: u32, refused: DeviceError) -> CapacityError {
    let max = context.attributes().max_cqe;
    match asked > max {
        true => CapacityError::TooMany { asked, max },
        false => CapacityError::Refused(refused),
    }
}

impl PollCq for Cq {
    #[inline]
    fn poll(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
        match self.poller.poll(out) {
            failed if failed < 0 => Err(self.why(failed)),
            count => Ok(count as usize),
        }
    }
}

impl Arm for Cq {
    fn arm(&mut self, on: Notify) -> Result<Armed, ArmError> {
        if !self.raw().has_channel() {
            return Err(ArmError::NoChannel);
        }
        match self.raw().arm(on == Notify::Solicited) {
            Ok(()) => Ok(Armed::MayHaveMissed),
            Err(error) => Err(ArmError::Device(error.raw_os_error().unwrap_or(0))),
        }
    }

    fn key(&self) -> CqKey {
        self.raw().reports().key()
    }
}
