use std::fs;
use std::os::unix::thread::JoinHandleExt;
use std::sync::mpsc::channel;

use cq_core::cq::{CompletionQueue, WaitError};

use super::*;
use crate::inside::prelude::*;

/// The signals blocked by the calling thread, as bits.
fn blocked() -> u64 {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:"));
    u64::from_str_radix(mask.unwrap().trim(), 16).unwrap()
}

#[test]
fn a_thread_blocks_what_can_be_blocked_and_who_starts_it_what_it_did_before() {
    // Two signals cannot be blocked, and the C library reserves two.
    let never = [libc::SIGKILL, libc::SIGSTOP, 32, 33].map(|signal| 1_u64 << (signal - 1));
    let all = !never.into_iter().fold(0, |bits, bit| bits | bit);
    let before = blocked();
    let (teller, told) = channel();
    spawn_without_signals("deaf", move || teller.send(blocked()).unwrap()).unwrap();
    assert_eq!(told.recv().unwrap() & all, all);
    assert_eq!(blocked(), before);
}

extern "C" fn heed(_: libc::c_int) {}

/// Installs an empty handler for the signal.
fn handle(signal: libc::c_int) {
    // SAFETY: all zeros are a valid action, and the handler does nothing.
    let failed = unsafe {
        let mut action: libc::sigaction = MaybeUninit::zeroed().assume_init();
        action.sa_sigaction = heed as *const () as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(signal, &raw const action, ptr::null_mut())
    };
    assert_eq!(failed, 0);
}

#[test]
fn n10_a_signal_ends_a_wait_that_nothing_else_would_end() {
    handle(libc::SIGUSR1);
    let (context, _) = OpenOptions::new().alone();
    let mut channel = context.create_channel().unwrap();
    let mut cq = CompletionQueue::new(context.cq(4).channel(&channel).create().unwrap());
    let waits = thread::spawn(move || {
        let mut wcs = [Wc::default(); 4];
        cq.wait(&mut wcs, &mut channel, None).map(<[Wc]>::len)
    });
    // The signal may arrive before the thread waits, so it is repeated.
    until("it returns", || {
        // SAFETY: the thread is not joined yet, so it exists, even if it has ended.
        unsafe { libc::pthread_kill(waits.as_pthread_t(), libc::SIGUSR1) };
        waits.is_finished()
    });
    assert_eq!(waits.join().unwrap(), Err(WaitError::Interrupted));
}
