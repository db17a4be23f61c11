//! Sleeping on a descriptor: a channel's, that of a device's asynchronous events, a socket's.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use cq_core::transport::{EventError, Woken};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Sleeps until there may be something to read, or the deadline has passed, or this thread has handled a
/// signal.
pub fn block(fd: BorrowedFd<'_>, deadline: Option<Instant>) -> Result<Woken, EventError> {
    match once(fd, PollFlags::IN, Deadline(deadline)) {
        Ok(true) => Ok(Woken::Event),
        Ok(false) => Ok(Woken::DeadlinePassed),
        Err(Errno::INTR) => Ok(Woken::Interrupted),
        Err(errno) => Err(EventError::Device(errno.raw_os_error())),
    }
}

/// Sleeps until the descriptor is ready or has failed, or the time is over: then false. No signal ends it.
pub fn ready(fd: BorrowedFd<'_>, flags: PollFlags, deadline: Deadline) -> Result<bool, Errno> {
    loop {
        match once(fd, flags, deadline) {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}

/// The same, but that a signal ends it: EINTR.
fn once(fd: BorrowedFd<'_>, flags: PollFlags, deadline: Deadline) -> Result<bool, Errno> {
    // A time that the system can't express is longer than anyone waits.
    let limit = deadline.left().and_then(|left| Timespec::try_from(left).ok());
    let ready = poll(&mut [PollFd::from_borrowed_fd(fd, flags)], limit.as_ref())?;
    Ok(ready > 0)
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
