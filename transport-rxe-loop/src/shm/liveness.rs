//! Who is alive: locks on bytes of the fabric's file, far behind its end, that the system drops with the
//! process. One of the rooms where `unsafe` lives.
//!
//! | byte | lock | held by |
//! |---|---|---|
//! | gate | `F_OFD_SETLK`, the descriptor's | who attaches, leaves, or replaces the file, meanwhile |
//! | [owner](super::claim) | `F_OFD_SETLK`, the [guard page](super::guard_page)'s | that process, to its end: it is never unlocked |
//! | name of an owner | `F_SETLK`, the process' | that process, so that the system tells others its number |
//!
//! The lock of an owner belongs to an opening of the file that nothing holds but a mapping, which no forked child
//! has. It goes with the process' memory: after the last instruction of its last thread, however that comes about,
//! or when it runs another program. A zombie has none, and a process whose first thread ended keeps it. No descriptor
//! that the program closes takes it away. Nothing that anybody writes into the memory makes a process dead or alive.
//!
//! The lock of a name goes as soon as the process closes any descriptor of the file. It lives all the same, and
//! [takes it again](name) as soon as it looks after others; until then nobody knows its number.
//!
//! Others ask with `F_OFD_GETLK`, which sees the locks of one's own process, too: those of another copy of
//! this library, and one's own.

#![allow(unsafe_code)]

use std::ops::Range;
use std::time::{Duration, Instant};

use rustix::fd::{AsRawFd, BorrowedFd};
use rustix::io::{Errno, retry_on_intr};

/// Processes of a fabric at most.
pub const MAX_PROCESSES: u32 = 254;

const GATE: i64 = 1 << 62;
/// The bytes of owners: by place, and each place's by generation.
const OWNERS: i64 = GATE + 1;
const GENERATIONS: i64 = 1 << 16;
/// From the byte of an owner to that of its name.
const NAME: i64 = 1 << 33;
/// How often the gate is tried while somebody else is in it.
const KNOCK: Duration = Duration::from_micros(500);

/// What became of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// It has ended, or never was.
    Dead,
    /// It runs, or is stopped.
    Alive {
        /// Its number in our process namespace, if it has one there. As old as the answer: for what must
        /// not hit another process that has the number by now, ask again.
        pid: Option<i32>,
    },
}

fn range(bytes: Range<i64>, kind: libc::c_int) -> libc::flock {
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: bytes.start,
        l_len: bytes.end - bytes.start,
        l_pid: 0,
    }
}

fn fcntl(fd: BorrowedFd<'_>, command: libc::c_int, lock: &mut libc::flock) -> Result<(), Errno> {
    retry_on_intr(|| {
        // SAFETY: the commands given here read and write one `flock`, which is borrowed for the call.
        if unsafe { libc::fcntl(fd.as_raw_fd(), command, std::ptr::from_mut(lock)) } == 0 {
            return Ok(());
        }
        Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO))
    })
}

/// Whether a lock was to be had.
fn granted(outcome: Result<(), Errno>) -> Result<bool, Errno> {
    match outcome {
        Ok(()) => Ok(true),
        Err(Errno::AGAIN | Errno::ACCESS) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// One's passage through the gate of a file, which one thread of all processes has at a time. Threads that
/// share a descriptor keep each other out by other means.
#[derive(Debug)]
pub struct Gate<'f>(BorrowedFd<'f>);

impl<'f> Gate<'f> {
    /// Waits for it, up to `deadline`; `None` if somebody else has had it for so long.
    ///
    /// # Errors
    /// What the system says.
    pub fn pass(fd: BorrowedFd<'f>, deadline: Instant) -> Result<Option<Self>, Errno> {
        loop {
            let mut lock = range(GATE..GATE + 1, libc::F_WRLCK);
            if granted(fcntl(fd, libc::F_OFD_SETLK, &mut lock))? {
                return Ok(Some(Self(fd)));
            }
            if Instant::now() >= deadline {
                return Ok(None);
            }
            std::thread::sleep(KNOCK);
        }
    }
}

impl Drop for Gate<'_> {
    fn drop(&mut self) {
        // Unlocking what is locked can't fail but where the program has closed the descriptor, and the lock with it.
        let _ = fcntl(self.0, libc::F_OFD_SETLK, &mut range(GATE..GATE + 1, libc::F_UNLCK));
    }
}

