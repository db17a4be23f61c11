//! Places for objects, and system calls, that are refused when a test wants that.

use std::cell::Cell;
use std::mem::offset_of;

use crate::test::*;

thread_local! {
    /// How many this thread gets before one is refused.
    static LEFT: Cell<Option<u32>> = const { Cell::new(None) };
    /// How many steps this thread takes before a system call is refused for the rest of its life.
    static STEPS: Cell<Option<(u32, Call)>> = const { Cell::new(None) };
}

/// The number of a system call, and what its second argument is, unless that can be anything.
type Call = (libc::c_long, Option<c_int>);

/// Each place asks.
///
/// # Errors
/// ENOMEM: it is refused.
pub fn pass() -> Result<(), Errno> {
    match LEFT.get() {
        Some(0) => {
            LEFT.set(None);
            Err(Errno::NOMEM)
        }
        left => {
            LEFT.set(left.map(|left| left - 1));
            Ok(())
        }
    }
}

/// Does something, first without its first place, then without its second, until it gets all: only then it succeeds.
pub fn each(work: impl Fn() -> Result<(), Errno>) {
    for left in 0.. {
        LEFT.set(Some(left));
        let done = work();
        if LEFT.take().is_some() {
            assert_eq!(done, Ok(()));
            assert!(left > 5, "it asks for places");
            return;
        }
        assert_eq!(done, Err(Errno::NOMEM), "without the place {left}");
    }
}

/// A program has taken a step.
pub fn step() {
    match STEPS.get() {
        Some((0, call)) => {
            STEPS.set(None);
            refuse(call);
        }
        steps => STEPS.set(steps.map(|(left, call)| (left - 1, call))),
    }
}

/// Has a thread do something, for which a system call fails with ENOMEM from a step on. Whether that step was taken.
pub fn from_step(
    steps: u32,
    call: Call,
    work: fn() -> Result<(), Errno>,
) -> (Result<(), Errno>, bool) {
    let thread = thread::spawn(move || {
        STEPS.set(Some((steps, call)));
        step();
        (work(), STEPS.get().is_none())
    });
    thread.join().unwrap()
}

/// Has a system call fail in this thread.
fn refuse((call, second): Call) {
    const NUMBER: u32 = offset_of!(libc::seccomp_data, nr) as u32;
    // Its lower half, where the least byte comes first.
    const SECOND: u32 = (offset_of!(libc::seccomp_data, args) + size_of::<u64>()) as u32;
    let line = |code: u32, k, jf| libc::sock_filter { code: code as u16, jt: 0, jf, k };
    let load = |from| line(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, from, 0);
    let or_skip = |wanted, lines| line(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, wanted, lines);
    let answer = |with| line(libc::BPF_RET | libc::BPF_K, with, 0);
    let mut filter = vec![load(NUMBER), or_skip(call as u32, if second.is_some() { 3 } else { 1 })];
    if let Some(second) = second {
        filter.extend([load(SECOND), or_skip(second.cast_unsigned(), 1)]);
    }
    let no_memory = libc::SECCOMP_RET_ERRNO | libc::ENOMEM.cast_unsigned();
    filter.extend([answer(no_memory), answer(libc::SECCOMP_RET_ALLOW)]);
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: a filter, which the system copies.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        let mode = libc::SECCOMP_MODE_FILTER;
        let refused = libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program);
        assert_eq!(refused, 0, "{:?}", Errno::last());
    }
}
