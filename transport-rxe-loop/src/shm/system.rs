//! System calls that fail while a device is opened, or while it makes something that the system has a part in: which
//! call, what it was called for, and what a user can do. [`ROWS`] is the table of the manual.

use std::path::Path;

use cq_verbs::setup::{DeviceError, Errno};
use rustix::fs::statvfs;
use thiserror::Error;

/// A system call that failed. The manual lists [what can be done](crate::manual#when-a-system-call-fails).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Error)]
#[error("{call} of {object} failed: {errno}: {advice}")]
#[non_exhaustive]
pub struct SystemError {
    /// The name of the call.
    pub call: &'static str,
    /// What it was called for: a path in quotes, or in words.
    pub object: String,
    /// The error number.
    pub errno: Errno,
    /// What to do about it.
    pub advice: &'static str,
}

impl SystemError {
    /// A call for a path.
    #[doc(hidden)]
    #[must_use]
    pub fn at(call: &'static str, path: &Path, errno: rustix::io::Errno) -> Self {
        let errno = Errno(errno.raw_os_error());
        let advice = advice(call, Some(path), errno);
        Self { call, object: format!("{path:?}"), errno, advice }
    }

    /// A call for what has no path.
    #[doc(hidden)]
    #[must_use]
    pub fn of(call: &'static str, object: &str, errno: rustix::io::Errno) -> Self {
        let errno = Errno(errno.raw_os_error());
        Self { call, object: object.to_owned(), errno, advice: advice(call, None, errno) }
    }

    /// The same, of an object that has no name of its own.
    pub(crate) fn for_object(self, object: &'static str) -> DeviceError {
        let failed = DeviceError::new("{} of {} failed: {errno}: {}", self.errno);
        failed.text(self.call).text(object).text(self.advice)
    }

    /// The same, for so many bytes of the path.
    #[must_use]
    pub(crate) fn bytes(self, bytes: u64) -> Self {
        Self { object: format!("{bytes} bytes of {}", self.object), ..self }
    }
}

/// What to do about a failed call.
fn advice(call: &str, path: Option<&Path>, errno: Errno) -> &'static str {
    let fits = |row: &&Row| {
        (row.calls.is_empty() || row.calls.contains(&call))
            && (row.errnos.is_empty() || row.errnos.contains(&errno))
            && row.when.holds(path)
    };
    ROWS.iter().find(fits).map_or("", |row| row.advice)
}

/// What distinguishes failures of the same call with the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Nothing.
    Always,
    /// The path is in `/proc`.
    InProc,
    /// The path's file system has no inode left.
    NoInode,
}

impl When {
    fn holds(self, path: Option<&Path>) -> bool {
        match self {
            Self::Always => true,
            Self::InProc => path.is_some_and(|path| path.starts_with("/proc")),
            Self::NoInode => path.is_some_and(has_no_inode),
        }
    }
}

/// Whether the file system of a path, which may not exist yet, has no inode left. One that counts none has no limit.
fn has_no_inode(path: &Path) -> bool {
    let mut systems = path.ancestors().take(2).filter_map(|path| statvfs(path).ok());
    systems.next().is_some_and(|system| system.f_files != 0 && system.f_favail == 0)
}

/// A row of the table. The first that fits gives the advice.
#[derive(Debug)]
pub struct Row {
    /// The calls; all if there are none.
    pub calls: &'static [&'static str],
    /// The error numbers; all if there are none.
    pub errnos: &'static [Errno],
    /// What else has to hold.
    pub when: When,
    /// What to do about it.
    pub advice: &'static str,
}

/// Declares rows: calls, error numbers, and what else has to hold.
macro_rules! rows {
    ($([$($call:literal),*] [$($errno:ident),*] $when:ident => $advice:literal;)+) => {
        &[$(Row {
            calls: &[$($call),*],
            errnos: &[$(Errno::$errno),*],
            when: When::$when,
            advice: $advice,
        }),+]
    };
}

