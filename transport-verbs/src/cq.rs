//! Completion queues: the caller's slice goes to `ibv_poll_cq` as it is.

use std::ffi::c_int;
use std::sync::Arc;

use cq_core::transport::{Arm, ArmError, Armed, CqKey, Notify, PollCq, PollError};
use cq_core::wc::Wc;
use cq_verbs::device::CqBuilder;
use cq_verbs::setup::{
    CreateError, DeviceError, Errno, InUseError, LimitKind, ModerateError, ResizeError,
};
use rdma_sys::ibv_cq;

use crate::device::Context;
use crate::error::{self, Attempt};
use crate::sys::poll::Poller;
use crate::sys::{context, cq};
use crate::trace;

const IGNORE_OVERRUN: &str = "create a completion queue that ignores overruns";

/// A completion queue. One thread polls it at a time; it may move to another.
///
/// ```no_run
/// use cq_core::transport::{Arm, ArmError, Notify, PollCq};
/// use transport_verbs::{Context, Wc};
///
/// let mut cq = Context::open_first()?.cq(16).create()?;
/// assert!(cq.capacity() >= 16);
/// assert_eq!(cq.pop()?, None);
/// assert_eq!(cq.arm(Notify::Next), Err(ArmError::NoChannel)); // N11
/// cq.destroy()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Overrun
/// What a device does with a completion for a full queue depends on the device. It reports CQ_ERR. Once that
/// [event is taken](crate::manual#overrun), or a poll fails with a number that means overrun, polling returns the stored
/// completions, and then always fails with [`PollError::Overrun`] ([O3](cq_core::contract#o3)), also if the device continues to
/// use the queue. The number of dropped completions is not known. A queue that has an entry for every request that is
/// outstanding on its queue pairs never overruns ([O7](cq_core::contract#o7)).
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
/// let (one, other) = (&mut cq, &mut cq);
/// let _ = (one.poll(&mut []), other.poll(&mut []));
/// # }
/// ```
#[doc(alias("ibv_cq", "ibv_poll_cq", "ibv_req_notify_cq", "ibv_destroy_cq"))]
#[derive(Debug)]
pub struct Cq {
    poller: Poller,
    handle: CqHandle,
}

impl Context {
    /// Creates a completion queue: as [`CqBuilder::create`].
    ///
    /// # Errors
    /// The capacity or the vector is out of range, there are too many queues, the channel was created from another context,
    /// or the queue is to ignore overruns, for which `rdma-sys` lacks the call.
    pub fn create_cq(&self, init: &CqBuilder<'_, Self>) -> Result<Cq, CreateError> {
        let CqBuilder { capacity, channel, comp_vector, ignore_overrun, .. } = *init;
        let channel = channel.map(|channel| &channel.raw);
        if ignore_overrun {
            return Err(DeviceError::cannot(IGNORE_OVERRUN, Errno::EOPNOTSUPP).into());
        }
        if channel.is_some_and(|channel| !Arc::ptr_eq(channel.context(), &self.raw)) {
            return Err(CreateError::OtherContext);
        }
        let made = cq::Cq::new(&self.raw, foreign(&self.raw, capacity)?, channel, comp_vector);
        let made = made.attempt("create a completion queue");
        let queue = made.map_err(|refused| {
            let vectors = self.raw.attributes.num_comp_vectors;
            let vector = (LimitKind::CompletionVectors, comp_vector.saturating_add(1), vectors);
            error::beyond(&[vector, entries(&self.raw, capacity)], refused)
        })?;
        trace::event!(
            DEBUG, cq = %queue.reports().key, capacity = queue.capacity(),
            "completion queue created"
        );
        Ok(Cq::of(Arc::new(queue)))
    }
}

impl Cq {
    fn of(queue: Arc<cq::Cq>) -> Self {
        Self { poller: Poller::new(&queue), handle: CqHandle { queue } }
    }

    /// The capacity: how many completions the queue holds ([O1](cq_core::contract#o1)).
    #[must_use]
    pub fn capacity(&self) -> usize {
        usize::try_from(self.handle.queue.capacity()).unwrap_or(0)
    }

