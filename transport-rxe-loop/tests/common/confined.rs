//! A thread that gives up system calls, or to which the system refuses them.

use libc::{BPF_ABS, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, sock_filter};
use rustix::thread::set_no_new_privs;

/// From now on, a system call of this thread is the end of its process, by SIGSYS, but for what an event needs: to write
/// to a descriptor, to read from it, and to look whether it is still the device's. The
/// strict mode of seccomp would end the thread alone: its process lives on while it has another one, and whoever
/// waits for its end waits in vain.
pub fn give_up_system_calls() {
    let mut filter = [
        NUMBER,
        is(libc::SYS_read, 3),
        is(libc::SYS_write, 2),
        is(libc::SYS_fstat, 1),
        returns(libc::SECCOMP_RET_KILL_PROCESS),
        returns(libc::SECCOMP_RET_ALLOW),
    ];
    obey(&mut filter);
}

/// Does something on a thread to which the system refuses these calls with an error number, as it does to no other thread.
pub fn refused<T: Send>(
    calls: &[libc::c_long],
    errno: libc::c_int,
    what: impl FnOnce() -> T + Send,
) -> T {
    let mut filter = vec![NUMBER];
    filter.extend((1..=calls.len()).rev().zip(calls).map(|(to, &call)| is(call, to as u8)));
    filter.push(returns(libc::SECCOMP_RET_ALLOW));
    filter.push(returns(libc::SECCOMP_RET_ERRNO | errno as u32));
    let refused = || {
        obey(&mut filter);
        what()
    };
    std::thread::scope(|scope| scope.spawn(refused).join().unwrap())
}

/// Loads the call's number, which is first in what a filter sees.
const NUMBER: sock_filter = step(BPF_LD | BPF_W | BPF_ABS, 0, 0);

const fn step(code: u32, jt: u8, k: u32) -> sock_filter {
    sock_filter { code: code as u16, jt, jf: 0, k }
}

/// Goes on so many steps further where it is this call.
const fn is(call: libc::c_long, to: u8) -> sock_filter {
    step(BPF_JMP | BPF_JEQ | BPF_K, to, call as u32)
}

const fn returns(action: u32) -> sock_filter {
    step(BPF_RET | BPF_K, 0, action)
}

/// Has this thread obey a filter from now on.
fn obey(filter: &mut [sock_filter]) {
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    set_no_new_privs(true).expect("seccomp is there");
    // SAFETY: the program is copied before the call returns.
    let made = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program) };
    assert_eq!(made, 0, "seccomp is there: {}", std::io::Error::last_os_error());
}
