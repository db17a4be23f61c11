//! What a forked child has of its own.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::errno::Errno;

/// Something that a forked child has another one of.
pub struct Renewed<T>(UnsafeCell<T>);

// SAFETY: it is lent as it is, but for `renew`, whose caller sees to it that nobody has it then.
unsafe impl<T: Sync> Sync for Renewed<T> {}

impl<T> Renewed<T> {
    /// The first.
    pub const fn new(first: T) -> Self {
        Self(UnsafeCell::new(first))
    }

    /// That of this process.
    #[inline]
    pub const fn get(&'static self) -> &'static T {
        // SAFETY: initialized, and only written by `renew`.
        unsafe { &*self.0.get() }
    }

    /// Puts another in its place, and forgets the former, which may be locked.
    ///
    /// # Safety
    /// The process has one thread, which does not use the former.
    pub unsafe fn renew(&'static self, next: T) {
        // SAFETY: the caller's word.
        unsafe { self.0.get().write(next) };
    }
}

/// Whether this process was forked from one that had opened the device.
static IS_CHILD: AtomicBool = AtomicBool::new(false);

/// This process is a forked child from now on.
pub fn begins() {
    IS_CHILD.store(true, Ordering::Relaxed);
}

/// What to say of a pointer to no object of this process: ENODEV in a forked child, since it may be the parent's,
/// else ENOENT.
#[cold]
pub fn nothing_there() -> Errno {
    if IS_CHILD.load(Ordering::Relaxed) { Errno::NODEV } else { Errno::NOENT }
}