    /// Changes the capacity to at least this, and returns the new one ([Q12](cq_core::contract#q12)).
    ///
    /// # Errors
    /// More completions wait in it than that, the capacity is out of range, or the device can't resize;
    /// nothing changed.
    #[doc(alias = "ibv_resize_cq")]
    pub fn resize(&mut self, capacity: u32) -> Result<u32, ResizeError> {
        let context = self.handle.queue.context();
        let resized = self.handle.queue.resize(foreign(context, capacity)?);
        let resized = resized.attempt("resize the completion queue");
        resized.map_err(|refused| error::beyond(&[entries(context, capacity)], refused))?;
        Ok(self.capacity() as u32)
    }

    /// Delays each event until `count` completions have come, or `period` microseconds have passed since the first of
    /// them. A count of 1 with a period of 0 ends moderation. The maxima are in [`DeviceAttr`](crate::DeviceAttr).
    ///
    /// # Errors
    /// The device does not support moderation, or a value exceeds its maximum.
    #[doc(alias = "ibv_modify_cq")]
    pub fn moderate(&mut self, count: u16, period: u16) -> Result<(), ModerateError> {
        self.handle.queue.moderate(count, period).map_err(|error| {
            let refused = error::refused("moderate the completion queue's events", &error);
            match refused.errno() {
                Errno::EOPNOTSUPP => ModerateError::Unsupported,
                _ => ModerateError::Refused(refused),
            }
        })
    }

    /// The pointer of libibverbs, for calls that this crate does not have. It is valid as long as this handle.
    #[must_use]
    pub fn as_raw(&self) -> *mut ibv_cq {
        self.handle.queue.raw()
    }

    #[cold]
    fn why(&self, failed: c_int) -> PollError {
        match self.poller.polling().end_if_overrun(failed) {
            true => PollError::Overrun { dropped: None },
            false => PollError::Device(failed),
        }
    }

    /// A handle of the queue, to create queue pairs for it while another thread polls it.
    #[must_use]
    pub fn handle(&self) -> CqHandle {
        self.handle.clone()
    }

    /// Destroys the queue with its completions and unread events. Dropping destroys it once its last queue pair is
    /// destroyed and its last [handle](CqHandle) dropped.
    ///
    /// # Errors
    /// A queue pair uses it, or there is a handle of it; the queue is returned (EBUSY, [Q11](cq_core::contract#q11)).
    pub fn destroy(self) -> Result<(), InUseError<Self>> {
        drop(self.poller);
        Arc::try_unwrap(self.handle.queue).map(drop).map_err(|queue| {
            InUseError::new(Self::of(queue), "completion queue", "its queue pairs and handles")
        })
    }
}

impl AsRef<CqHandle> for Cq {
    fn as_ref(&self) -> &CqHandle {
        &self.handle
    }
}

/// A handle of a completion queue, to create queue pairs for it while another thread polls it.
///
/// ```no_run
/// use transport_verbs::{Context, CqHandle, Wc};
///
/// let context = Context::open_first()?;
/// let pd = context.alloc_pd()?;
/// let mut cq = context.cq(16).create()?;
/// let handle: CqHandle = cq.handle();
/// let poller = std::thread::spawn(move || while cq.pop() == Ok(None) {});
/// let qp = pd.qp(&handle).create()?;
/// # poller.join().unwrap();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct CqHandle {
    pub(crate) queue: Arc<cq::Cq>,
}

/// A capacity as libibverbs takes it.
fn foreign(context: &context::Context, asked: u32) -> Result<c_int, CreateError> {
    if asked == 0 {
        return Err(CreateError::Zero(LimitKind::Cqe));
    }
    let max = context.attributes.max_cqe;
    c_int::try_from(asked).map_err(|_| CreateError::TooMany { what: LimitKind::Cqe, asked, max })
}

/// The limit of a capacity.
fn entries(context: &context::Context, asked: u32) -> (LimitKind, u32, u32) {
    (LimitKind::Cqe, asked, context.attributes.max_cqe)
}

impl PollCq for Cq {
    type Entry = Wc;

    #[inline]
    fn poll_into(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
        match self.poller.poll(out) {
            failed if failed < 0 => Err(self.why(failed)),
            count => Ok(count as usize),
        }
    }
}

impl Arm for Cq {
    fn arm(&mut self, on: Notify) -> Result<Armed, ArmError> {
        if !self.handle.queue.has_channel() {
            return Err(ArmError::NoChannel);
        }
        match self.handle.queue.arm(on == Notify::Solicited) {
            Ok(()) => Ok(Armed::MayHaveMissed),
            Err(error) => Err(ArmError::Device(error.raw_os_error().unwrap_or(0))),
        }
    }

    fn key(&self) -> CqKey {
        self.handle.queue.reports().key
    }
}
