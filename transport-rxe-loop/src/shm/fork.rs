//! What becomes of this process' attachments when it forks, and when it ends. One of the rooms where
//! `unsafe` lives.
//!
//! A forked child is another process: it is not attached, whatever it inherited. Before any of its own code
//! runs, each mapping of a fabric is replaced by zeros of its own, so that inherited handles reach nothing,
//! and the [generation] is another. It may attach anew. A child that `clone(2)` or `vfork(2)` makes without
//! the C library's `fork` is not told from its parent, and must run another program at once.

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

/// What is done as the process ends, until a time.
static AT_END: OnceLock<fn(Instant)> = OnceLock::new();
static FORKS: AtomicU32 = AtomicU32::new(0);
static WATCHED: AtomicU32 = AtomicU32::new(0);

/// How many forks lie between this process and the one that the library was loaded in: what was opened in
/// another generation is not this process'.
#[inline]
pub fn generation() -> u32 {
    sync::load(&FORKS)
}

/// What is to be done as the process ends.
pub fn at_end(leave: fn(Instant)) {
    AT_END.get_or_init(|| leave);
}

/// Sees to it that this module hears of forks and of the end.
///
/// # Errors
/// What the system says.
pub fn watch(_only: &Guard) -> Result<(), Errno> {
    if sync::load(&WATCHED) != 0 {
        return Ok(());
    }
    // SAFETY: the three do only what they may where a process with threads forks: loads, stores and system calls.
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

/// The child is not to have what [holds](unshared::hold_off) forks off.
extern "C" fn before() {
    unshared::begin();
}

extern "C" fn after() {
    unshared::end();
}

/// Loads, stores and system calls only.
unsafe extern "C" fn in_child() {
    for kept in REGISTRY.all() {
        if let Some(attached) = kept.attached() {
            replace(attached.memory);
        }
        // Locks are not inherited, and whoever used it was in the parent.
        kept.close();
    }
    REGISTRY.forget_all();
    if let Some(fd) = unshared::inherited() {
        // SAFETY: whoever opened it was in the parent.
        unsafe { rustix::io::close(fd) };
    }
    sync::next_number(&FORKS);
    unshared::begin_anew();
}

/// Puts zeros in the place of a mapping that is never unmapped.
fn replace(memory: &'static Mapping) {
    let flags = MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE;
    let (addr, len) = (with_exposed_provenance_mut(memory.addr()), memory.len());
    // SAFETY: exactly a mapping of ours, which stays mapped. What is borrowed of it are atomics that anybody
    // may write at any time, zeros included.
    let replaced = unsafe { mmap_anonymous(addr, len, ProtFlags::READ | ProtFlags::WRITE, flags) };
    if replaced.is_err() {
        // What the child does would happen to the fabric of its parent.
        // SAFETY: always sound.
        unsafe { libc::abort() };
    }
}

extern "C" fn at_exit() {
    if let Some(leave) = AT_END.get() {
        leave(Instant::now() + PATIENCE);
    }
}
