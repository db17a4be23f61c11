//! Why a fabric can't be attached to.

use std::path::PathBuf;

use rustix::io::Errno;
use thiserror::Error;

use super::header::NotOurs;
use super::limits::LimitsError;
use super::name::NameError;

/// Why a fabric can't be attached to. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AttachError {
    /// It can't be called so.
    #[error(transparent)]
    Name(#[from] NameError),
    /// It can't hold so much, or so little.
    #[error(transparent)]
    Limits(#[from] LimitsError),
    /// There is no shared memory.
    #[error("there is no directory {directory:?}: mount a tmpfs there")]
    NoSharedMemory {
        /// Where it should be.
        directory: PathBuf,
    },
    /// Shared memory can't be written to.
    #[error(
        "no file can be made in {directory:?} (errno {errno}): it has to be writable for this user"
    )]
    ReadOnly {
        /// Where.
        directory: PathBuf,
        /// What the system said.
        errno: i32,
    },
    /// There is no room for the file.
    #[error(
        "no {bytes} bytes are free for {path:?}: enlarge the tmpfs or ask for a smaller fabric"
    )]
    Full {
        /// The file.
        path: PathBuf,
        /// How long it has to be.
        bytes: u64,
    },
    /// The process may not make a file of that length.
    #[error(
        "files of this process may have {limit} bytes, and {path:?} takes {bytes}: raise that (`ulimit -f`), or ask for a smaller fabric"
    )]
    FileSizeLimit {
        /// The file.
        path: PathBuf,
        /// How long it has to be.
        bytes: u64,
        /// How long it may be.
        limit: u64,
    },
    /// The process or the system has no descriptor left.
    #[error(
        "there is no file descriptor left (errno {errno}): close some, or raise the limit (`ulimit -n`)"
    )]
    NoDescriptor {
        /// What the system said.
        errno: i32,
    },
    /// Something else has the fabric's name.
    #[error(
        "{path:?} is {found}, not a file: remove it, or name another fabric in RXE_LOOP_FABRIC"
    )]
    NotAFile {
        /// Where.
        path: PathBuf,
        /// What it is.
        found: &'static str,
    },
    /// The file is another user's.
    #[error("{path:?} belongs to user {owner}: have it removed, or name another fabric")]
    NotOwned {
        /// The file.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
    },
    /// Others could read or write the file, or it can't be used.
    #[error("{path:?} has mode {mode:03o}, not 600: remove it, since others may have written it")]
    Mode {
        /// The file.
        path: PathBuf,
        /// What it has.
        mode: u32,
    },
    /// The file has several names, so somebody else may use it for something else.
    #[error("{path:?} has further names (hard links): remove it, or name another fabric")]
    Linked {
        /// The file.
        path: PathBuf,
    },
    /// The file is in use, but not by programs that this one can talk to.
    #[error("{path:?} is in use, but {why}: end its users, or name another fabric")]
    NotOurs {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: NotOurs,
    },
    /// Too many processes are attached.
    #[error(
        "all {max} processes that {path:?} can have are attached: end one, or name another fabric"
    )]
    TooManyProcesses {
        /// The file.
        path: PathBuf,
        /// How many.
        max: u32,
    },
    /// Others attach and leave without end, or one was stopped in doing so.
    #[error("others did not let this process attach to {path:?} in time: is one of them stopped?")]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// The system refused something that it should not.
    #[error("{step} of {path:?} failed (errno {errno})")]
    System {
        /// What.
        step: &'static str,
        /// Of what.
        path: PathBuf,
        /// What the system said.
        errno: i32,
    },
}

impl AttachError {
    /// That a step failed, where there is no more to say about it.
    pub fn system(step: &'static str, path: PathBuf, errno: Errno) -> Self {
        match errno {
            Errno::MFILE | Errno::NFILE => Self::NoDescriptor { errno: errno.raw_os_error() },
            Errno::BUSY => Self::Busy { path },
            _ => Self::System { step, path, errno: errno.raw_os_error() },
        }
    }
}
