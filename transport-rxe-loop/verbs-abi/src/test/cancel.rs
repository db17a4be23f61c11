//! Threads that are cancelled (`pthread_cancel(3)`).

use std::time::{Duration, Instant};

use crate::test::*;

const LIMIT: Duration = Duration::from_secs(20);

unsafe extern "C-unwind" {
    fn pthread_create(
        thread: *mut libc::pthread_t,
        attributes: *const libc::pthread_attr_t,
        start: extern "C-unwind" fn(*mut c_void) -> *mut c_void,
        argument: *mut c_void,
    ) -> c_int;
    fn pthread_tryjoin_np(thread: libc::pthread_t, result: *mut *mut c_void) -> c_int;
    fn pthread_testcancel();
}

extern "C-unwind" fn start(work: *mut c_void) -> *mut c_void {
    // SAFETY: it lives until this thread was joined.
    let work = unsafe { *work.cast::<&dyn Fn()>() };
    work();
    // SAFETY: nothing that is to be dropped is in this frame.
    unsafe { pthread_testcancel() };
    ptr::null_mut()
}

/// Has a thread do this, cancels it once something holds, and waits until it has ended by that. Where it is cancelled, nothing
/// that is to be dropped is in any frame.
pub fn cancel(work: &dyn Fn(), once: impl Fn() -> bool) {
    let (mut thread, mut result, mut work) = (0, ptr::null_mut(), work);
    let deadline = Instant::now() + LIMIT;
    // SAFETY: what it is given lives until it was joined; whoever gave it says that it can be cancelled.
    unsafe {
        let argument = (&raw mut work).cast();
        assert_eq!(pthread_create(&raw mut thread, ptr::null(), start, argument), 0);
        while !once() {
            assert!(Instant::now() < deadline, "it does not begin");
            thread::yield_now();
        }
        assert_eq!(libc::pthread_cancel(thread), 0);
        while pthread_tryjoin_np(thread, &raw mut result) != 0 {
            assert!(Instant::now() < deadline, "it does not end");
            thread::yield_now();
        }
    }
    // PTHREAD_CANCELED
    assert_eq!(result.addr(), usize::MAX);
}

/// Cancels this thread: it ends where the C library looks next.
pub fn cancel_this() {
    // SAFETY: this thread. It only leaves a mark.
    unsafe { libc::pthread_cancel(libc::pthread_self()) };
}

/// The thread is cancelled before it does this, so at the first place where it can be.
pub fn cancelled(work: &dyn Fn()) {
    cancel(
        &|| {
            cancel_this();
            work();
        },
        || true,
    );
}
