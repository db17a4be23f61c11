//! A thread that gives up system calls.

use rustix::thread::set_no_new_privs;

/// From now on, a system call of this thread is the end of its process, by SIGSYS, but for what an event needs: to write
/// to a descriptor, to read from it, and to look whether it is still the device's. The
/// strict mode of seccomp would end the thread alone: its process lives on while it has another one, and whoever
/// waits for its end waits in vain.
pub fn give_up_system_calls() {
    use libc::{BPF_ABS, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W};
    let step =
        |code: u32, jt, k: u32| libc::sock_filter { code: code.try_into().unwrap(), jt, jf: 0, k };
    let is = |call: libc::c_long, to| step(BPF_JMP | BPF_JEQ | BPF_K, to, call as u32);
    let mut filter = [
        // The call's number is first in what a filter sees.
        step(BPF_LD | BPF_W | BPF_ABS, 0, 0),
        is(libc::SYS_read, 3),
        is(libc::SYS_write, 2),
        is(libc::SYS_fstat, 1),
        step(BPF_RET | BPF_K, 0, libc::SECCOMP_RET_KILL_PROCESS),
        step(BPF_RET | BPF_K, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    set_no_new_privs(true).expect("seccomp is there");
    // SAFETY: the program is copied before the call returns.
    let made = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program) };
    assert_eq!(made, 0, "seccomp is there: {}", std::io::Error::last_os_error());
}
