//! Waiting on a descriptor of the connection setup: of librdmacm, of a socket.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Waits until the descriptor is ready or has failed, or the deadline has passed: then false. A signal does not end it.
pub fn ready(fd: BorrowedFd<'_>, flags: PollFlags, deadline: Deadline) -> Result<bool, Errno> {
    loop {
        // A time that the system can't express is longer than anyone waits.
        let limit = deadline.left().and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut [PollFd::from_borrowed_fd(fd, flags)], limit.as_ref()) {
            Err(Errno::INTR) => {}
            other => return other.map(|ready| ready > 0),
        }
    }
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
