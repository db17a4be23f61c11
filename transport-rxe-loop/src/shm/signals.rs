//! Threads that block all signals, so that the program's own threads take them. One of the modules with `unsafe`
//! code.

#![allow(unsafe_code)]

use std::mem::MaybeUninit;
use std::{io, ptr, thread};

use crate::shm::sanitizer;

/// Starts a thread that blocks all signals from its first instruction on, and runs `serve`.
///
/// # Errors
/// The system refuses a thread.
pub fn spawn_without_signals(name: &str, serve: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let _blocked = Blocked::all()?;
    let serve = move || sanitizer::unseen(serve);
    thread::Builder::new().name(name.to_owned()).spawn(serve).map(drop)
}

/// Blocks all signals in this thread until it is dropped. A thread inherits the signal mask of the one that starts
/// it.
#[derive(Debug)]
pub struct Blocked {
    before: libc::sigset_t,
}

impl Blocked {
    /// # Errors
    /// The system's error.
    pub fn all() -> io::Result<Self> {
        let mut all = MaybeUninit::uninit();
        let mut before = MaybeUninit::uninit();
        // SAFETY: `sigfillset` initializes the set that `pthread_sigmask` reads; that writes the other.
        let failed = unsafe {
            libc::sigfillset(all.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr())
        };
        if failed != 0 {
            return Err(io::Error::from_raw_os_error(failed));
        }
        // SAFETY: the call has written it, as it did not fail.
        Ok(Self { before: unsafe { before.assume_init() } })
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // SAFETY: reads a set that the system wrote. It cannot fail with these arguments.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, ptr::null_mut())
        };
    }
}

#[cfg(test)]
mod tests;
