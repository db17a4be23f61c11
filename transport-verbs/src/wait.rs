//! Waiting on a descriptor: of a channel, of a device's asynchronous events, of a socket.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use cq_core::transport::{EventError, Woken};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Waits until there may be something to read, or the deadline has passed, or this thread has handled a signal.
pub fn block(fd: BorrowedFd<'_>, deadline: Option<Instant>) -> Result<Woken, EventError> {
    match once(fd, PollFlags::IN, Deadline(deadline)) {
        Ok(true) => Ok(Woken::Event),
        Ok(false) => Ok(Woken::DeadlinePassed),
        Err(Errno::INTR) => Ok(Woken::Interrupted),
        Err(errno) => Err(EventError::Device(errno.raw_os_error())),
    }
}

/// Waits until the descriptor is ready or has failed, or the deadline has passed: then false. A signal does not end it.
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

/// The deadline of all steps of an operation.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Option<Instant>);

impl Deadline {
    /// After so much time; None, or more than the clock can express, is never.
    pub fn after(limit: Option<Duration>) -> Self {
        Self(limit.and_then(|limit| Instant::now().checked_add(limit)))
    }

    /// The time left; None is without limit.
    pub fn left(self) -> Option<Duration> {
        self.0.map(|end| end.saturating_duration_since(Instant::now()))
    }
}
