//! Sleeping on a descriptor: a channel's, or that of a device's asynchronous events.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use cq_core::transport::EventError;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Sleeps until there may be something to read, or the time is over: then false. What was slept is taken
/// off `left`.
pub fn block(fd: BorrowedFd<'_>, left: &mut Option<Duration>) -> Result<bool, EventError> {
    loop {
        let start = Instant::now();
        // A time that the system can't express is longer than anyone waits.
        let limit = left.and_then(|left| Timespec::try_from(left).ok());
        let polled = poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], limit.as_ref());
        if let Some(left) = left {
            *left = left.saturating_sub(start.elapsed());
        }
        match polled {
            Ok(ready) => return Ok(ready > 0),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(EventError::Device(errno.raw_os_error())),
        }
    }
}
