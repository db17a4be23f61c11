//! Work that must get by without the system (P5): the system itself watches over that.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

struct Work<'a> {
    work: &'a (dyn Fn() + Sync),
    done: AtomicBool,
}

extern "C" fn run(work: *mut c_void) -> *mut c_void {
    // SAFETY: it lives until this thread was joined.
    let work = unsafe { &*work.cast::<Work<'_>>() };
    // SAFETY: from here on this thread is ended by the system if it asks for anything but `read`, `write` and
    // `exit`. It has nothing to be dropped.
    unsafe {
        let strict = libc::SECCOMP_MODE_STRICT as libc::c_ulong;
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, strict), 0);
        (work.work)();
        work.done.store(true, Ordering::Relaxed);
        libc::syscall(libc::SYS_exit, 0 as c_int);
    }
    ptr::null_mut()
}

/// Does something in a thread that makes no system call.
pub fn without_system_calls(work: impl Fn() + Sync) {
    let mut work = Work { work: &work, done: AtomicBool::new(false) };
    let (mut thread, argument) = (0, (&raw mut work).cast());
    // SAFETY: what the thread is given lives until it was joined.
    unsafe {
        assert_eq!(libc::pthread_create(&raw mut thread, ptr::null(), run, argument), 0);
        assert_eq!(libc::pthread_join(thread, ptr::null_mut()), 0);
    }
    assert!(work.done.into_inner(), "it made a system call");
}

#[test]
fn a_system_call_is_noticed() {
    let call = || assert!(!rustix::process::getpid().is_init());
    assert!(std::panic::catch_unwind(|| without_system_calls(call)).is_err());
}
