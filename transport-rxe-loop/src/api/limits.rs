//! How much a fabric can hold. Said when it is made, and then the same for all who attach.

mod text;

use thiserror::Error;

pub use self::text::{LimitsTextError, from_env};
use crate::lifecycle::device::FORMAT;
use crate::shm::shape::{KINDS, Shape};

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
#[error("the device was there, and has other limits than were asked for: {in_force}")]
pub struct OtherLimits {
    /// What was asked for, as it would be in force.
    pub asked: Limits,
    /// What is in force.
    pub in_force: Limits,
}

impl Limits {
    /// The shape that a fabric with these limits has.
    pub(crate) fn shape(&self) -> Shape {
        let mut entries = [0; KINDS];
        entries[..5].copy_from_slice(&[
            self.queue_pairs,
            self.completion_queues,
            self.memory_regions,
            self.shared_receive_queues,
            self.channels,
        ]);
        Shape { entries, processes: self.processes, bytes: self.bytes }
    }

    /// Those that are in force, if they are others than these would be.
    pub(crate) fn others_than(&self, in_force: &Shape) -> Option<OtherLimits> {
        let asked = self.shape().in_force(&FORMAT).ok()?;
        let others = OtherLimits { asked: (&asked).into(), in_force: in_force.into() };
        (asked != *in_force).then_some(others)
    }
}

impl From<&Shape> for Limits {
    fn from(shape: &Shape) -> Self {
        let [queue_pairs, completion_queues, memory_regions, shared_receive_queues, channels, ..] =
            shape.entries;
        Self {
            queue_pairs,
            completion_queues,
            memory_regions,
            shared_receive_queues,
            channels,
            processes: shape.processes,
            bytes: shape.bytes,
        }
    }
}
