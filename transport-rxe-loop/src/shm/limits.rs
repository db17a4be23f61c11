//! The limits of a fabric's shape.

use thiserror::Error;

use super::liveness::MAX_PROCESSES;
use super::plan::{Format, HEADER, Plan};
use super::shape::{KINDS, Shape};

/// The maximum number of entries of a table.
pub const MAX_ENTRIES: u32 = 1 << 16;
/// The maximum length of a file: offsets have 32 bits.
pub const MAX_BYTES: u64 = 1 << 31;
const PAGE: u64 = 4096;

/// Why a fabric cannot have such limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum LimitsError {
    /// A number is 0, or more than the maximum.
    #[error("a fabric can't have {asked} {what}: from 1 to {max}")]
    OutOfRange {
        /// The name of the number.
        what: &'static str,
        /// The number requested.
        asked: u32,
        /// The maximum.
        max: u32,
    },
    /// The file would be too short or too long.
    #[error("a fabric with these tables can't have {asked} bytes: from {min} to {MAX_BYTES}")]
    Bytes {
        /// The length requested.
        asked: u64,
        /// The minimum.
        min: u64,
    },
}

impl Shape {
    /// The shape in force: the lengths of tables are rounded up to powers of two, and the file to whole pages.
    ///
    /// # Errors
    /// A number is out of range.
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
        let of = |bytes: u64| {
            let bytes = bytes.min(MAX_BYTES).next_multiple_of(PAGE);
            Self { entries, processes: asked, bytes }
        };
        // The rest of the file is memory to allocate: without a page of it no object could be created.
        let needs = |bytes| (HEADER + Plan::measure(&of(bytes), format).bytes()) as u64 + PAGE;
        if !(needs(self.bytes)..=MAX_BYTES).contains(&self.bytes) {
            // A table grows with the file.
            let mut min = needs(0);
            while needs(min) > min {
                min = needs(min);
            }
            return Err(LimitsError::Bytes { asked: self.bytes, min });
        }
        Ok(of(self.bytes))
    }
}

#[cfg(test)]
mod tests;
