//! What all objects of libibverbs and librdmacm have in common: a pointer, and a function that destroys it.

#![allow(unsafe_code)]

use std::any::Any;
use std::ffi::c_int;
use std::ptr::NonNull;
use std::sync::Arc;
use std::{fmt, io, mem};

use super::check_null;
use super::fork::Process;
use crate::trace;

/// A function that destroys an object.
type Destroy<T> = unsafe extern "C" fn(*mut T) -> c_int;

/// An object of libibverbs or librdmacm, destroyed when this is dropped. What it depends on is a later field of the same struct, and
/// so is dropped after it. A forked child destroys nothing: the object is its parent's.
pub struct Object<T> {
    raw: NonNull<T>,
    destroy: Destroy<T>,
    /// How what it returns is read.
    check: fn(c_int) -> io::Result<()>,
    process: Process,
    /// What the device may still use where it fails to destroy the object.
    kept: Option<Arc<dyn Any + Send + Sync>>,
}

// SAFETY: any thread may use and destroy the object (guaranteed to `new`); `kept` is `Send` and `Sync`.
unsafe impl<T> Send for Object<T> {}
// SAFETY: several threads may use the object at once (guaranteed to `new`).
unsafe impl<T> Sync for Object<T> {}

impl<T> Object<T> {
    /// Takes charge of what a call of libibverbs returned, of which `check` reads what `destroy` returns.
    ///
    /// # Errors
    /// It is null: the call failed and set `errno`.
    ///
    /// # Safety
    /// - `destroy` destroys such an object. Nothing else does, and everything that refers to it keeps this alive.
    /// - Any thread may use and destroy it, and several may use it at once, as the objects of libibverbs
    ///   (`ibv_open_device(3)`); what is not so is used under the caller's own exclusion.
    pub unsafe fn new(
        raw: *mut T,
        destroy: Destroy<T>,
        check: fn(c_int) -> io::Result<()>,
    ) -> io::Result<Self> {
        let raw = check_null(raw)?;
        let process = Process::this().inspect_err(|_| {
            // SAFETY: nothing refers to it yet.
            unsafe { destroy(raw.as_ptr()) };
        })?;
        Ok(Self { raw, destroy, check, process, kept: None })
    }

    /// Whether this process created it, and not one that this process was forked from.
    pub fn is_ours(&self) -> bool {
        self.process.is_this()
    }

    /// Keeps this alive for ever should the device fail to destroy the object.
    pub fn keep(&mut self, kept: Arc<dyn Any + Send + Sync>) {
        self.kept = Some(kept);
    }

    /// As libibverbs names it.
    #[inline]
    pub const fn raw(&self) -> *mut T {
        self.raw.as_ptr()
    }
}

impl<T> fmt::Debug for Object<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.raw.fmt(f)
    }
}

impl<T> Drop for Object<T> {
    fn drop(&mut self) {
        if !self.is_ours() {
            mem::forget(self.kept.take());
            return;
        }
        // SAFETY: it is destroyed once, and nothing refers to it any more (guaranteed to `new`).
        if let Err(error) = (self.check)(unsafe { (self.destroy)(self.raw()) }) {
            trace::event!(WARN, error = %error, "object not destroyed");
            mem::forget(self.kept.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::check;

    #[test]
    fn what_a_device_may_still_use_is_kept_and_all_else_is_given_back() {
        unsafe extern "C" fn destroy(fails: *mut c_int) -> c_int {
            // SAFETY: the number is alive.
            unsafe { *fails }
        }
        for mut fails in [0, 22] {
            let memory = Arc::new(());
            // SAFETY: the number is alive, and `destroy` does nothing to it.
            let mut object = unsafe { Object::new(&raw mut fails, destroy, check).unwrap() };
            object.keep(Arc::<()>::clone(&memory));
            assert_eq!(Arc::strong_count(&memory), 2);
            drop(object);
            assert_eq!(Arc::strong_count(&memory), if fails == 0 { 1 } else { 2 });
        }
    }
}
