//! Openings of a fabric's file that a forked child must not have. A lock that belongs to an opening lasts as long as
//! anybody has that: by a child of his, who was killed while he attached would seem to live on, or keep the
//! [gate](super::liveness::Gate) shut.
//!
//! - Where the lock is to last as long as the process, a fork [waits](hold_off) for the system calls in which a
//!   descriptor has it.
//! - What stays open for longer is [noted](Opened) until it is closed, or the [registry](super::registry) has it. The
//!   child closes what either says.

use std::thread;
use std::time::{Duration, Instant};

use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use rustix::io::Errno;

use crate::shm::signals::Blocked;
use crate::sync::{self, AtomicU32};

const NOTHING: u32 = u32::MAX;
const PAUSE: Duration = Duration::from_micros(100);
/// For how long a thread may be about to fork.
const PATIENCE: Duration = Duration::from_secs(1);

/// How many threads are about to fork, or that forks are held off. Who changes it to either sees what was done before the
/// other was over.
static FORKING: AtomicU32 = AtomicU32::new(0);
const HELD_OFF: u32 = u32::MAX;
static OPENED: AtomicU32 = AtomicU32::new(NOTHING);

/// No thread of this process forks meanwhile.
#[derive(Debug)]
pub struct HeldOff {
    // A handler that forks would wait for the thread that it interrupts.
    _signals: Blocked,
}

/// Has forks wait until what it returns is dropped. Only for system calls that do not wait: what else a thread may
/// wait for, an allocator's lock for example, another one that is about to fork may have by then.
///
/// # Errors
/// BUSY: another thread has been about to fork for so long. What it waits for may be this one's.
pub fn hold_off() -> Result<HeldOff, Errno> {
    let end = Instant::now() + PATIENCE;
    loop {
        let signals =
            Blocked::all().map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        if sync::swap_if(&FORKING, 0, HELD_OFF).is_ok() {
            return Ok(HeldOff { _signals: signals });
        }
        if Instant::now() > end {
            return Err(Errno::BUSY);
        }
        thread::sleep(PAUSE);
    }
}

impl Drop for HeldOff {
    fn drop(&mut self) {
        sync::release(&FORKING, 0);
    }
}

/// A fork begins: nobody holds it off. Others may fork meanwhile, a handler in this thread too.
pub fn begin() {
    loop {
        let mut begins = false;
        sync::raise_from(&FORKING, |seen| {
            begins = seen != HELD_OFF;
            begins.then(|| seen + 1)
        });
        if begins {
            return;
        }
        thread::sleep(PAUSE);
    }
}

/// A fork is over, in the parent.
pub fn end() {
    sync::raise_from(&FORKING, |seen| if seen == HELD_OFF { None } else { seen.checked_sub(1) });
}

/// A fork is over, in the child: the others that forked are not here. One that this thread is in the midst of, whose handler
/// forked, ends with [`end`] all the same.
pub fn begin_anew() {
    sync::release(&FORKING, 0);
}

/// A file that is open, by a descriptor that a forked child closes. One at a time: who opens one has the registry.
#[derive(Debug)]
pub struct Opened {
    // Dropped first: the number may be another file's once this one is closed.
    note: Note,
    fd: OwnedFd,
}

/// Has a forked child close a descriptor.
#[derive(Debug)]
struct Note(u32);

impl Opened {
    /// What `open` opens.
    ///
    /// # Errors
    /// Its own, and what the system says.
    pub fn by(open: impl FnOnce() -> Result<OwnedFd, Errno>) -> Result<Self, Errno> {
        let _held_off = hold_off()?;
        let fd = open()?;
        let number = fd.as_raw_fd() as u32;
        sync::store(&OPENED, number);
        Ok(Self { note: Note(number), fd })
    }

    /// Hands the descriptor over to what a forked child closes as well.
    pub fn hand_over<T>(self, to: impl FnOnce(OwnedFd) -> T) -> T {
        let Self { note: _until_then, fd } = self;
        to(fd)
    }
}

impl AsFd for Opened {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        // Another copy of the registry, which tests have, may have noted its own since.
        let _ = sync::swap_if(&OPENED, self.0, NOTHING);
    }
}

/// What was open when this process was forked, and is in no registry. For the child, once.
pub fn inherited() -> Option<RawFd> {
    let number = sync::load(&OPENED);
    sync::store(&OPENED, NOTHING);
    (number != NOTHING).then_some(number as RawFd)
}

#[cfg(test)]
mod tests;
