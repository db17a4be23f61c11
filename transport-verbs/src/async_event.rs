//! Asynchronous events: each context has those of the objects that were created through it, and of the device's ports.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use cq_core::async_event::AsyncEvent;
use cq_core::cq::WaitError;
use cq_core::transport::{AsyncEvents, EventError, Woken};

use crate::device::Context;
use crate::error::event_error;
use crate::sys::async_event;
use crate::wait;

impl Context {
    /// Takes one asynchronous event. Waits until there is one, or until the deadline, and returns `None` then. Without a
    /// deadline it waits without limit.
    ///
    /// ```no_run
    /// use std::time::{Duration, Instant};
    /// use cq_core::async_event::{AsyncEventType, Element};
    /// use transport_verbs::Context;
    ///
    /// let mut context = Context::open_first()?;
    /// let cq = context.create_cq(16, None)?;
    /// while let Some(event) = context.wait_async(Some(Instant::now() + Duration::from_secs(1)))? {
    ///     match event.element {
    ///         Element::Cq(key) if event.event_type == AsyncEventType::CQ_ERR => {
    ///             println!("queue {key} has overrun: polling it fails once it is empty");
    ///         }
    ///         _ => println!("{event}"),
    ///     }
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Overrun
    /// A poll can't detect that a queue of a device has overrun: the device reports it by CQ_ERR. Taking that event marks
    /// the queue. Once it is empty, polling fails with
    /// [`PollError::Overrun`](cq_core::transport::PollError::Overrun) ([O3](cq_core::contract#o3)). A program that takes no
    /// asynchronous events does not notice an overrun.
    ///
    /// # Acknowledging
    /// Taking an event acknowledges it. An event names its object by key or number, without a reference to it. Destroying
    /// an object discards its unread events; no event names a destroyed object.
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
            let woken = wait::block(self.as_fd(), deadline)?;
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
        async_event::next(self.raw()).map_err(event_error)
    }
}

/// Readable while there is an asynchronous event to take: `async_fd` of `struct ibv_context`.
impl AsFd for Context {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.raw().as_fd()
    }
}
