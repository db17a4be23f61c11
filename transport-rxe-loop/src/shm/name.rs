//! The name of a fabric, and the paths of its files.
//!
//! ```text
//! /dev/shm/rxe-loop.<user>.<name>                            the fabric
//! /dev/shm/rxe-loop.<user>.<name>.fifo.<index>               a FIFO
//! /dev/shm/rxe-loop.<user>.<name>.mem.<index>.<generation>   a memory file
//! /dev/shm/rxe-loop.<user>.<name>.cm.<number>                the socket of a listener
//! ```
//!
//! The user is the effective one, by number. No name of a fabric is also that of another fabric's FIFO, memory or socket. The
//! longest path of a socket has the 107 bytes that one may have.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use thiserror::Error;

/// The environment variable that names the fabric.
pub const VARIABLE: &str = "RXE_LOOP_FABRIC";
/// The directory of its files.
pub const DIRECTORY: &str = "/dev/shm";

const LONGEST: usize = 64;
const FIFO: &str = ".fifo.";
const MEMORY: &str = ".mem.";
const LISTENER: &str = ".cm.";

/// The name of a fabric. Processes of one user that open the same name share the fabric.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FabricName(String);

/// Why a name is refused.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum NameError {
    /// The name is empty.
    #[error("the fabric's name is empty: unset RXE_LOOP_FABRIC for the default one, or name it")]
    Empty,
    /// The name is too long.
    #[error("a fabric's name of {bytes} bytes is too long: at most {LONGEST}")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// The name starts with a dot, as `..` does.
    #[error("the fabric's name {name:?} starts with a dot: start it with a letter or a digit")]
    Dot {
        /// The name.
        name: String,
    },
    /// A file name cannot contain the character, or should not.
    #[error("the fabric's name {name:?} contains {found:?}: use letters, digits, `_`, `.` and `-`")]
    Character {
        /// The name.
        name: String,
        /// The first such character.
        found: char,
    },
    /// The name could be that of another fabric's FIFO, memory or socket.
    #[error(
        "the fabric's name {name:?} contains {part:?}, which is reserved for a fabric's other files"
    )]
    Reserved {
        /// The name.
        name: String,
        /// What it should not have.
        part: &'static str,
    },
    /// The name is not text.
    #[error("the fabric's name {name:?} is not UTF-8: use letters, digits, `_`, `.` and `-`")]
    NotText {
        /// The name.
        name: OsString,
    },
}

impl FabricName {
    /// The name in the environment, else `default`.
    ///
    /// # Errors
    /// The name in the environment is invalid.
    pub fn from_env() -> Result<Self, NameError> {
        std::env::var_os(VARIABLE).map_or_else(|| Ok(Self::unnamed()), Self::try_from)
    }

    /// The default name. Unit tests use one for each process.
    fn unnamed() -> Self {
        Self(if cfg!(test) { format!("unit-{}", std::process::id()) } else { "default".to_owned() })
    }

    /// The name of this user's fabric that has this file.
    pub fn of_file(file: &str) -> Option<Self> {
        file.strip_prefix(&prefix())?.parse().ok()
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for FabricName {
    type Err = NameError;

    fn from_str(name: &str) -> Result<Self, NameError> {
        let owned = || name.to_owned();
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
        if name.is_empty() {
            return Err(NameError::Empty);
        }
        if name.len() > LONGEST {
            return Err(NameError::TooLong { bytes: name.len() });
        }
        if name.starts_with('.') {
            return Err(NameError::Dot { name: owned() });
        }
        if let Some(found) = name.chars().find(|&c| !plain(c)) {
            return Err(NameError::Character { name: owned(), found });
        }
        if let Some(part) = [FIFO, MEMORY, LISTENER].into_iter().find(|part| name.contains(part)) {
            return Err(NameError::Reserved { name: owned(), part });
        }
        Ok(Self(owned()))
    }
}

impl TryFrom<OsString> for FabricName {
    type Error = NameError;

    fn try_from(name: OsString) -> Result<Self, NameError> {
        let text = name.into_string().map_err(|name| NameError::NotText { name })?;
        text.parse()
    }
}

/// The prefix of the names of this user's files.
fn prefix() -> String {
    format!("rxe-loop.{}.", rustix::process::geteuid().as_raw())
}

/// The paths of the files of one user's fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FabricPath {
    directory: PathBuf,
    file: String,
}

impl FabricPath {
    /// The paths of this user's fabric, in the system's shared memory.
    pub fn new(name: &FabricName) -> Self {
        Self::within(Path::new(DIRECTORY), name)
    }

    /// The paths in another directory.
    pub fn within(directory: &Path, name: &FabricName) -> Self {
        Self { directory: directory.to_owned(), file: format!("{}{}", prefix(), name.0) }
    }

    /// The paths of another fabric of the same user, which has this file in the same directory.
    pub fn other(&self, file: &str) -> Option<Self> {
        let other = Self::within(&self.directory, &FabricName::of_file(file)?);
        (other != *self).then_some(other)
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The name of the fabric.
    pub fn name(&self) -> &str {
        self.file.strip_prefix(&prefix()).unwrap_or(&self.file)
    }

    /// The name of the fabric's file.
    pub fn file_name(&self) -> &str {
        &self.file
    }

    /// The fabric's file.
    pub fn file(&self) -> PathBuf {
        self.directory.join(&self.file)
    }

    /// The FIFO at an index.
    pub fn fifo(&self, index: u32) -> PathBuf {
        self.directory.join(format!("{}{FIFO}{index}", self.file))
    }

    /// The memory file at an index, of a generation.
    pub fn memory(&self, index: u32, generation: u32) -> PathBuf {
        self.directory.join(format!("{}{MEMORY}{index}.{generation}", self.file))
    }

    /// The socket of a listener.
    pub fn listener(&self, number: u32) -> PathBuf {
        self.directory.join(format!("{}{LISTENER}{number}", self.file))
    }

    /// Whether a file in the directory is a FIFO, a memory file or a socket of this fabric.
    pub fn is_beside(&self, file: &str) -> bool {
        let numbers = |rest: &str, count: usize| {
            let number = |n: &str| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit());
            rest.split('.').count() == count && rest.split('.').all(number)
        };
        file.strip_prefix(&self.file).is_some_and(|rest| {
            [FIFO, LISTENER]
                .iter()
                .any(|&one| rest.strip_prefix(one).is_some_and(|rest| numbers(rest, 1)))
                || rest.strip_prefix(MEMORY).is_some_and(|rest| numbers(rest, 2))
        })
    }
}

#[cfg(test)]
mod tests;
