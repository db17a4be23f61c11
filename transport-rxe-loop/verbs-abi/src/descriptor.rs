//! The descriptors that programs see: of completion channels, and of asynchronous events.
//!
//! The device's own must never block, and programs decide by `fcntl(2)` whether theirs does. So theirs is a second
//! opening of the same FIFO: it is readable as long as the other is, and its flags are the program's.
//!
//! Waiting must not take out of the FIFO what others wait for, and has to be restarted after a signal exactly
//! where `read(2)` is, which `poll(2)` never is: `tee(2)` does both.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::OnceLock;

use rustix::fs::{Mode, OFlags, open};
use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, tee};

use crate::errno::Errno;

/// A descriptor for a program.
#[derive(Debug)]
pub struct Descriptor(OwnedFd);

impl Descriptor {
    /// One that is readable as long as the FIFO `device` is, which stays open as long as this.
    ///
    /// # Errors
    /// EMFILE, ENFILE: the system has none. ENOENT: `/proc` is not there.
    pub fn over(device: BorrowedFd<'_>) -> Result<Self, Errno> {
        let path = format!("/proc/self/fd/{}", device.as_raw_fd());
        Ok(Self(open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?))
    }

    /// Its number.
    pub fn number(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// Waits until the descriptor is readable, if its flags say that the program wants to.
///
/// # Errors
/// EAGAIN: it does not want to, and there is nothing. EINTR: a signal came whose handler does not have calls restarted.
pub fn wait(descriptor: BorrowedFd<'_>) -> Result<(), Errno> {
    let (reader, writer) = scratch()?;
    if tee(descriptor, writer, 1, SpliceFlags::empty())? > 0 {
        rustix::io::read(reader, &mut [0; 1])?;
    }
    Ok(())
}

/// Where `tee` puts what nobody wants; everybody takes out what they put in.
fn scratch() -> Result<(BorrowedFd<'static>, BorrowedFd<'static>), Errno> {
    static PIPE: OnceLock<(OwnedFd, OwnedFd)> = OnceLock::new();
    if PIPE.get().is_none() {
        // Who comes second closes its own again.
        let _second = PIPE.set(pipe_with(PipeFlags::CLOEXEC)?);
    }
    let (reader, writer) = PIPE.get().ok_or(Errno::IO)?;
    Ok((reader.as_fd(), writer.as_fd()))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
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
        assert!(is_readable(&descriptor));
        // Waiting takes nothing out.
        wait(descriptor.0.as_fd()).unwrap();
        wait(descriptor.0.as_fd()).unwrap();
        assert!(is_readable(&descriptor));
        rustix::io::read(&reader, &mut [0; 1]).unwrap();
        assert!(!is_readable(&descriptor));
    }

    #[test]
    fn n10_whoever_waits_is_woken() {
        let (reader, writer) = pipe().unwrap();
        let descriptor = Descriptor::over(reader.as_fd()).unwrap();
        let (woken, is_woken) = mpsc::channel();
        thread::scope(|scope| {
            for _ in 0..40 {
                scope.spawn(|| woken.send(wait(descriptor.0.as_fd())).unwrap());
            }
            rustix::io::write(&writer, &[1]).unwrap();
            for _ in 0..40 {
                assert_eq!(is_woken.recv_timeout(Duration::from_secs(20)), Ok(Ok(())));
            }
        });
    }

    #[test]
    fn n10_a_program_that_does_not_want_to_wait_is_told_so() {
        let (reader, _writer) = pipe().unwrap();
        let descriptor = Descriptor::over(reader.as_fd()).unwrap();
        fcntl_setfl(&descriptor.0, OFlags::NONBLOCK).unwrap();
        assert_eq!(wait(descriptor.0.as_fd()), Err(Errno::AGAIN));
    }
}
