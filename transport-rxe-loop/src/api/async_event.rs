//! Asynchronous events of completion queues, queue pairs and shared receive queues.
//! [`Context`] documents which events there are.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::time::Instant;

use cq_core::transport::{EventError, Woken};
use cq_verbs::async_event::{AsyncEvent, AsyncEventType, AsyncEvents, BlockAsync, Element};

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
            element: Element::Qp(identity::read(&engine.qps.at(index).identity).number().get()),
        },
        Source::Srq(index) => AsyncEvent {
            event_type: AsyncEventType::SRQ_LIMIT_REACHED,
            element: Element::Srq(engine.srqs.at(index).number().get()),
        },
        Source::Completion(index) | Source::Overrun(index) => AsyncEvent {
            event_type: AsyncEventType::CQ_ERR,
            element: Element::Cq(queue::key(engine.completions, index)),
        },
    }
}

impl AsyncEvents for Context {
    fn take_async_event(&mut self) -> Result<Option<AsyncEvent>, EventError> {
        let engine = self.device.engine;
        self.events.take(|source| name(engine, source))
    }
}

impl BlockAsync for Context {
    type Instant = Instant;

    fn block_async(&mut self, deadline: Option<Instant>) -> Result<Woken, EventError> {
        self.events.block(deadline)
    }
}

/// `async_fd` of `struct ibv_context`: readable exactly while there is an asynchronous event to take.
impl AsFd for Context {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }
}

impl AsRawFd for Context {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

#[cfg(test)]
mod tests;
