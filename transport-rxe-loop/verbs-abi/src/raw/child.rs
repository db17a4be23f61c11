//! What a forked child has of its own.

use std::cell::UnsafeCell;
use std::sync::OnceLock;
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
    pub fn renew(&'static self, _: &Alone, next: T) {
        // SAFETY: nobody else is there to use the former, and whoever forked was not using it.
        unsafe { self.0.get().write(next) };
    }
}

/// Is there while a forked child has one thread, and runs nothing but what [`watch`] was told.
pub struct Alone(());

/// What runs then.
static BEGIN: OnceLock<fn(&Alone)> = OnceLock::new();

/// Has `begin` run in every child that this process forks from now on, before anything else does. It may only store.
///
/// # Errors
/// ENOMEM.
pub fn watch(begin: fn(&Alone)) -> Result<(), Errno> {
    if BEGIN.get().is_some() {
        return Ok(());
    }
    // Hearing of a fork twice does no harm. SAFETY: `in_child` does only what a forked child may do.
    match unsafe { libc::pthread_atfork(None, None, Some(in_child)) } {
        0 => BEGIN.set(begin).unwrap_or_default(),
        errno => return Err(Errno::of(errno)),
    }
    Ok(())
}

/// Stores only. Nothing is closed or freed: that would need the parent's locks.
unsafe extern "C" fn in_child() {
    // A forked child has one thread, and no call of this library forks.
    if let Some(begin) = BEGIN.get() {
        begin(&Alone(()));
    }
    IS_CHILD.store(true, Ordering::Relaxed);
}

/// Whether this process was forked from one that had opened the device.
static IS_CHILD: AtomicBool = AtomicBool::new(false);

/// What to say of a pointer to no object of this process: ENODEV in a forked child, since it may be the parent's,
/// else ENOENT.
#[cold]
pub fn nothing_there() -> Errno {
    if IS_CHILD.load(Ordering::Relaxed) { Errno::NODEV } else { Errno::NOENT }
}
