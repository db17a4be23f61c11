//! Which process something belongs to. A forked child inherits the values of its parent, and none of the objects behind
//! them: what it destroyed would be the parent's.
//!
//! The C library's `fork` is noticed. A child made by `clone(2)` or `vfork(2)` can't be told from its parent, and must
//! execute another program at once.

#![allow(unsafe_code)]

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;

/// The number of forks between the process that loaded this library and this one. Written by a child before any other of
/// its code runs, while it has one thread: nothing else is ordered by it.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// The process to which a value belongs.
#[derive(Clone, Copy, Debug)]
pub struct Process(u32);

impl Process {
    /// This one.
    ///
    /// # Errors
    /// There is no memory for the handler of forks.
    pub fn this() -> Result<Self, Errno> {
        static WATCHED: OnceLock<i32> = OnceLock::new();
        extern "C" fn in_child() {
            FORKS.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: the handler does nothing but an atomic operation.
        let watched =
            WATCHED.get_or_init(|| unsafe { libc::pthread_atfork(None, None, Some(in_child)) });
        match *watched {
            0 => Ok(Self(FORKS.load(Ordering::Relaxed))),
            errno => Err(Errno::from_raw_os_error(errno)),
        }
    }

    /// Whether it is this one, and not one that this one was forked from.
    #[inline]
    pub fn is_this(self) -> bool {
        self.0 == FORKS.load(Ordering::Relaxed)
    }
}
