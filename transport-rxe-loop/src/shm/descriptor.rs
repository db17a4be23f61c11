//! Descriptors that the device keeps.
//!
//! - They never have the number of a standard stream. A program may have been started without those, and would print into
//!   whatever has their numbers.
//! - A program may close descriptors that are not its own, and open others, which get their numbers. So each is
//!   [known](KeptFd) by its file.

use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::file_id::{FileId, id_of};

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

/// Makes a socket that neither blocks nor is inherited by another program.
///
/// # Errors
/// As for [`above_streams`].
pub fn socket(family: AddressFamily, kind: SocketType) -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    above_streams(|| socket_with(family, kind, flags, None))
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

/// A descriptor that the device keeps, of a file that has an inode of its own: a FIFO, a pipe, a socket. Once the program
/// has closed it, it is neither used nor closed, whatever its number refers to. The program must not close it at the same
/// time as it is used.
#[derive(Debug)]
pub struct KeptFd {
    fd: Arc<OwnedFd>,
    id: FileId,
}

impl KeptFd {
    /// Keeps a descriptor that was just opened.
    ///
    /// # Errors
    /// The system's error.
    pub fn new(fd: OwnedFd) -> Result<Self, Errno> {
        let id = id_of(fd.as_fd())?;
        Ok(Self::of(fd, id))
    }

    /// Keeps a descriptor of a file whose identity is known.
    pub fn of(fd: OwnedFd, id: FileId) -> Self {
        Self { fd: Arc::new(fd), id }
    }

    /// The descriptor.
    ///
    /// # Errors
    /// BADF: the program has closed it.
    pub fn get(&self) -> Result<BorrowedFd<'_>, Errno> {
        let fd = self.fd.as_fd();
        if id_of(fd) == Ok(self.id) { Ok(fd) } else { Err(Errno::BADF) }
    }

    /// The descriptor, right after it was found to be open; or for the program, which may have closed it.
    pub fn unchecked(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Never closes it.
    pub fn leave_open(self) {
        mem::forget(self);
    }
}

impl Drop for KeptFd {
    fn drop(&mut self) {
        if self.get().is_err() {
            leave_open(&self.fd);
        }
    }
}

/// Has a descriptor never be closed, since its number may be another file's by now.
pub fn leave_open(fd: &Arc<OwnedFd>) {
    mem::forget(Arc::clone(fd));
}

#[cfg(test)]
mod tests;