fn byte(owner: u32) -> Range<i64> {
    let at = OWNERS + i64::from(owner.rotate_left(16));
    at..at + 1
}

fn bytes(places: Range<u32>) -> Range<i64> {
    let first = |index| OWNERS + (i64::from(index) + 1) * GENERATIONS;
    first(places.start)..first(places.end)
}

fn name_of(bytes: Range<i64>) -> Range<i64> {
    bytes.start + NAME..bytes.end + NAME
}

/// Locks the byte of an owner for as long as anything holds this opening of the file; false if another opening has
/// it.
pub fn hold(fd: BorrowedFd<'_>, owner: u32) -> Result<bool, Errno> {
    granted(fcntl(fd, libc::F_OFD_SETLK, &mut range(byte(owner), libc::F_WRLCK)))
}

/// Has the system tell others the number of this process, which is this owner, until it closes a descriptor of
/// the file. False if another process has said that it is this owner.
pub fn name(fd: BorrowedFd<'_>, owner: u32) -> Result<bool, Errno> {
    granted(fcntl(fd, libc::F_SETLK, &mut range(name_of(byte(owner)), libc::F_WRLCK)))
}

/// A lock on some of these bytes: whose it is, if that can be told.
fn found(fd: BorrowedFd<'_>, bytes: Range<i64>) -> Result<Option<i32>, Errno> {
    let mut lock = range(bytes, libc::F_WRLCK);
    fcntl(fd, libc::F_OFD_GETLK, &mut lock)?;
    Ok((lock.l_type != libc::F_UNLCK as libc::c_short).then_some(lock.l_pid))
}

/// Somebody who holds one of these bytes.
fn holder(fd: BorrowedFd<'_>, bytes: Range<i64>) -> Result<Liveness, Errno> {
    if found(fd, bytes.clone())?.is_none() {
        return Ok(Liveness::Dead);
    }
    let pid = found(fd, name_of(bytes))?.filter(|&pid| pid > 0);
    Ok(Liveness::Alive { pid })
}

/// What became of an owner. Any number is harmless.
pub fn ask(fd: BorrowedFd<'_>, owner: u32) -> Result<Liveness, Errno> {
    holder(fd, byte(owner))
}

/// What became of whoever took the place at an index last.
pub fn ask_place(fd: BorrowedFd<'_>, index: u32) -> Result<Liveness, Errno> {
    holder(fd, bytes(index..index + 1))
}

/// Whether any process is attached to the file.
pub fn anybody(fd: BorrowedFd<'_>) -> Result<bool, Errno> {
    Ok(found(fd, bytes(0..MAX_PROCESSES))?.is_some())
}

/// Whether this process has no name, for any copy of this library.
pub fn is_without_us(fd: BorrowedFd<'_>) -> Result<bool, Errno> {
    let us = std::process::id() as i32;
    // The system names one lock of a range, not the first: so what lies on either side of it is asked for too.
    let mut left = vec![name_of(bytes(0..MAX_PROCESSES))];
    while let Some(asked) = left.pop() {
        let mut lock = range(asked.clone(), libc::F_WRLCK);
        fcntl(fd, libc::F_OFD_GETLK, &mut lock)?;
        if lock.l_type == libc::F_UNLCK as libc::c_short {
            continue;
        }
        if lock.l_pid == us {
            return Ok(false);
        }
        // A length of 0 goes on without end.
        let len = if lock.l_len == 0 { i64::MAX } else { lock.l_len };
        let sides = [asked.start..lock.l_start, lock.l_start.saturating_add(len)..asked.end];
        left.extend(sides.into_iter().filter(|side| !side.is_empty()));
    }
    Ok(true)
}

#[cfg(test)]
mod tests;
