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

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::pipe::pipe;

    use super::*;
    use crate::wait::{Look, until_found};

    fn is_readable(descriptor: &Descriptor) -> bool {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut watched = [PollFd::new(&descriptor.0, PollFlags::IN)];
        poll(&mut watched, Some(&now)).unwrap() == 1
    }

    #[test]
    fn n10_it_is_readable_as_long_as_the_devices_is() {
        let (reader, writer) = pipe().unwrap();
        let descriptor = &Descriptor::over(reader.as_fd()).unwrap();
        assert!(!is_readable(descriptor));
        rustix::io::write(&writer, &[1]).unwrap();
        assert!(is_readable(descriptor));
        // Waiting for it takes nothing out.
        let rounds = &std::cell::Cell::new(0);
        let found = until_found(|| match rounds.replace(rounds.get() + 1) {
            2 => Ok(Look::Found(())),
            _ => Ok(Look::Nothing(descriptor.number())),
        });
        assert_eq!((found, rounds.get()), (Ok(()), 3));
        assert!(is_readable(descriptor));
        rustix::io::read(&reader, &mut [0; 1]).unwrap();
        assert!(!is_readable(descriptor));
    }
}
