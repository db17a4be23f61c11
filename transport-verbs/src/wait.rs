//! Sleeping on a descriptor: a channel's, that of a device's asynchronous events, a socket's.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use cq_core::transport::EventError;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Sleeps until there may be something to read, or the time is over: then false. What was slept is taken
/// off `left`.
pub fn block(fd: BorrowedFd<'_>, left: &mut Option<Duration>) -> Result<bool, EventError> {
    let start = Instant::now();
    let readable = ready(fd, PollFlags::IN, Deadline::after(*left))
        .map_err(|errno| EventError::Device(errno.raw_os_error()));
    if let Some(left) = left {
        *left = left.saturating_sub(start.elapsed());
    }
    readable
}

/// Sleeps until the descriptor is ready or has failed, or the time is over: then false.
pub fn ready(fd: BorrowedFd<'_>, flags: PollFlags, deadline: Deadline) -> Result<bool, Errno> {
    loop {
        // A time that the system can't express is longer than anyone waits.
        let limit = deadline.left().and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut [PollFd::from_borrowed_fd(fd, flags)], limit.as_ref()) {
            Ok(ready) => return Ok(ready > 0),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

/// When to give up: one for all steps of an operation, so that no step starts the time anew.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Option<Instant>);

impl Deadline {
    /// So much from now on; None, or longer than the clock can say, is never.
    pub fn after(limit: Option<Duration>) -> Self {
        Self(limit.and_then(|limit| Instant::now().checked_add(limit)))
    }

    /// What is left; None is for ever.
    pub fn left(self) -> Option<Duration> {
        self.0.map(|end| end.saturating_duration_since(Instant::now()))
    }
}
