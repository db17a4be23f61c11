//! How much a fabric can hold. Said when it is made, and then the same for all who attach.

mod text;

use thiserror::Error;

pub use self::text::{LimitsTextError, from_env};
use super::header;
use super::liveness::MAX_PROCESSES;

/// Entries of a table at most: numbers of queue pairs have 24 bits, of which some tell generations.
const MAX_ENTRIES: u32 = 1 << 16;
/// Bytes of a fabric at most: offsets have 32 bits.
const MAX_BYTES: u64 = 1 << 31;
const PAGE: u64 = 4096;
/// Bytes of a fabric that nobody asked for another of: as many usual queue pairs as it has places for, each with a
/// completion queue of its own for all that its queues hold. The 64 MiB of shared memory that containers have hold it.
const USUAL_BYTES: u64 = 52 << 20;

/// How much a fabric can hold. Whoever makes it says so; for all who open it later, it is what it is.
///
/// Tables are powers of two, so there may be room for more than was asked for.
///
/// # From the environment
/// A program that can't be changed is given its limits in `RXE_LOOP_LIMITS`, which counts where it
/// [asks for none](crate::OpenOptions::limits): `queue_pairs=4096,bytes=256M`, with the names that the fields have here,
/// and what it does not name as usual. Bytes may be given in `K`, `M` and `G`.
///
/// ```
/// use transport_rxe_loop::Limits;
///
/// let limits: Limits = "queue_pairs=4096,bytes=256M".parse()?;
/// assert_eq!((limits.queue_pairs, limits.bytes), (4096, 256 << 20));
/// assert!("queue_pairs=many".parse::<Limits>().is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Queue pairs.
    pub queue_pairs: u32,
    /// Completion queues.
    pub completion_queues: u32,
    /// Memory regions and memory windows.
    pub memory_regions: u32,
    /// Shared receive queues.
    pub shared_receive_queues: u32,
    /// Completion channels and open contexts.
    pub channels: u32,
    /// Processes that are attached at a time, at most 254.
    pub processes: u32,
    /// Bytes of the file, with everything but registered memory. All of them are taken from the shared memory when
    /// the fabric is made. The usual 52 MiB hold 1,024 queue pairs of [usual](crate::QpInit::new) capacities, each
    /// with a completion queue for the 256 completions of its requests: 47 KiB for such a pair of them. A program that
    /// makes fewer, or many fabrics, may ask for less.
    pub bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            queue_pairs: 1024,
            completion_queues: 1024,
            memory_regions: 4096,
            shared_receive_queues: 256,
            channels: 512,
            processes: 64,
            bytes: USUAL_BYTES,
        }
    }
}

/// A fabric was there, and has other limits than were asked for: those with which it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the fabric was there, and has other limits than were asked for: {in_force}")]
pub struct OtherLimits {
    /// What was asked for, as it would be in force.
    pub asked: Limits,
    /// What is in force.
    pub in_force: Limits,
}

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

impl Limits {
    /// These, as they are in force: tables are powers of two, and the file is whole pages. `tables` says how
    /// many bytes the tables then take, after the header.
    ///
    /// # Errors
    /// There is too little or too much of something.
    pub(crate) fn in_force(&self, tables: fn(&Self) -> usize) -> Result<Self, LimitsError> {
        let table = |what, asked| match asked {
            1..=MAX_ENTRIES => Ok(u32::next_power_of_two(asked)),
            _ => Err(LimitsError::OutOfRange { what, asked, max: MAX_ENTRIES }),
        };
        let (what, asked, max) = ("processes", self.processes, MAX_PROCESSES);
        if !(1..=max).contains(&asked) {
            return Err(LimitsError::OutOfRange { what, asked, max });
        }
        let limits = Self {
            queue_pairs: table("queue pairs", self.queue_pairs)?,
            completion_queues: table("completion queues", self.completion_queues)?,
            memory_regions: table("memory regions", self.memory_regions)?,
            shared_receive_queues: table("shared receive queues", self.shared_receive_queues)?,
            channels: table("channels", self.channels)?,
            processes: asked,
            bytes: self.bytes.min(MAX_BYTES).next_multiple_of(PAGE),
        };
        // What is not a table is rings and queues: without a page of them nothing could be made.
        let min = (header::BYTES + tables(&limits)) as u64 + PAGE;
        if !(min..=MAX_BYTES).contains(&self.bytes) {
            return Err(LimitsError::Bytes { asked: self.bytes, min });
        }
        Ok(limits)
    }
}

#[cfg(test)]
mod tests;
