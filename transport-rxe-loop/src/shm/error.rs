//! Errors of attaching to a fabric.

use std::path::PathBuf;

use rustix::io::Errno;
use thiserror::Error;

use super::header::NotOurs;
use super::limits::LimitsError;
use super::name::NameError;

/// Why a process could not attach to a fabric. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AttachError {
    /// The name is invalid.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The limits are invalid.
    #[error(transparent)]
    Limits(#[from] LimitsError),
    /// There is no shared memory.
    #[error("there is no directory {directory:?}: mount a tmpfs there")]
    NoSharedMemory {
        /// Where it should be.
        directory: PathBuf,
    },
    /// Shared memory is not writable.
    #[error(
        "no file can be created in {directory:?} (errno {errno}): make it writable for this user"
    )]
    ReadOnly {
        /// Where.
        directory: PathBuf,
        /// The system's error number.
        errno: i32,
    },
    /// There is no space for the file.
    #[error(
        "no {bytes} bytes are free for {path:?}: enlarge the tmpfs or ask for a smaller fabric"
    )]
    Full {
        /// The file.
        path: PathBuf,
        /// The length that it needs.
        bytes: u64,
    },
    /// The process's limit on file sizes is less than the fabric.
    #[error(
        "files of this process may have {limit} bytes, and {path:?} needs {bytes}: raise the limit (`ulimit -f`), or ask for a smaller fabric"
    )]
    FileSizeLimit {
        /// The file.
        path: PathBuf,
        /// The length that it needs.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// The process or the system has no descriptor left.
    #[error(
        "there is no file descriptor left (errno {errno}): close some, or raise the limit (`ulimit -n`)"
    )]
    NoDescriptor {
        /// The system's error number.
        errno: i32,
    },
    /// Something other than a file has the fabric's name.
    #[error(
        "{path:?} is {found}, not a file: remove it, or name another fabric in RXE_LOOP_FABRIC"
    )]
    NotAFile {
        /// Where.
        path: PathBuf,
        /// What it is.
        found: &'static str,
    },
    /// The file belongs to another user.
    #[error("{path:?} belongs to user {owner}: have it removed, or name another fabric")]
    NotOwned {
        /// The file.
        path: PathBuf,
        /// Its owner.
        owner: u32,
    },
    /// Other users could read or write the file, or its owner cannot.
    #[error(
        "{path:?} has mode {mode:03o}, not 600: remove it, since other users may have written it"
    )]
    Mode {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// The file has several hard links, so it may be in use for something else.
    #[error("{path:?} has further names (hard links): remove it, or name another fabric")]
    Linked {
        /// The file.
        path: PathBuf,
    },
    /// The file is in use, by programs that this build cannot communicate with.
    #[error("{path:?} is in use, but {why}: end its users, or name another fabric")]
    NotOurs {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: NotOurs,
    },
    /// Too many processes are attached.
    #[error(
        "{path:?} has the maximum of {max} attached processes: end one, or name another fabric"
    )]
    TooManyProcesses {
        /// The file.
        path: PathBuf,
        /// The maximum.
        max: u32,
    },
    /// Other processes kept attaching and leaving, or one was stopped while it did.
    #[error(
        "attaching to {path:?} took too long because of other processes: resume or end one that is stopped"
    )]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// The system refused an unexpected step.
    #[error("{step} of {path:?} failed (errno {errno})")]
    System {
        /// The step.
        step: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error number.
        errno: i32,
    },
}

/// Why a fabric can't be observed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ObserveError {
    /// The name is invalid.
    #[error(transparent)]
    Name(#[from] NameError),
    /// No fabric has the name.
    #[error(
        "there is no fabric {name:?} of this user: start a program that opens it, or name another one"
    )]
    NoSuchFabric {
        /// The name.
        name: String,
    },
    /// The file is no fabric of this build.
    #[error("{path:?} can't be observed: {why}")]
    NotOurs {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: NotOurs,
    },
    /// The file can't be opened.
    #[error(transparent)]
    Unusable(#[from] AttachError),
}

impl AttachError {
    /// The error for a step that failed.
    pub fn system(step: &'static str, path: PathBuf, errno: Errno) -> Self {
        match errno {
            Errno::MFILE | Errno::NFILE => Self::NoDescriptor { errno: errno.raw_os_error() },
            Errno::BUSY => Self::Busy { path },
            _ => Self::System { step, path, errno: errno.raw_os_error() },
        }
    }
}
