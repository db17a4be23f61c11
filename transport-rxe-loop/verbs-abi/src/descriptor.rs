//! The descriptors that programs see: of completion channels, and of asynchronous events.
//!
//! The device's own must never block, and programs decide by `fcntl(2)` whether theirs does. So theirs is a second
//! opening of the same FIFO: it is readable as long as the other is, and its flags are the program's.
//! [`wait`](mod@crate::wait) waits for it.

use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::fs::{Mode, OFlags, open};
use transport_rxe_loop::descriptor::above_streams;

use crate::errno::Errno;
use crate::wait;

/// A descriptor for a program.
#[derive(Debug)]
pub struct Descriptor(OwnedFd);

impl Descriptor {
    /// One that is readable as long as the FIFO `device` is, which stays open as long as this.
    ///
    /// # Errors
    /// EMFILE, ENFILE: the system has none. ENOENT: `/proc` is not there.
    pub fn over(device: BorrowedFd<'_>) -> Result<Self, Errno> {
        wait::prepare()?;
        let path = format!("/proc/self/fd/{}", device.as_raw_fd());
        let opening = || open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        Ok(Self(above_streams(opening)?))
    }

    /// Its number.
    pub fn number(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}
