//! What this process keeps open: one descriptor for each fabric file, by which it asks who lives. One of the rooms
//! where `unsafe` lives.
//!
//! A forked child begins with an empty registry: its thread may be the only one left of several, so nothing
//! here may need another thread to go on, nor be half changed at any instant. What is kept is a list that
//! only grows at its head, by one store.

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

/// What this process keeps open.
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

/// What a process has where it is attached.
#[derive(Debug)]
pub struct Attached {
    /// The file's bytes, which stay mapped: a forked child finds zeros there.
    pub memory: &'static Mapping,
    /// The attachment, whatever that is.
    pub attachment: Box<dyn Any + Send + Sync>,
}

/// The registry is this thread's.
#[derive(Debug)]
pub struct Guard(&'static Registry);

impl Registry {
    /// An empty one.
    pub const fn new() -> Self {
        Self { lock: AtomicU32::new(0), newest: AtomicPtr::new(null_mut()) }
    }

    /// Waits until no other thread changes it, up to `deadline`.
    pub fn lock(&'static self, deadline: Instant) -> Option<Guard> {
        while !sync::try_lock_as(&self.lock, 1) {
            if Instant::now() >= deadline {
                return None;
            }
            thread::sleep(PAUSE);
        }
        Some(Guard(self))
    }

    /// All that was ever kept by this process, the newest first.
    pub fn all(&self) -> impl Iterator<Item = &'static Kept> {
        // SAFETY: null, or a `Kept` that `keep` leaked.
        let newest = unsafe { sync::acquire(&self.newest).as_ref() };
        std::iter::successors(newest, |kept| kept.older)
    }

    /// Forgets everything, whatever other threads were doing: for the child of a fork, which has none.
    pub fn forget_all(&self) {
        sync::release(&self.newest, null_mut());
        sync::unlock(&self.lock);
    }
}

impl Guard {
    /// What is kept of a file: where this process is attached to it, also if the program has closed the descriptor.
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
    /// Which file it is.
    pub const fn id(&self) -> FileId {
        self.id
    }

    /// Its descriptor; `None` once it was closed.
    pub fn fd(&self) -> Option<BorrowedFd<'static>> {
        self.fd.get()
    }

    /// Whether its descriptor still is the file's.
    pub fn is_open(&self) -> bool {
        self.fd.get_if(self.id).is_some()
    }

    /// Where its descriptor is kept.
    pub const fn descriptor(&'static self) -> &'static Descriptor {
        &self.fd
    }

    /// What this process has there.
    pub fn attached(&self) -> Option<&Attached> {
        self.attached.get()
    }

    /// That this process is attached.
    pub fn attach(&'static self, attached: Attached) -> &'static Attached {
        self.attached.get_or_init(|| attached)
    }

    /// Closes the file, unless the program has: the gate is free, and the process has no name there any more. Nobody
    /// may use the descriptor from here on.
    pub fn close(&self) {
        let fd = self.fd.get_if(self.id);
        sync::store(&self.fd.0, CLOSED);
        if let Some(fd) = fd {
            // SAFETY: ours since `keep` was given it, or `set`; `get` gives it to nobody any more.
            unsafe { rustix::io::close(fd.as_raw_fd()) };
        }
    }
}

/// The number of a descriptor that this process keeps. A program may close it all the same.
#[derive(Debug)]
pub struct Descriptor(AtomicU32);

impl Descriptor {
    /// The descriptor; `None` once it was closed.
    pub fn get(&self) -> Option<BorrowedFd<'static>> {
        let fd = sync::load(&self.0);
        // SAFETY: a descriptor that `keep` or `set` was given and nobody of this library closed. Who closes it says
        // that nobody uses it any more. Where the program did, the system refuses it, or it is another file's: so who
        // relies on an answer looks which one's. Of the calls that are made by it one changes the file, to reserve
        // its bytes, right after such a look.
        (fd != CLOSED).then(|| unsafe { BorrowedFd::borrow_raw(fd as RawFd) })
    }

    /// The same, if it still is this file's.
    pub fn get_if(&self, id: FileId) -> Option<BorrowedFd<'static>> {
        self.get().filter(|&fd| file::id_of(fd) == Ok(id))
    }

    /// Keeps another one of the same file instead. What the number before leads to by now is not ours to close.
    pub fn set(&self, file: Opened) {
        file.hand_over(|fd| sync::store(&self.0, fd.into_raw_fd() as u32));
    }
}

#[cfg(test)]
mod tests;
