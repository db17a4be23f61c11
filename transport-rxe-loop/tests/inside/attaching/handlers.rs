//! Tests of programs with their own fork handlers, and of what happens while a fork begins.

#![allow(unsafe_code)]

use std::sync::mpsc::channel;

use rustix::thread::gettid;

use super::forks::{exit_code, fork};
use super::*;
use crate::shm::fork::watch;
use crate::sync::{AtomicU32 as Word, load, store, try_lock_as, unlock};

/// A lock of the program, kept consistent across forks, as allocators do.
static LOCK: Word = Word::new(0);
/// Whether a fork waits for the lock.
static FORKS: Word = Word::new(0);
/// Whether a signal is to be raised as a fork begins, and was handled.
static RAISES: Word = Word::new(0);
static HANDLED: Word = Word::new(0);

extern "C" fn locks() {
    if load(&RAISES) != 0 {
        store(&RAISES, 0);
        // SAFETY: the handler is installed.
        unsafe { libc::raise(libc::SIGUSR1) };
    }
    store(&FORKS, 1);
    while !try_lock_as(&LOCK, 1) {
        thread::sleep(Duration::from_millis(1));
    }
}

extern "C" fn unlocks() {
    unlock(&LOCK);
}

/// Registers the program's fork handlers before the device's: in a fork they run after them.
fn keeps_its_lock(before: extern "C" fn(), after: extern "C" fn()) {
    // SAFETY: the handlers make system calls, and stores.
    assert_eq!(unsafe { libc::pthread_atfork(Some(before), Some(after), Some(after)) }, 0);
    watch(&REGISTRY.lock(Instant::now() + PATIENCE).unwrap()).unwrap();
}

/// Attaches while it holds a lock for which a forking thread waits.
pub fn parent_with_a_lock(path: &FabricPath) {
    keeps_its_lock(locks, unlocks);
    assert!(try_lock_as(&LOCK, 1));
    let forks = thread::spawn(|| exit_code(fork(|| true)));
    until("it forks", || load(&FORKS) != 0);
    assert!(matches!(attach(path), Err(AttachError::Busy { .. })), "it can't while that goes on");
    unlock(&LOCK);
    assert_eq!(forks.join().unwrap(), 0);
    attach(path).unwrap();
}

extern "C" fn forks_too(_: libc::c_int) {
    // SAFETY: the child ends at once, by a call that a handler may make; the parent waits for it.
    unsafe {
        match libc::fork() {
            0 => libc::_exit(0),
            child => libc::waitpid(child, std::ptr::null_mut(), 0),
        };
    }
    store(&HANDLED, 1);
}

/// Forks, and gets a signal as the fork begins, whose handler forks.
pub fn parent_with_a_handler(path: &FabricPath) {
    // SAFETY: the handler is a function of this signature; it touches no memory but atomics.
    unsafe { libc::signal(libc::SIGUSR1, forks_too as *const () as libc::sighandler_t) };
    keeps_its_lock(locks, unlocks);
    attach(path).unwrap();
    store(&RAISES, 1);
    assert_eq!(exit_code(fork(|| true)), 0);
    assert_ne!(load(&HANDLED), 0, "once the first fork was over");
}

/// A garbage collector that stops all threads by a signal: it holds its lock meanwhile, and waits for each thread.
pub fn parent_with_a_collector(path: &FabricPath) {
    extern "C" fn stops(_: libc::c_int) {
        store(&HANDLED, 1);
    }
    // SAFETY: the handler is a function of this signature; it touches no memory but atomics.
    unsafe { libc::signal(libc::SIGUSR1, stops as *const () as libc::sighandler_t) };
    keeps_its_lock(locks, unlocks);
    attach(path).unwrap();
    assert!(try_lock_as(&LOCK, 1));
    let (tells, told) = channel();
    let forks = thread::spawn(move || {
        // SAFETY: a call without arguments.
        tells.send(unsafe { libc::pthread_self() }).unwrap();
        exit_code(fork(|| true))
    });
    let thread = told.recv().unwrap();
    until("it forks", || load(&FORKS) != 0);
    // SAFETY: that thread has not been joined.
    assert_eq!(unsafe { libc::pthread_kill(thread, libc::SIGUSR1) }, 0);
    // A collector would wait for ever.
    until("the thread that forks has stopped", || load(&HANDLED) != 0);
    unlock(&LOCK);
    assert_eq!(forks.join().unwrap(), 0);
}

/// The thread that holds `LOCK`, which it may take again.
static HAS: Word = Word::new(0);

fn me() -> u32 {
    gettid().as_raw_nonzero().get() as u32
}

extern "C" fn locks_again() {
    store(&FORKS, 1);
    if load(&HAS) != me() {
        locks();
    }
}

extern "C" fn unlocks_again() {
    if load(&HAS) == 0 {
        unlocks();
    }
}

/// A thread that holds a recursive lock of the program forks, while another one forks and waits for that lock.
pub fn parent_with_two_that_fork(path: &FabricPath) {
    keeps_its_lock(locks_again, unlocks_again);
    attach(path).unwrap();
    assert!(try_lock_as(&LOCK, 1));
    store(&HAS, me());
    let forks = thread::spawn(|| exit_code(fork(|| true)));
    until("it forks", || load(&FORKS) != 0);
    assert_eq!(exit_code(fork(|| true)), 0);
    store(&HAS, 0);
    unlock(&LOCK);
    assert_eq!(forks.join().unwrap(), 0);
}

#[test]
fn x07_programs_with_fork_handlers_attach_and_fork_without_waiting_for_themselves() {
    for part in [
        "parent with a lock",
        "parent with a handler",
        "parent with a collector",
        "parent with two that fork",
    ] {
        Directory::new().plays_to_the_end(part);
    }
}
