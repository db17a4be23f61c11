//! Openings of a fabric's file that a forked child must not inherit. A lock of an opening lasts as long as any
//! process has that opening: a child that inherits it would make a process that was killed while it attached seem
//! alive, or keep the [gate](super::liveness::Gate) locked.
//!
//! - If the lock is to last as long as the process, a fork [waits](hold_off) for the system calls during which a
//!   descriptor holds it.
//! - A descriptor that stays open for longer is [recorded](Opened) until it is closed, or kept by the
//!   [registry](super::registry). The child closes the descriptors in both.

use std::thread;
use std::time::{Duration, Instant};

use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use rustix::io::Errno;

use crate::shm::signals::Blocked;
use crate::sync::{self, AtomicU32};

const NOTHING: u32 = u32::MAX;
const PAUSE: Duration = Duration::from_micros(100);
/// How long to wait for a thread that is about to fork.
const PATIENCE: Duration = Duration::from_secs(1);

/// The number of threads that are about to fork, or that forks are held off. A change from one to the other acquires
/// what was done before.
static FORKING: AtomicU32 = AtomicU32::new(0);
const HELD_OFF: u32 = u32::MAX;
static OPENED: AtomicU32 = AtomicU32::new(NOTHING);

/// No thread of this process forks while this exists.
#[derive(Debug)]
pub struct HeldOff {
    // A signal handler that forks would wait for the thread that it interrupts.
    _signals: Blocked,
}

/// Holds forks off until the result is dropped. Only for system calls that do not wait: whatever else the thread may
/// wait for, such as an allocator's lock, may be held by a thread that is about to fork.
///
/// # Errors
/// BUSY: another thread has been about to fork for too long. It may wait for what this thread holds.
pub fn hold_off() -> Result<HeldOff, Errno> {
    let end = Instant::now() + PATIENCE;
    loop {
        let held_off = try_hold_off();
        if held_off.as_ref().err() != Some(&Errno::BUSY) || Instant::now() > end {
            return held_off;
        }
        thread::sleep(PAUSE);
    }
}

/// The same, without waiting.
///
/// # Errors
/// BUSY: another thread is about to fork, or holds forks off.
pub fn try_hold_off() -> Result<HeldOff, Errno> {
    let signals =
        Blocked::all().map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    match sync::cas(&FORKING, 0, HELD_OFF) {
        Ok(()) => Ok(HeldOff { _signals: signals }),
        Err(_) => Err(Errno::BUSY),
    }
}

impl Drop for HeldOff {
    fn drop(&mut self) {
        sync::release(&FORKING, 0);
    }
}

/// Begins a fork, once forks are not held off. Other threads may fork meanwhile, and so may a signal handler in this
/// one.
pub fn begin() {
    loop {
        let mut begins = false;
        sync::fetch_update(&FORKING, |seen| {
            begins = seen != HELD_OFF;
            begins.then(|| seen + 1)
        });
        if begins {
            return;
        }
        thread::sleep(PAUSE);
    }
}

/// Ends a fork, in the parent.
pub fn end() {
    sync::fetch_update(&FORKING, |seen| if seen == HELD_OFF { None } else { seen.checked_sub(1) });
}

/// Ends a fork, in the child, which has no other threads. If a signal handler forked during a fork of this thread,
/// that fork still ends with [`end`].
pub fn begin_anew() {
    sync::release(&FORKING, 0);
}

/// A file that is open, by a descriptor that a forked child closes. One at a time: the opener has locked the
/// registry.
#[derive(Debug)]
pub struct Opened {
    // Dropped first: once the file is closed, its number may refer to another.
    note: Note,
    fd: OwnedFd,
}

/// Records a descriptor that a forked child closes.
#[derive(Debug)]
struct Note(u32);

impl Opened {
    /// Opens a file by `open`.
    ///
    /// # Errors
    /// Those of `open`, and of holding forks off.
    pub fn by(open: impl FnOnce() -> Result<OwnedFd, Errno>) -> Result<Self, Errno> {
        let _held_off = hold_off()?;
        let fd = open()?;
        let number = fd.as_raw_fd() as u32;
        sync::store(&OPENED, number);
        Ok(Self { note: Note(number), fd })
    }

    /// Hands the descriptor over to an owner from which a forked child closes it as well.
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
        // Another registry, which tests have, may have recorded its own since.
        let _ = sync::cas(&OPENED, self.0, NOTHING);
    }
}

/// The descriptor that was recorded when this process was forked. For the child, once.
pub fn inherited() -> Option<RawFd> {
    let number = sync::load(&OPENED);
    sync::store(&OPENED, NOTHING);
    (number != NOTHING).then_some(number as RawFd)
}

#[cfg(test)]
mod tests;
