//! Asynchronous events of completion queues, queue pairs and shared receive queues.
//! [`Context::wait_async`] documents which events there are.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use cq_core::async_event::{AsyncEvent, AsyncEventType, Element};
use cq_core::cq::WaitError;
use cq_core::transport::{AsyncEvents, EventError, Woken};

use super::device::Context;
use crate::completion::channel::{QP_EVENTS, Source};
use crate::completion::queue;
use crate::engine::{Engine, identity};

/// The event types, in the order of [`QpEvent`](crate::completion::async_event::QpEvent).
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
            element: Element::Qp(identity::read(engine.qp_at(index)).number().get()),
        },
        Source::Srq(index) => AsyncEvent {
            event_type: AsyncEventType::SRQ_LIMIT_REACHED,
            element: Element::Srq(engine.srqs().at(index).number().get()),
        },
        Source::Completion(index) | Source::Overrun(index) => AsyncEvent {
            event_type: AsyncEventType::CQ_ERR,
            element: Element::Cq(queue::key(engine.completions, index)),
        },
    }
}

impl Context {
    /// Takes one asynchronous event, and waits for one if there is none. Returns `None` once the deadline has passed;
    /// without a deadline it waits without limit.
    ///
    /// ```
    /// use cq_core::async_event::{AsyncEvent, AsyncEventType, Element};
    /// use cq_core::transport::AsyncEvents;
    /// use transport_rxe_loop::{Context, QpAttr, QpInit, QpState};
    ///
    /// let mut context = Context::open("loop0")?;
    /// let (pd, cq) = (context.alloc_pd()?, context.create_cq(16, None)?);
    /// let mut qp = pd.create_qp(&QpInit::new(&cq))?;
    /// let peer = pd.create_qp(&QpInit::new(&cq))?;
    /// qp.connect_to(peer.number())?;
    /// assert_eq!(context.take_async_event(), Ok(None));
    ///
    /// qp.modify(&QpAttr::to(QpState::SQD).en_sqd_async_notify(true))?;
    /// let (event_type, element) = (AsyncEventType::SQ_DRAINED, Element::Qp(qp.number()));
    /// assert_eq!(context.take_async_event(), Ok(Some(AsyncEvent { event_type, element })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// | event | object | cause |
    /// |---|---|---|
    /// | CQ_ERR | completion queue | it overran; reported once ([O2](cq_core::contract#o2)) |
    /// | QP_FATAL | queue pair | an overrun of one of its completion queues put it into ERR ([O4](cq_core::contract#o4)) |
    /// | QP_REQ_ERR | queue pair | a request of its peer that it does not allow put it into ERR ([Q7](cq_core::contract#q7)) |
    /// | QP_ACCESS_ERR | queue pair | a request of its peer for memory that the peer may not use put it into ERR ([Q7](cq_core::contract#q7)) |
    /// | SQ_DRAINED | queue pair | in SQD, all sends that had begun are done; reported on request |
    /// | QP_LAST_WQE_REACHED | queue pair with an SRQ | in ERR, it has taken its last receive; reported once ([Q9](cq_core::contract#q9)) |
    /// | SRQ_LIMIT_REACHED | shared receive queue | fewer receives are left than its limit; reported once ([Q9](cq_core::contract#q9)) |
    ///
    /// Events are delivered in order. Where an object has several unread events of a kind, each further one is
    /// delivered after those of other objects.
    ///
    /// Taking an event acknowledges it. An event carries the key or number of its object and no reference, so
    /// destroying an object never waits for its events: its unread events are discarded, and no event names a destroyed
    /// object.
    ///
    /// # Errors
    /// [`WaitError::Event`]: the device or the system failed. [`WaitError::Interrupted`]: this thread handled a signal,
    /// and there was no event.
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

/// `async_fd` of `struct ibv_context`: readable while there is an asynchronous event to take.
impl AsFd for Context {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.events().as_fd()
    }
}

#[cfg(test)]
mod tests;
