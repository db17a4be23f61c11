//! The attachments of this process when it forks, and when it ends. One of the modules with `unsafe` code.
//!
//! A forked child is another process: it is not attached, whatever it inherited. Before any of its own code runs,
//! each mapping of a fabric is replaced by private zeros, so that inherited handles reach nothing, and the
//! [generation] changes. It may attach again. A child made by `clone(2)` or `vfork(2)`, without the C library's
//! `fork`, cannot be told from its parent, and must exec another program at once.

#![allow(unsafe_code)]

use std::ptr::with_exposed_provenance_mut;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

use super::registry::{Guard, REGISTRY};
use super::unshared;
use crate::shm::mapping::Mapping;
use crate::sync::{self, AtomicU32};

/// How long the end of the process waits for others that attach or leave.
const PATIENCE: Duration = Duration::from_secs(1);

/// Called when the process ends, with a deadline.
static AT_END: OnceLock<fn(Instant)> = OnceLock::new();
static FORKS: AtomicU32 = AtomicU32::new(0);
static WATCHED: AtomicU32 = AtomicU32::new(0);

/// The number of forks between the process in which the library was loaded and this one. What was opened in another
/// generation does not belong to this process.
#[inline]
pub fn generation() -> u32 {
    sync::load(&FORKS)
}

/// Sets what is called when the process ends.
pub fn at_end(leave: fn(Instant)) {
    AT_END.get_or_init(|| leave);
}

/// Registers this module's handlers for forks and the end of the process, once.
///
/// # Errors
/// The system's error.
pub fn watch(_only: &Guard) -> Result<(), Errno> {
    if sync::load(&WATCHED) != 0 {
        return Ok(());
    }
    // SAFETY: all three do only what is allowed around a fork with threads: loads, stores and system calls.
    let failed = unsafe { libc::pthread_atfork(Some(before), Some(after), Some(in_child)) };
    if failed != 0 {
        return Err(Errno::from_raw_os_error(failed));
    }
    // SAFETY: `at_exit` does not unwind.
    if unsafe { libc::atexit(at_exit) } != 0 {
        return Err(Errno::NOMEM);
    }
    sync::store(&WATCHED, 1);
    Ok(())
}

/// Waits until no thread [holds forks off](unshared::hold_off): the child must not inherit what that thread opened.
extern "C" fn before() {
    unshared::begin();
}

extern "C" fn after() {
    unshared::end();
}

/// Only loads, stores and system calls.
unsafe extern "C" fn in_child() {
    for kept in REGISTRY.all() {
        if let Some(attached) = kept.attached() {
            replace(attached.memory);
        }
        // Record locks are not inherited, and the users of the descriptor were threads of the parent.
        kept.close();
    }
    REGISTRY.forget_all();
    if let Some(fd) = unshared::inherited() {
        // SAFETY: the thread that opened it was in the parent.
        unsafe { rustix::io::close(fd) };
    }
    sync::next_number(&FORKS);
    unshared::begin_anew();
}

/// Replaces a mapping, which is never unmapped, by private zeros.
fn replace(memory: &'static Mapping) {
    let flags = MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE;
    let (addr, len) = (with_exposed_provenance_mut(memory.addr()), memory.len());
    // SAFETY: exactly a mapping of ours, which stays mapped. All borrows of it are of atomics, which any process may
    // write at any time, zeros included.
    let replaced = unsafe { mmap_anonymous(addr, len, ProtFlags::READ | ProtFlags::WRITE, flags) };
    if replaced.is_err() {
        // The child would change the fabric of its parent.
        // SAFETY: always sound.
        unsafe { libc::abort() };
    }
}

extern "C" fn at_exit() {
    if let Some(leave) = AT_END.get() {
        leave(Instant::now() + PATIENCE);
    }
}
