//! The fabric files that this process keeps open, with one descriptor each, by which it checks liveness. One of the
//! modules with `unsafe` code.
//!
//! A forked child begins with an empty registry: its thread may be the only one left of several, so nothing here may
//! depend on another thread to continue, nor be inconsistent at any instant. The registry is a list that only grows,
//! at its head, by one store.

#![allow(unsafe_code)]

use std::any::Any;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fd::{AsRawFd, BorrowedFd, IntoRawFd, RawFd};

use super::file::{self, FileId};
use super::mapping::Mapping;
use super::unshared::Opened;
use crate::sync::{self, AtomicPtr, AtomicU32};

const CLOSED: u32 = u32::MAX;
const PAUSE: Duration = Duration::from_micros(500);

/// The open files of this process.
#[derive(Debug)]
pub struct Registry {
    lock: AtomicU32,
    newest: AtomicPtr<Kept>,
}

/// The registry of this copy of the library.
pub static REGISTRY: Registry = Registry::new();

/// An open file.
#[derive(Debug)]
pub struct Kept {
    id: FileId,
    fd: Descriptor,
    attached: OnceLock<Attached>,
    older: Option<&'static Self>,
}

/// The state of an attached process.
#[derive(Debug)]
pub struct Attached {
    /// The file's bytes. They stay mapped: a forked child reads zeros.
    pub memory: &'static Mapping,
    /// The [`Attachment`](super::attachment::Attachment), as `Any`.
    pub attachment: Box<dyn Any + Send + Sync>,
}

/// Exclusive access to the registry for this thread.
#[derive(Debug)]
pub struct Guard(&'static Registry);

impl Registry {
    /// An empty registry.
    pub const fn new() -> Self {
        Self { lock: AtomicU32::new(0), newest: AtomicPtr::new(null_mut()) }
    }

    /// Waits, up to `deadline`, until no other thread changes the registry.
    pub fn lock(&'static self, deadline: Instant) -> Option<Guard> {
        while !sync::try_lock_as(&self.lock, 1) {
            if Instant::now() >= deadline {
                return None;
            }
            thread::sleep(PAUSE);
        }
        Some(Guard(self))
    }

    /// All files that this process ever kept, newest first.
    pub fn all(&self) -> impl Iterator<Item = &'static Kept> {
        // SAFETY: null, or a `Kept` that `keep` leaked.
        let newest = unsafe { sync::acquire(&self.newest).as_ref() };
        std::iter::successors(newest, |kept| kept.older)
    }

    /// Empties the registry, whatever other threads were doing: for the child of a fork, which has no other threads.
    pub fn forget_all(&self) {
        sync::release(&self.newest, null_mut());
        sync::unlock(&self.lock);
    }
}

impl Guard {
    /// The entry of a file, if it is open, or if this process is attached to it, even if the program closed the
    /// descriptor.
    pub fn find(&self, id: FileId) -> Option<&'static Kept> {
        let is_kept = |kept: &Kept| kept.attached().is_some() || kept.fd.get_if(id).is_some();
        self.0.all().find(|kept| kept.id == id && is_kept(kept))
    }

    /// Keeps a file open.
    pub fn keep(&self, file: Opened, id: FileId) -> &'static Kept {
        let older = self.0.all().next();
        file.hand_over(|fd| {
            let fd = Descriptor(AtomicU32::new(fd.into_raw_fd() as u32));
            let kept = Box::leak(Box::new(Kept { id, fd, attached: OnceLock::new(), older }));
            sync::release(&self.0.newest, kept);
            &*kept
        })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        sync::unlock(&self.0.lock);
    }
}

impl Kept {
    /// The identity of the file.
    pub const fn id(&self) -> FileId {
        self.id
    }

    /// Its descriptor; `None` once it was closed.
    pub fn fd(&self) -> Option<BorrowedFd<'static>> {
        self.fd.get()
    }

    /// Whether the descriptor still refers to the file.
    pub fn is_open(&self) -> bool {
        self.fd.get_if(self.id).is_some()
    }

    /// The descriptor's number.
    pub const fn descriptor(&'static self) -> &'static Descriptor {
        &self.fd
    }

    /// The state of this process, if it is attached.
    pub fn attached(&self) -> Option<&Attached> {
        self.attached.get()
    }

    /// Records that this process is attached.
    pub fn attach(&'static self, attached: Attached) -> &'static Attached {
        self.attached.get_or_init(|| attached)
    }

    /// Closes the file, unless the program has. The caller does not hold its gate, and this process holds no name
    /// lock there. Nobody may use the descriptor from here on.
    pub fn close(&self) {
        let fd = self.fd.get_if(self.id);
        sync::store(&self.fd.0, CLOSED);
        if let Some(fd) = fd {
            // SAFETY: ours since it was passed to `keep` or `set`; `get` no longer returns it.
            unsafe { rustix::io::close(fd.as_raw_fd()) };
        }
    }
}

/// The number of a descriptor that this process keeps. The program may close it all the same.
#[derive(Debug)]
pub struct Descriptor(AtomicU32);

impl Descriptor {
    /// The descriptor; `None` once it was closed.
    pub fn get(&self) -> Option<BorrowedFd<'static>> {
        let fd = sync::load(&self.0);
        // SAFETY: a descriptor that was passed to `keep` or `set` and that this library did not close. `close` is called
        // when nobody uses it any more. If the program closed it, the system refuses it, or it refers to another file: so
        // a caller that relies on an answer checks the file. Only one of the calls made by it changes the file, to reserve
        // its bytes, right after such a check.
        (fd != CLOSED).then(|| unsafe { BorrowedFd::borrow_raw(fd as RawFd) })
    }

    /// The descriptor, if it still refers to this file.
    pub fn get_if(&self, id: FileId) -> Option<BorrowedFd<'static>> {
        self.get().filter(|&fd| file::id_of(fd) == Ok(id))
    }

    /// Replaces it by another descriptor of the same file. The old number is not closed: it may belong to the program
    /// by now.
    pub fn set(&self, file: Opened) {
        file.hand_over(|fd| sync::store(&self.0, fd.into_raw_fd() as u32));
    }
}

#[cfg(test)]
mod tests;
