//! The numbers of the descriptors that the device keeps: none is a standard stream's. A program may have been
//! started without those, and would print into whatever has their numbers.

use std::os::fd::{AsRawFd, IntoRawFd, RawFd};

use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, retry_on_intr};

/// The first number behind those of the standard streams.
const FIRST: RawFd = 3;

/// Opens something by a number behind those of the standard streams. Of these, what is free is taken first, for
/// good, since other threads may be about to open something as well. Moving what was opened would close it once, and
/// with that end the locks that any copy of this library in the process has there.
///
/// # Errors
/// EMFILE, ENFILE: there is no descriptor; and those of `opening`.
pub fn above_streams<T>(opening: impl FnOnce() -> Result<T, Errno>) -> Result<T, Errno> {
    take_streams()?;
    opening()
}

/// Takes the numbers of standard streams that are free. Nothing can be read or written through what has them, so
/// that the program meets EBADF as before.
fn take_streams() -> Result<(), Errno> {
    loop {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let next = retry_on_intr(|| open("/", flags, Mode::empty()))?;
        if next.as_raw_fd() >= FIRST {
            return Ok(());
        }
        let _its = next.into_raw_fd();
    }
}
