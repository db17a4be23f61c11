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

use super::device::Context;
use crate::completion::channel::{QP_EVENTS, Source};
use crate::completion::queue;
use crate::engine::{Engine, identity};
use crate::sync;

/// In the order of [`QpEvent`].
const TYPES: [AsyncEventType; QP_EVENTS] = [
    AsyncEventType::QP_FATAL,
    AsyncEventType::QP_REQ_ERR,
    AsyncEventType::QP_ACCESS_ERR,
    AsyncEventType::SQ_DRAINED,
    AsyncEventType::QP_LAST_WQE_REACHED,
];

fn name(engine: &'static Engine, source: Source) -> AsyncEvent {
    match source {
        Source::Qp(index, kind) => AsyncEvent {
            event_type: TYPES[kind as usize % QP_EVENTS],
            element: Element::Qp(identity::read(engine.qp(index)).number),
        },
        Source::Srq(index) => AsyncEvent {
            event_type: AsyncEventType::SRQ_LIMIT_REACHED,
            element: Element::Srq(sync::load(&engine.srq(index).number)),
        },
        Source::Completion(index) | Source::Overrun(index) => AsyncEvent {
            event_type: AsyncEventType::CQ_ERR,
            element: Element::Cq(queue::key(engine.completions, index)),
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
            let woken = self.events().block(deadline)?;
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
        let engine = self.device().engine;
        self.events().take(|source| name(engine, source))
    }
}

/// Readable while there is an asynchronous event to take: `async_fd` of `struct ibv_context`.
impl AsFd for Context {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.events().as_fd()
    }
}

#[cfg(test)]
mod tests;
