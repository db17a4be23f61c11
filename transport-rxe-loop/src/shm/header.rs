//! The header of a fabric's file, its first page: identity, sizes, and which processes are attached.
//!
//! ```text
//! 0      magic, version, layout, shape: written before any other process can see the file, and read once,
//!        into private memory, by each process that attaches
//! 1024   a word for each attachment: see `claim`
//! 4096   the tables
//! ```

use rustix::fd::BorrowedFd;
use rustix::io::{Errno, pread, pwrite, retry_on_intr};
use thiserror::Error;

use super::liveness::MAX_PROCESSES;
use super::plan::{Format, HEADER, Plan};
use super::shape::{KINDS, Shape};
use crate::shm::mapping::Mapping;
use crate::sync::AtomicU32;

const CLAIMS: usize = 1024;
const _: () = assert!(CLAIMS + 4 * MAX_PROCESSES as usize <= HEADER);

const MAGIC: u64 = u64::from_le_bytes(*b"rxe-loop");
/// Incremented whenever the meaning of the bytes or of the locks changes. [`Plan::layout`] identifies the tables.
pub const VERSION: u64 = 11;
const WORDS: usize = 5 + KINDS;

/// Why a file is not a fabric for this build.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum ForeignFileError {
    /// It does not start with the magic number.
    #[error("it is not a fabric")]
    Magic,
    /// It is a fabric of another version.
    #[error("it is of version {found}, and this is version {VERSION}")]
    Version {
        /// The version found.
        found: u64,
    },
    /// It is a fabric of a build whose tables differ.
    #[error("it was made by another build of this library, whose tables differ")]
    Layout,
    /// It is shorter than it was made.
    #[error("it was truncated: only {len} bytes of it are left")]
    Truncated {
        /// The length found, in bytes.
        len: u64,
    },
    /// Its numbers are invalid.
    #[error("its header is damaged")]
    Damaged,
}

fn numbers(shape: &Shape, format: &Format) -> [u64; WORDS] {
    let mut words = [0; WORDS];
    words[..3].copy_from_slice(&[MAGIC, VERSION, Plan::measure(shape, format).layout()]);
    words[3..5].copy_from_slice(&[shape.processes.into(), shape.bytes]);
    words[5..].copy_from_slice(&shape.entries.map(u64::from));
    words
}

/// Writes the header of a new file. The shape is in force.
pub fn write(fd: BorrowedFd<'_>, shape: &Shape, format: &Format) -> Result<(), Errno> {
    let bytes = numbers(shape, format).map(u64::to_le_bytes);
    let written = retry_on_intr(|| pwrite(fd, bytes.as_flattened(), 0))?;
    if written == WORDS * 8 { Ok(()) } else { Err(Errno::IO) }
}

/// Reads the header of a file of `len` bytes. The shape that is returned is valid and fits the length, whatever the
/// file contains.
pub fn read(
    fd: BorrowedFd<'_>,
    len: u64,
    format: &Format,
) -> Result<Result<Shape, ForeignFileError>, Errno> {
    let mut bytes = [[0; 8]; WORDS];
    // Missing bytes of a short file stay 0, which is invalid for each number.
    retry_on_intr(|| pread(fd, bytes.as_flattened_mut(), 0))?;
    Ok(validate(&bytes.map(u64::from_le_bytes), len, format))
}

/// Whether a file is a fabric of this version.
pub fn is_of_this_version(fd: BorrowedFd<'_>) -> bool {
    let mut bytes = [[0; 8]; 2];
    let read = retry_on_intr(|| pread(fd, bytes.as_flattened_mut(), 0));
    read.is_ok() && bytes.map(u64::from_le_bytes) == [MAGIC, VERSION]
}

fn validate(words: &[u64; WORDS], len: u64, format: &Format) -> Result<Shape, ForeignFileError> {
    let [magic, version, layout, processes, bytes, entries @ ..] = *words;
    if magic != MAGIC {
        return Err(ForeignFileError::Magic);
    }
    if version != VERSION {
        return Err(ForeignFileError::Version { found: version });
    }
    if len < HEADER as u64 {
        return Err(ForeignFileError::Truncated { len });
    }
    let number = |word| u32::try_from(word).unwrap_or(0);
    let found = Shape { entries: entries.map(number), processes: number(processes), bytes };
    // Of any shape: the layout does not depend on the number of entries.
    if layout
        != Plan::measure(&Shape { entries: [0; KINDS], processes: 0, bytes: 0 }, format).layout()
    {
        return Err(ForeignFileError::Layout);
    }
    let is_kept = entries.map(number).map(u64::from) == entries;
    match found.in_force(format) {
        Ok(shape) if shape == found && is_kept && bytes == len => Ok(shape),
        Ok(shape) if shape == found && is_kept && bytes > len => {
            Err(ForeignFileError::Truncated { len })
        }
        _ => Err(ForeignFileError::Damaged),
    }
}

/// The words of the attachments of a mapped fabric.
pub fn claims<'m>(memory: &'m Mapping, shape: &Shape) -> &'m [AtomicU32] {
    memory.slice(CLAIMS, shape.processes.min(MAX_PROCESSES) as usize).unwrap_or(&[])
}

#[cfg(test)]
mod tests;
