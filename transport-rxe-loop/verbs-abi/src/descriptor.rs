//! The descriptors that programs see: of completion channels, and of asynchronous events.
//!
//! The device's own must never block, and programs decide by `fcntl(2)` whether theirs does. So theirs is one of
//! `epoll(7)` that watches the device's: it is readable as long as that is, and its flags are the program's.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::event::{PollFd, PollFlags, epoll, poll};
use rustix::fs::{OFlags, fcntl_getfl};

use crate::errno::Errno;

/// A descriptor for a program.
#[derive(Debug)]
pub struct Descriptor(OwnedFd);

impl Descriptor {
    /// One that is readable as long as `device` is, which stays open as long as this.
    ///
    /// # Errors
    /// EMFILE, ENFILE, ENOMEM: the system has none.
    pub fn over(device: BorrowedFd<'_>) -> Result<Self, Errno> {
        let descriptor = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&descriptor, device, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
        Ok(Self(descriptor))
    }

    /// Its number.
    pub fn number(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// Waits as the program wants it, by the flags of its descriptor, until that is readable.
///
/// # Errors
/// EAGAIN: it does not want to wait. EINTR: a signal came.
pub fn wait(descriptor: BorrowedFd<'_>) -> Result<(), Errno> {
    if fcntl_getfl(descriptor)?.contains(OFlags::NONBLOCK) {
        return Err(Errno::AGAIN);
    }
    let fd = descriptor.as_fd();
    poll(&mut [PollFd::new(&fd, PollFlags::IN)], None)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use rustix::event::Timespec;
    use rustix::fs::fcntl_setfl;
    use rustix::pipe::pipe;

    use super::*;

    fn is_readable(descriptor: &Descriptor) -> bool {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut watched = [PollFd::new(&descriptor.0, PollFlags::IN)];
        poll(&mut watched, Some(&now)).unwrap() == 1
    }

    #[test]
    fn n10_it_is_readable_as_long_as_the_devices_is() {
        let (reader, writer) = pipe().unwrap();
        let descriptor = Descriptor::over(reader.as_fd()).unwrap();
        assert!(!is_readable(&descriptor));
        rustix::io::write(&writer, &[1]).unwrap();
        assert!(is_readable(&descriptor) && is_readable(&descriptor));
        wait(descriptor.0.as_fd()).unwrap();
        rustix::io::read(&reader, &mut [0; 1]).unwrap();
        assert!(!is_readable(&descriptor));
    }

    #[test]
    fn n10_a_program_that_does_not_want_to_wait_is_told_so() {
        let (reader, _writer) = pipe().unwrap();
        let descriptor = Descriptor::over(reader.as_fd()).unwrap();
        fcntl_setfl(&descriptor.0, OFlags::NONBLOCK).unwrap();
        assert_eq!(wait(descriptor.0.as_fd()), Err(Errno::AGAIN));
    }
}
