//! Errors of attaching to a fabric.

use std::path::{Path, PathBuf};

use cq_verbs::setup::Errno;
use thiserror::Error;

use super::header::ForeignFileError;
use super::limits::LimitsError;
use super::name::NameError;
use super::system::SystemError;

/// Why a process could not attach to a fabric. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum AttachError {
    /// The name is invalid.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The limits are invalid.
    #[error(transparent)]
    Limits(#[from] LimitsError),
    /// A system call failed.
    #[error(transparent)]
    System(#[from] SystemError),
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
        why: ForeignFileError,
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
    /// Other processes kept attaching and leaving, or one was stopped while it did; or another thread is about to fork.
    #[error(
        "attaching to {path:?} took too long because of other processes, or of a thread that is about to fork: resume or end a process that is stopped"
    )]
    Busy {
        /// The file.
        path: PathBuf,
    },
}

/// Why a fabric can't be observed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Error)]
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
        why: ForeignFileError,
    },
    /// The file can't be opened.
    #[error(transparent)]
    Unusable(#[from] AttachError),
}

impl AttachError {
    /// The error of a call for a path.
    pub(crate) fn system(call: &'static str, path: &Path, errno: rustix::io::Errno) -> Self {
        match errno {
            // Of no call: other processes keep this one waiting.
            rustix::io::Errno::BUSY => Self::Busy { path: path.to_owned() },
            errno => SystemError::at(call, path, errno).into(),
        }
    }

    /// Whether it may be over once other processes have ended.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::TooManyProcesses { .. } => true,
            Self::System(error) => [Errno::ENOSPC, Errno::EDQUOT].contains(&error.errno),
            _ => false,
        }
    }

    /// The error number that C gets.
    #[must_use]
    pub const fn errno(&self) -> Errno {
        match self {
            Self::Name(_) | Self::Limits(_) => Errno::EINVAL,
            Self::System(error) => error.errno,
            Self::TooManyProcesses { .. } => Errno::ENOMEM,
            _ => Errno(libc::EIO),
        }
    }
}
