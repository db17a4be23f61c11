//! The numbers of the descriptors that the device keeps: none is a standard stream's. A program may have been
//! started without those, and would print into whatever has their numbers.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, retry_on_intr};

/// The first number behind those of the standard streams.
const FIRST: RawFd = 3;

/// Opens something that is going to be kept, by numbers behind those of the standard streams. Of these, what is
/// free is taken meanwhile: opening first, and then duplicating, would close the file once, and with that end the
/// locks that any copy of this library in the process has there.
///
/// # Errors
/// EMFILE, ENFILE: there is no descriptor; and those of `opening`.
pub fn above_streams<T>(opening: impl FnOnce() -> Result<T, Errno>) -> Result<T, Errno> {
    let _taken = take_streams()?;
    opening()
}

/// Takes the numbers of standard streams that are free. Nothing can be read or written through what has them.
fn take_streams() -> Result<Vec<OwnedFd>, Errno> {
    let mut taken = Vec::new();
    loop {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let next = retry_on_intr(|| open("/", flags, Mode::empty()))?;
        if next.as_raw_fd() >= FIRST {
            return Ok(taken);
        }
        taken.push(next);
    }
}
