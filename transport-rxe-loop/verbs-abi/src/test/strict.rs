//! Work that must get by without the system (P5): the system itself watches over that.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::thread::{SecureComputingMode, gettid, set_secure_computing_mode};

use crate::test::*;

/// Does something in a thread that makes no system call.
pub fn without_system_calls(work: impl FnOnce() + Send + 'static) {
    let done = Arc::new(AtomicBool::new(false));
    let (is_done, (tell, told)) = (Arc::clone(&done), mpsc::channel());
    thread::spawn(move || {
        tell.send(gettid().as_raw_pid()).unwrap();
        set_secure_computing_mode(SecureComputingMode::Strict).unwrap();
        work();
        is_done.store(true, Ordering::Release);
        // It can't end like others, which takes system calls: it dies here, and holds nothing.
        thread::yield_now();
    });
    let thread = format!("/proc/self/task/{}", told.recv().unwrap());
    until("the thread is gone", || !fs::exists(&thread).unwrap());
    assert!(done.load(Ordering::Acquire), "it made a system call");
}

#[test]
fn a_system_call_is_noticed() {
    let call = || assert!(!rustix::process::getpid().is_init());
    assert!(std::panic::catch_unwind(|| without_system_calls(call)).is_err());
}
