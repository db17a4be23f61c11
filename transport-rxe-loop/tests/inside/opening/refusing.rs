//! A seccomp filter that has one of the calls of opening fail.

use std::mem::offset_of;

use libc::{BPF_ABS, BPF_JEQ, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_RET, BPF_W};
use rustix::thread::set_no_new_privs;

/// The calls of opening, and of what an open device makes.
pub const CALLS: &[&str] = &[
    "stat",
    "open",
    "fstat",
    "fchmod",
    "pwrite",
    "pread",
    "fcntl",
    "link",
    "unlink",
    "fallocate",
    "mmap",
    "madvise",
    "mknod",
    "getifaddrs",
    "rtnetlink",
    "clone",
    "epoll_create",
    "epoll_ctl",
    "timerfd_create",
    "socket",
    "bind",
    "getsockname",
    "connect",
];

/// The type of a netlink socket of the C library's; the device's does not block.
const NETLINK: u32 = (libc::SOCK_RAW | libc::SOCK_CLOEXEC) as u32;

/// What an argument has to be, or which of these bits it has to have.
enum Argument {
    Any,
    Is(u32, u32),
    Has(u32, u32),
}

/// The numbers of a call, and the argument that tells the one that is meant from others, which the standard library and the
/// allocator make.
fn meant(call: &str) -> (libc::c_long, Argument) {
    let unnamed = (libc::O_TMPFILE & !libc::O_DIRECTORY) as u32;
    match call {
        "stat" => (libc::SYS_newfstatat, Argument::Any),
        #[cfg(target_arch = "x86_64")]
        "open" => (libc::SYS_open, Argument::Has(1, unnamed)),
        #[cfg(not(target_arch = "x86_64"))]
        "open" => (libc::SYS_openat, Argument::Has(2, unnamed)),
        "fstat" => (libc::SYS_fstat, Argument::Any),
        "fchmod" => (libc::SYS_fchmod, Argument::Any),
        "pwrite" => (libc::SYS_pwrite64, Argument::Any),
        "pread" => (libc::SYS_pread64, Argument::Any),
        "fcntl" => (libc::SYS_fcntl, Argument::Is(1, libc::F_OFD_SETLK as u32)),
        "link" => (libc::SYS_linkat, Argument::Any),
        "unlink" => (libc::SYS_unlinkat, Argument::Any),
        "fallocate" => (libc::SYS_fallocate, Argument::Any),
        "mmap" => (libc::SYS_mmap, Argument::Has(3, libc::MAP_SHARED as u32)),
        "madvise" => (libc::SYS_madvise, Argument::Is(2, libc::MADV_DONTFORK as u32)),
        "mknod" => (libc::SYS_mknodat, Argument::Any),
        "getifaddrs" => (libc::SYS_socket, Argument::Is(1, NETLINK)),
        "rtnetlink" => (libc::SYS_socket, Argument::Is(1, NETLINK | libc::SOCK_NONBLOCK as u32)),
        "epoll_create" => (libc::SYS_epoll_create1, Argument::Any),
        "epoll_ctl" => (libc::SYS_epoll_ctl, Argument::Any),
        "timerfd_create" => (libc::SYS_timerfd_create, Argument::Any),
        "socket" => (libc::SYS_socket, Argument::Is(0, libc::AF_UNIX as u32)),
        "bind" => (libc::SYS_bind, Argument::Any),
        "getsockname" => (libc::SYS_getsockname, Argument::Any),
        "connect" => (libc::SYS_connect, Argument::Any),
        "clone" => (libc::SYS_clone, Argument::Any),
        "clone3" => (libc::SYS_clone3, Argument::Any),
        call => panic!("{call} is no call of opening"),
    }
}

/// From now on, this call of this thread fails by this number.
pub fn refuse(call: &str, errno: i32) {
    if call == "clone" {
        refuse("clone3", errno);
    }
    let step = |code: u32, (jt, jf), k| libc::sock_filter { code: code as u16, jt, jf, k };
    let load = |offset: usize| step(BPF_LD | BPF_W | BPF_ABS, (0, 0), offset as u32);
    // Of numbers of 64 bits, the low half.
    let low = if cfg!(target_endian = "little") { 0 } else { 4 };
    let argument = |nth: u32| load(offset_of!(libc::seccomp_data, args) + 8 * nth as usize + low);
    let end = |how| step(BPF_RET | BPF_K, (0, 0), how);
    let (number, which) = meant(call);
    let (load_argument, test) = match which {
        Argument::Any => (argument(0), step(BPF_JMP | BPF_JSET | BPF_K, (0, 0), 0)),
        Argument::Is(nth, it) => (argument(nth), step(BPF_JMP | BPF_JEQ | BPF_K, (0, 1), it)),
        Argument::Has(nth, bits) => (argument(nth), step(BPF_JMP | BPF_JSET | BPF_K, (0, 1), bits)),
    };
    let mut filter = [
        load(offset_of!(libc::seccomp_data, nr)),
        step(BPF_JMP | BPF_JEQ | BPF_K, (0, 3), number as u32),
        load_argument,
        test,
        end(libc::SECCOMP_RET_ERRNO | errno as u32),
        end(libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    set_no_new_privs(true).expect("seccomp is there");
    // SAFETY: the program is copied before the call returns.
    let made =
        unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) };
    assert_eq!(made, 0, "seccomp is there: {}", std::io::Error::last_os_error());
}
