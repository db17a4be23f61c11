//! Asynchronous events: what the device reports of completion queues, queue pairs and shared receive queues on
//! its own account.
//! Each opening of the device has its own, of what was made through it.
//!
//! ```
//! use cq_core::async_event::{AsyncEvent, AsyncEventType, Element};
//! use cq_core::transport::AsyncEvents;
//! use transport_rxe_loop::{Context, QpAttr, QpInit, QpState};
//!
//! let mut context = Context::open("loop0")?;
//! let (pd, cq) = (context.alloc_pd(), context.create_cq(16, None)?);
//! let mut qp = pd.create_qp(&QpInit::new(&cq))?;
//! let peer = pd.create_qp(&QpInit::new(&cq))?;
//! qp.connect(peer.number())?;
//! assert_eq!(context.take_async_event(), Ok(None));
//!
//! qp.modify(&QpAttr::to(QpState::Sqd).en_sqd_async_notify(true))?;
//! let (event_type, element) = (AsyncEventType::SQ_DRAINED, Element::Qp(qp.number()));
//! assert_eq!(context.take_async_event(), Ok(Some(AsyncEvent { event_type, element })));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Which there are
//!
//! | event | of | when |
//! |---|---|---|
//! | CQ_ERR | a completion queue | it overran, once (O2) |
//! | QP_FATAL | a queue pair | the overrun of a completion queue of its put it into ERR (O4) |
//! | QP_REQ_ERR | a queue pair | a request of its peer that it does not allow put it into ERR (Q7) |
//! | QP_ACCESS_ERR | a queue pair | a request of its peer for memory that it may not use did (Q7) |
//! | SQ_DRAINED | a queue pair | in SQD, what had begun is done, if that was asked for |
//! | QP_LAST_WQE_REACHED | a queue pair with a shared receive queue | in ERR, it has taken its last receive from there, once (Q9) |
//! | SRQ_LIMIT_REACHED | a shared receive queue | fewer receives are left than its limit says, once (Q9) |
//!
//! They come in the order in which they happened; where one of a kind happens to an object again while
//! nobody has read it, it comes once more after the others.
//!
//! # Acknowledging
//! Taking an event acknowledges it. An event names its object by key or number and refers to nothing, so
//! no object has to wait for its events to be acknowledged, or read, before it is destroyed: those that
//! nobody has read go with it, and a dead object is never named.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use cq_core::async_event::{AsyncEvent, AsyncEventType, Element};
use cq_core::cq::WaitError;
use cq_core::transport::{AsyncEvents, EventError, Woken};

use crate::api::device::Context;
use crate::completion::channel::{self, Bell, Source};
use crate::completion::queue;
use crate::engine::identity;
use crate::fabric::Fabric;
use crate::layout::QP_EVENTS;
use crate::policy::imitation;
use crate::sync;

/// What can be reported of a queue pair.
#[derive(Clone, Copy, Debug)]
pub enum QpEvent {
    Fatal,
    RequestError,
    AccessError,
    Drained,
    LastReceive,
}

/// In the order of [`QpEvent`].
const TYPES: [AsyncEventType; QP_EVENTS] = [
    AsyncEventType::QP_FATAL,
    AsyncEventType::QP_REQ_ERR,
    AsyncEventType::QP_ACCESS_ERR,
    AsyncEventType::SQ_DRAINED,
    AsyncEventType::QP_LAST_WQE_REACHED,
];

/// From now on what happens to the queue pair at `index` is reported there.
pub fn attach_qp(bell: &Bell, index: u32) {
    for kind in 0..QP_EVENTS as u32 {
        bell.attach(Source::Qp(index, kind));
    }
}

/// The queue pair at `index` goes, and what nobody has read of it.
pub fn detach_qp(bell: &Bell, index: u32) {
    for kind in 0..QP_EVENTS as u32 {
        bell.detach(Source::Qp(index, kind));
    }
}

/// Reports something of the queue pair with this number, if it is still there.
#[cold]
pub fn report_qp(fabric: &'static Fabric, number: u32, event: QpEvent) {
    if imitation::is_silent(fabric, event) {
        return;
    }
    let is_there = || identity::read(fabric.qp(number)).number == number;
    channel::raise(fabric, Source::Qp(number, event as u32), is_there);
}

/// Reports that the completion queue at `index` has overrun, if it still has this generation.
#[cold]
pub fn report_overrun(fabric: &'static Fabric, index: u32, generation: u32) {
    let is_there = || sync::load(&fabric.cq(index).generation) == generation;
    channel::raise(fabric, Source::Overrun(index), is_there);
}

/// Reports that the limit of the shared receive queue with this number was reached, if that is still there.
#[cold]
pub fn report_limit(fabric: &'static Fabric, srq: u32) {
    let is_there = || sync::load(&fabric.srq(srq).number) == srq;
    channel::raise(fabric, Source::Srq(srq), is_there);
}

fn name(fabric: &'static Fabric, source: Source) -> AsyncEvent {
    match source {
        Source::Qp(index, kind) => AsyncEvent {
            event_type: TYPES[kind as usize % QP_EVENTS],
            element: Element::Qp(identity::read(fabric.qp(index)).number),
        },
        Source::Srq(index) => AsyncEvent {
            event_type: AsyncEventType::SRQ_LIMIT_REACHED,
            element: Element::Srq(sync::load(&fabric.srq(index).number)),
        },
        Source::Completion(index) | Source::Overrun(index) => AsyncEvent {
            event_type: AsyncEventType::CQ_ERR,
            element: Element::Cq(queue::key(fabric, index)),
        },
    }
}

impl Context {
    /// Takes one asynchronous event; sleeps until there is one, or the deadline has passed: then `None`. No
    /// deadline is for ever.
    ///
    /// # Errors
    /// [`WaitError::Event`]: the device, or the system under it, failed. [`WaitError::Interrupted`]: this
    /// thread has handled a signal, and there was no event.
    pub fn wait_async(
        &mut self,
        deadline: Option<Instant>,
    ) -> Result<Option<AsyncEvent>, WaitError> {
        loop {
            if let Some(event) = self.take_async_event()? {
                return Ok(Some(event));
            }
            let woken = self.bell().block(deadline)?;
            if woken == Woken::Event {
                continue;
            }
            return match self.take_async_event()? {
                None if woken == Woken::Interrupted => Err(WaitError::Interrupted),
                event => Ok(event),
            };
        }
    }
}

impl AsyncEvents for Context {
    fn take_async_event(&mut self) -> Result<Option<AsyncEvent>, EventError> {
        let bell = self.bell();
        bell.take(|source| name(bell.fabric(), source))
    }
}

/// Readable while there is an asynchronous event to take: `async_fd` of `struct ibv_context`.
impl AsFd for Context {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell().as_fd()
    }
}

#[cfg(test)]
mod tests;
