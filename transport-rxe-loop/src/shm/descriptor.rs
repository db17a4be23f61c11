//! Descriptors that the device keeps never have the number of a standard stream. A program may have been started
//! without those, and would print into whatever has their numbers.

use std::os::fd::{AsRawFd, IntoRawFd, RawFd};

use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, retry_on_intr};

/// The first number after those of the standard streams.
const FIRST: RawFd = 3;

/// Opens a descriptor with a number above those of the standard streams. Free numbers of these are taken first, and
/// never released, since other threads may open files concurrently. Moving the new descriptor instead would close it
/// once, and so drop the locks that any copy of this library in the process holds on the file.
///
/// # Errors
/// EMFILE, ENFILE: there is no descriptor; and the errors of `opening`.
pub fn above_streams<T>(opening: impl FnOnce() -> Result<T, Errno>) -> Result<T, Errno> {
    take_streams()?;
    opening()
}

/// Takes the free numbers of standard streams, with descriptors that can be neither read nor written: the program
/// gets EBADF as before.
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
