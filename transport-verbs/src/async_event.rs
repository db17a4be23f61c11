//! Asynchronous events: each context has those of the objects that were created through it, and of the device's ports.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::time::Instant;

use cq_core::async_event::AsyncEvent;
use cq_core::channel::descriptor;
use cq_core::transport::{AsyncEvents, BlockAsync, EventError, Woken};

use crate::device::Context;
use crate::error::event_error;
use crate::sys::async_event;

impl AsyncEvents for Context {
    fn take_async_event(&mut self) -> Result<Option<AsyncEvent>, EventError> {
        async_event::next(self.raw()).map_err(event_error)
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
        self.raw().as_fd()
    }
}

impl AsRawFd for Context {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}
