//! Liveness of processes: locks on bytes of the fabric's file, far behind its end, that the system drops with the
//! process. One of the modules with `unsafe` code.
//!
//! | byte | lock | held by |
//! |---|---|---|
//! | gate | `F_OFD_SETLK`, of the descriptor | a process while it attaches, leaves, or replaces the file |
//! | [owner](super::claim) | `F_OFD_SETLK`, of the [guard page](super::guard_page) | that process, to its end: it is never unlocked |
//! | name of an owner | `F_SETLK`, of the process | that process, so that the system tells others its pid |
//!
//! The lock of an owner belongs to an opening of the file that only a mapping holds, which no forked child has. It is
//! dropped with the process's memory: after the last instruction of its last thread, however the process ends, or
//! when it execs. A zombie has no lock; a process whose first thread ended keeps it. Closing descriptors does not
//! drop it, and nothing written to memory changes it.
//!
//! The lock of a name is dropped as soon as the process closes any descriptor of the file. The process is alive all
//! the same, and [takes it again](name) when it next checks the others; until then they do not know its pid.
//!
//! Others query with `F_OFD_GETLK`, which also reports the locks of this process: its own, and those of another copy
//! of this library.

#![allow(unsafe_code)]

use std::ops::Range;
use std::time::{Duration, Instant};

use rustix::fd::{AsRawFd, BorrowedFd};
use rustix::io::{Errno, retry_on_intr};

/// The maximum number of processes of a fabric.
pub const MAX_PROCESSES: u32 = 254;

const GATE: i64 = 1 << 62;
/// The bytes of owners: by attachment, and for each attachment by generation.
const OWNERS: i64 = GATE + 1;
const GENERATIONS: i64 = 1 << 16;
/// From the byte of an owner to that of its name.
const NAME: i64 = 1 << 33;
/// How long to wait between two attempts to take the gate.
pub const KNOCK: Duration = Duration::from_micros(500);

/// Whether a process is alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// The process has ended, or never existed.
    Dead,
    /// The process runs, or is stopped.
    Alive {
        /// Its pid in our pid namespace, if known. May be stale: before an action that must not hit another process
        /// with the same pid, ask again.
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
        // SAFETY: the commands used here read and write one `flock`, which is borrowed for the call.
        if unsafe { libc::fcntl(fd.as_raw_fd(), command, std::ptr::from_mut(lock)) } == 0 {
            return Ok(());
        }
        Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO))
    })
}

/// Whether a lock was granted.
fn granted(outcome: Result<(), Errno>) -> Result<bool, Errno> {
    match outcome {
        Ok(()) => Ok(true),
        Err(Errno::AGAIN | Errno::ACCESS) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// The gate of a file, which one thread of all processes holds at a time. Threads that share a descriptor exclude
/// each other by other means.
#[derive(Debug)]
pub struct Gate<'f>(BorrowedFd<'f>);

impl<'f> Gate<'f> {
    /// Waits for the gate, up to `deadline`; `None` if another process held it for so long.
    ///
    /// # Errors
    /// The system's error.
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
        // Unlocking fails only if the program closed the descriptor, which dropped the lock.
        let _ = fcntl(self.0, libc::F_OFD_SETLK, &mut range(GATE..GATE + 1, libc::F_UNLCK));
    }
}

fn byte(owner: u32) -> Range<i64> {
    let at = OWNERS + i64::from(owner.rotate_left(16));
    at..at + 1
}

fn bytes(indices: Range<u32>) -> Range<i64> {
    let first = |index| OWNERS + (i64::from(index) + 1) * GENERATIONS;
    first(indices.start)..first(indices.end)
}

fn name_of(bytes: Range<i64>) -> Range<i64> {
    bytes.start + NAME..bytes.end + NAME
}

/// Locks the byte of an owner for as long as this opening of the file exists; false if another opening holds the
/// lock.
pub fn hold(fd: BorrowedFd<'_>, owner: u32) -> Result<bool, Errno> {
    granted(fcntl(fd, libc::F_OFD_SETLK, &mut range(byte(owner), libc::F_WRLCK)))
}

/// Has the system tell others the pid of this process, as that of the owner, until it closes a descriptor of the
/// file. False if another process did so for this owner.
pub fn name(fd: BorrowedFd<'_>, owner: u32) -> Result<bool, Errno> {
    granted(fcntl(fd, libc::F_SETLK, &mut range(name_of(byte(owner)), libc::F_WRLCK)))
}

/// A lock on some of these bytes: the pid of its holder, as the system reports it.
fn found(fd: BorrowedFd<'_>, bytes: Range<i64>) -> Result<Option<i32>, Errno> {
    let mut lock = range(bytes, libc::F_WRLCK);
    fcntl(fd, libc::F_OFD_GETLK, &mut lock)?;
    Ok((lock.l_type != libc::F_UNLCK as libc::c_short).then_some(lock.l_pid))
}

/// Whether a process holds one of these bytes.
fn holder(fd: BorrowedFd<'_>, bytes: Range<i64>) -> Result<Liveness, Errno> {
    if found(fd, bytes.clone())?.is_none() {
        return Ok(Liveness::Dead);
    }
    let pid = found(fd, name_of(bytes))?.filter(|&pid| pid > 0);
    Ok(Liveness::Alive { pid })
}

/// The liveness of an owner. Any number is harmless.
pub fn ask(fd: BorrowedFd<'_>, owner: u32) -> Result<Liveness, Errno> {
    holder(fd, byte(owner))
}

/// The liveness of the last owner of an attachment id.
pub fn ask_index(fd: BorrowedFd<'_>, index: u32) -> Result<Liveness, Errno> {
    holder(fd, bytes(index..index + 1))
}

/// Whether a thread of any process attaches, leaves or replaces the file.
pub fn is_gate_held(fd: BorrowedFd<'_>) -> Result<bool, Errno> {
    Ok(found(fd, GATE..GATE + 1)?.is_some())
}

/// Whether any process is attached to the file.
pub fn anybody(fd: BorrowedFd<'_>) -> Result<bool, Errno> {
    Ok(found(fd, bytes(0..MAX_PROCESSES))?.is_some())
}

/// Whether this process holds no name lock, of any copy of this library.
pub fn is_without_us(fd: BorrowedFd<'_>) -> Result<bool, Errno> {
    let us = std::process::id() as i32;
    // The system reports one lock of a range, not the first: so the ranges on either side of it are queried too.
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
        // A length of 0 extends to the end.
        let len = if lock.l_len == 0 { i64::MAX } else { lock.l_len };
        let sides = [asked.start..lock.l_start, lock.l_start.saturating_add(len)..asked.end];
        left.extend(sides.into_iter().filter(|side| !side.is_empty()));
    }
    Ok(true)
}

#[cfg(test)]
mod tests;
