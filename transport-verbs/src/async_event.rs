//! Asynchronous events: what the device reports on its own account. Each opening of the device has its
//! own, of what was made through it and of the device's ports.
//!
//! ```no_run
//! use std::time::Duration;
//! use cq_core::async_event::{AsyncEventType, Element};
//! use transport_verbs::Context;
//!
//! let mut context = Context::open_first()?;
//! let cq = context.create_cq(16, None)?;
//! while let Some(event) = context.wait_async(Some(Duration::from_secs(1)))? {
//!     match event.element {
//!         Element::Cq(key) if event.event_type == AsyncEventType::CQ_ERR => {
//!             println!("queue {key} has overrun: its next empty poll says so");
//!         }
//!         _ => println!("{event}"),
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Overrun
//! A poll can't see that a queue of a device has overrun. The device reports it by a CQ_ERR, and who takes
//! that event here thereby tells the queue, which from then on ends with
//! [`PollError::Overrun`](cq_core::transport::PollError::Overrun) once it is empty (O3). A program that
//! never takes asynchronous events is never told.
//!
//! # Acknowledging
//! Taking an event acknowledges it. An event names its object by key or number and refers to nothing;
//! those that nobody has read go with their object, and a dead one is never named.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use cq_core::async_event::AsyncEvent;
use cq_core::transport::{AsyncEvents, EventError};

use crate::device::Context;
use crate::error::event_error;
use crate::sys::async_event;
use crate::wait;

impl Context {
    /// Takes one asynchronous event; sleeps until there is one, but no longer than `limit`, where `None`
    /// is for ever. `None` says that the time is over.
    ///
    /// # Errors
    /// The device, or the system under it, failed.
    pub fn wait_async(
        &mut self,
        limit: Option<Duration>,
    ) -> Result<Option<AsyncEvent>, EventError> {
        let mut left = limit;
        loop {
            let event = self.next_async()?;
            if event.is_some() || !wait::block(self.as_fd(), &mut left)? {
                return Ok(event);
            }
        }
    }
}

impl AsyncEvents for Context {
    fn next_async(&mut self) -> Result<Option<AsyncEvent>, EventError> {
        async_event::next(self.raw()).map_err(event_error)
    }
}

/// Readable while there is an asynchronous event to take: `async_fd` of `struct ibv_context`.
impl AsFd for Context {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.raw().as_fd()
    }
}
