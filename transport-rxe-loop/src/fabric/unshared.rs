//! Openings of a fabric's file that a forked child must not have. A lock that belongs to an opening lasts as long as
//! anybody has that: by a child of his, who was killed while he attached would seem to live on, or keep the
//! [gate](super::alive::Gate) shut.
//!
//! - Where the lock is to last as long as the process, a fork [waits](hold_off) for the system calls in which a
//!   descriptor has it.
//! - What stays open for longer is [noted](Opened) until it is closed, or the [registry](super::registry) has it. The
//!   child closes what either says.

use std::thread;
use std::time::{Duration, Instant};

use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use rustix::io::Errno;

use crate::signals::Blocked;
use crate::sync::{self, AtomicU32};

const NOTHING: u32 = u32::MAX;
const PAUSE: Duration = Duration::from_micros(100);
/// For how long a thread may be about to fork.
const PATIENCE: Duration = Duration::from_secs(1);

static HELD_OFF: AtomicU32 = AtomicU32::new(0);
static OPENED: AtomicU32 = AtomicU32::new(NOTHING);

/// No other thread of this process forks meanwhile.
#[derive(Debug)]
pub struct HeldOff {
    // A handler that forks would wait for the thread that it interrupts.
    _signals: Option<Blocked>,
}

/// Has forks wait until what it returns is dropped. Only for system calls that do not wait: what else a thread may
/// wait for, an allocator's lock for example, another one that is about to fork may have by then.
///
/// # Errors
/// BUSY: another thread has been about to fork for so long. What it waits for may be this one's.
pub fn hold_off() -> Result<HeldOff, Errno> {
    let end = Instant::now() + PATIENCE;
    HeldOff::until(|| Instant::now() > end).ok_or(Errno::BUSY)
}

/// The same, for a thread that is about to fork itself, however long that takes.
pub fn hold_others_off() -> Option<HeldOff> {
    HeldOff::until(|| false)
}

impl HeldOff {
    fn until(is_too_long: impl Fn() -> bool) -> Option<Self> {
        // It does not fail; and if it did, nothing but handlers that fork would be in danger.
        let signals = Blocked::all().ok();
        while !sync::try_lock(&HELD_OFF) {
            if is_too_long() {
                return None;
            }
            thread::sleep(PAUSE);
        }
        Some(Self { _signals: signals })
    }
}

impl Drop for HeldOff {
    fn drop(&mut self) {
        sync::unlock(&HELD_OFF);
    }
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
        sync::store_u32(&OPENED, number);
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
    let number = sync::load_u32(&OPENED);
    sync::store_u32(&OPENED, NOTHING);
    (number != NOTHING).then_some(number as RawFd)
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;
    use crate::actor::Waiting;

    #[test]
    fn x03_what_is_opened_is_noted_before_anybody_forks() {
        let null = File::open("/dev/null").unwrap();
        // As a thread that forks.
        let forks = hold_others_off();
        thread::scope(|scope| {
            let opens = Waiting::new(scope, || Opened::by(|| Ok(null.into())));
            let waits = opens.has_to_wait();
            drop(forks);
            assert!(waits && opens.join().unwrap().is_ok());
        });
    }
}
