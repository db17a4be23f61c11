//! Which shapes a fabric can have.

use thiserror::Error;

use super::liveness::MAX_PROCESSES;
use super::plan::{Format, HEADER, Plan};
use super::shape::{KINDS, Shape};

/// Entries of a table at most.
pub const MAX_ENTRIES: u32 = 1 << 16;
/// Bytes of a file at most: offsets have 32 bits.
pub const MAX_BYTES: u64 = 1 << 31;
const PAGE: u64 = 4096;

/// Why a fabric can't have such limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LimitsError {
    /// There has to be one at least, and not too many.
    #[error("a fabric can't have {asked} {what}: from 1 to {max}")]
    OutOfRange {
        /// What they are.
        what: &'static str,
        /// How many were asked for.
        asked: u32,
        /// How many there can be.
        max: u32,
    },
    /// The file would be too short or too long.
    #[error("a fabric with these tables can't have {asked} bytes: from {min} to {MAX_BYTES}")]
    Bytes {
        /// How many were asked for.
        asked: u64,
        /// How many there have to be.
        min: u64,
    },
}

impl Shape {
    /// This one, as it is in force: tables are powers of two, and the file is whole pages.
    ///
    /// # Errors
    /// There is too little or too much of something.
    pub fn in_force(&self, format: &Format) -> Result<Self, LimitsError> {
        let (what, asked, max) = ("processes", self.processes, MAX_PROCESSES);
        if !(1..=max).contains(&asked) {
            return Err(LimitsError::OutOfRange { what, asked, max });
        }
        let mut entries = [0; KINDS];
        for ((entries, &asked), what) in entries.iter_mut().zip(&self.entries).zip(format.kinds) {
            if !(1..=MAX_ENTRIES).contains(&asked) {
                return Err(LimitsError::OutOfRange { what, asked, max: MAX_ENTRIES });
            }
            *entries = asked.next_power_of_two();
        }
        let bytes = self.bytes.min(MAX_BYTES).next_multiple_of(PAGE);
        let shape = Self { entries, processes: asked, bytes };
        // What is not a table is memory to allocate: without a page of it nothing could be made.
        let min = (HEADER + Plan::measure(&shape, format).bytes()) as u64 + PAGE;
        if !(min..=MAX_BYTES).contains(&self.bytes) {
            return Err(LimitsError::Bytes { asked: self.bytes, min });
        }
        Ok(shape)
    }
}

#[cfg(test)]
mod tests;
