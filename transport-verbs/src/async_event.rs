//! Asynchronous events: each context has those of the objects that were created through it, and of the device's ports.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::time::Instant;

use cq_core::transport::{EventError, Woken};
use cq_verbs::async_event::{AsyncEvent, AsyncEventType as T, AsyncEvents, BlockAsync, Element};
use cq_verbs::descriptor;
use cq_verbs::setup::QpState;

use crate::device::Context;
use crate::error::event_error;
use crate::sys::async_event;
use crate::trace;

impl AsyncEvents for Context {
    fn take_async_event(&mut self) -> Result<Option<AsyncEvent>, EventError> {
        let event = async_event::next(&self.raw).map_err(event_error)?;
        event.iter().for_each(tell);
        Ok(event)
    }
}

impl BlockAsync for Context {
    type Instant = Instant;

    fn block_async(&mut self, deadline: Option<Instant>) -> Result<Woken, EventError> {
        descriptor::block(self, deadline)
    }
}

/// Readable while there is an asynchronous event to take: `async_fd` of `struct ibv_context`.
impl AsFd for Context {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.raw.as_fd()
    }
}

impl AsRawFd for Context {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

/// Tells a subscriber of an event.
fn tell(event: &AsyncEvent) {
    match (event.element, event.event_type) {
        (Element::Cq(key), T::CQ_ERR) => {
            trace::event!(ERROR, cq = %key, "completion queue overrun");
        }
        (Element::Qp(qp_num), reason @ (T::QP_FATAL | T::QP_REQ_ERR | T::QP_ACCESS_ERR)) => {
            trace::event!(
                WARN, qp_num = qp_num, state = ?QpState::ERR, reason = ?reason, "queue pair failed"
            );
        }
        (element, T::DEVICE_FATAL | T::SRQ_ERR | T::WQ_FATAL | T::PORT_ERR) => {
            trace::event!(
                ERROR, event = %event.event_type, element = %element, "asynchronous event"
            );
        }
        (element, event_type) => {
            trace::event!(DEBUG, event = %event_type, element = %element, "asynchronous event");
        }
    }
}

#[cfg(test)]
#[path = "../tests/common/subscriber.rs"]
mod subscriber;

#[cfg(test)]
mod tests {
    use cq_core::transport::CqKey;
    use tracing::Level;

    use super::subscriber::Recorder;
    use super::*;

    #[test]
    fn what_fails_is_told_of_at_its_level_and_what_it_is() {
        let recorder: &Recorder = Box::leak(Box::default());
        let key = CqKey { index: 3, generation: 1 };
        let _listening = recorder.listens();
        for (event_type, element) in [
            (T::CQ_ERR, Element::Cq(key)),
            (T::QP_FATAL, Element::Qp(1)),
            (T::QP_REQ_ERR, Element::Qp(2)),
            (T::QP_ACCESS_ERR, Element::Qp(3)),
            (T::SQ_DRAINED, Element::Qp(4)),
            (T::DEVICE_FATAL, Element::Device),
            (T::SRQ_ERR, Element::Srq(5)),
            (T::WQ_FATAL, Element::Device),
            (T::PORT_ERR, Element::Port(1)),
            (T::PORT_ACTIVE, Element::Port(1)),
        ] {
            tell(&AsyncEvent { event_type, element });
        }
        let overrun = recorder.only("completion queue overrun", &[("cq", &key)]);
        assert_eq!(overrun.level, Level::ERROR);
        for (qp_num, reason) in [(1, "QP_FATAL"), (2, "QP_REQ_ERR"), (3, "QP_ACCESS_ERR")] {
            let failed = recorder.only("queue pair failed", &[("qp_num", &qp_num)]);
            assert_eq!((failed.level, failed.field("state")), (Level::WARN, "ERR"));
            assert_eq!(failed.field("reason"), reason);
        }
        let others = recorder.seen("asynchronous event", &[]);
        let levels = others.iter().map(|seen| (seen.level, seen.field("element")));
        assert!(levels.eq([
            (Level::DEBUG, "queue pair 4"),
            (Level::ERROR, "the device"),
            (Level::ERROR, "shared receive queue 5"),
            (Level::ERROR, "the device"),
            (Level::ERROR, "port 1"),
            (Level::DEBUG, "port 1"),
        ]));
        assert_eq!(others[5].field("event"), "port active");
    }
}