/// All advice.
pub const ROWS: &[Row] = rows! {
    [] [EMFILE] Always => "the process has no descriptor left: close some, or raise the limit (`ulimit -n`)";
    [] [ENFILE] Always => "the system has no descriptor left: end programs, or raise the limit (`sysctl fs.file-max`)";
    ["open", "link"] [ENOENT] InProc => "/proc is not mounted: mount it (`mount -t proc proc /proc`)";
    ["open"] [ENOENT] Always =>
        "there is no such directory: make it, and mount a tmpfs there (`mount -t tmpfs tmpfs /dev/shm`)";
    ["stat", "open"] [ENOTDIR] Always =>
        "this is no directory: make one there, and mount a tmpfs (`mount -t tmpfs tmpfs /dev/shm`)";
    ["stat", "open", "mknod", "link"] [EACCES] Always =>
        "this user may not use /dev/shm: permit it (`chmod 1777 /dev/shm`), also in a policy of SELinux or AppArmor";
    ["open", "mknod", "link"] [EROFS] Always =>
        "/dev/shm is read-only: remount it (`mount -o remount,rw /dev/shm`)";
    ["open", "mknod"] [ENOSPC] NoInode =>
        "/dev/shm has no inode left: remove files there, or remount it with more (`mount -o remount,nr_inodes=… /dev/shm`)";
    ["epoll_ctl"] [ENOSPC] Always =>
        "the user watches as many descriptors as the system permits: raise the limit (`sysctl fs.epoll.max_user_watches`)";
    [] [ENOSPC] Always =>
        "/dev/shm is full: remove files there, enlarge it (`mount -o remount,size=… /dev/shm`, `docker run --shm-size=…`), or ask for a smaller fabric (`RXE_LOOP_LIMITS=bytes=…`)";
    ["open", "pwrite", "fallocate", "mknod"] [EDQUOT] Always =>
        "the quota of this user in /dev/shm is used up: remove files there, or have it raised";
    ["open", "fallocate"] [EOPNOTSUPP] Always =>
        "the file system of /dev/shm lacks unnamed files or reserved space: mount a tmpfs there (`mount -t tmpfs tmpfs /dev/shm`)";
    ["fallocate"] [EFBIG] Always =>
        "files of this process may not be so long: raise the limit (`ulimit -f`), or ask for a smaller fabric (`RXE_LOOP_LIMITS=bytes=…`)";
    ["mknod", "open"] [EEXIST] Always =>
        "something has this name that can't be removed: remove it, or name another fabric (`RXE_LOOP_FABRIC=…`)";
    ["clone"] [EAGAIN] Always =>
        "no thread or no memory for its stack is left: end some, or raise the limits (`ulimit -u`, `ulimit -v`, `pids.max` of a container)";
    ["fcntl"] [EINVAL] Always =>
        "the kernel has no locks of open files (`F_OFD_SETLK`): use Linux 3.15 or later";
    ["mmap"] [EAGAIN] Always =>
        "the process locks its memory (`mlockall`), and may lock no more: raise the limit (`ulimit -l`), or ask for a smaller fabric (`RXE_LOOP_LIMITS=bytes=…`)";
    [] [ENOMEM] Always =>
        "there is no memory or address space left: raise the limit (`ulimit -v`), end programs, or ask for a smaller fabric (`RXE_LOOP_LIMITS=bytes=…`)";
    ["getifaddrs", "rtnetlink"] [EAFNOSUPPORT] Always =>
        "the process may not use netlink sockets: permit them (`RestrictAddressFamilies=AF_NETLINK` of systemd), or ask for InfiniBand (`RXE_LOOP_LINK_LAYER=infiniband`)";
    ["socket"] [EAFNOSUPPORT] Always =>
        "the process may not use Unix sockets: permit them (`RestrictAddressFamilies=AF_UNIX` of systemd)";
    [] [EPERM, ENOSYS] Always =>
        "the system forbids the call, as a seccomp filter of a container does: permit it there";
    [] [] Always => "this is not foreseen: the manual page of the call has the number";
};
