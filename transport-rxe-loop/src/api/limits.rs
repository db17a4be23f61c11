//! The limits of a fabric. They are fixed when it is created.

mod text;

use thiserror::Error;

pub use self::text::{LimitsTextError, from_env};
use crate::lifecycle::device::FORMAT;
use crate::shm::shape::{KINDS, Shape};

/// Bytes of a fabric by default: for 1,024 queue pairs of usual capacities, each with a completion queue of its own for all
/// requests of its queues. It fits the 64 MiB of shared memory that containers have.
const USUAL_BYTES: u64 = 53 << 20;

/// The limits of a fabric. The process that creates it chooses them; they hold for all that open it later.
///
/// Table sizes are rounded up to powers of two. The defaults are 2,048 queue pairs, 1,024 completion queues, 4,096 regions
/// and windows, 256 shared receive queues, 512 channels, 64 processes and 53 MiB.
///
/// # Memory
/// The [`bytes`](Self::bytes) hold the tables, rings and queues of all processes. They are reserved when the fabric is
/// created: full shared memory, or a limit for the size of files (`ulimit -f`), is an error then and no crash later. A
/// process shows as much of them as it has used, as shared memory. Memory that the device
/// [allocates](crate::ProtectionDomain::allocate) is reserved in addition, region by region; registered memory of a
/// program's own does not count.
///
/// # From the environment
/// `RXE_LOOP_LIMITS` sets the limits of programs that [request none](crate::OpenOptions::limits), for example
/// `queue_pairs=4096,bytes=256M`. The names are those of the fields; limits that it does not name have their defaults.
/// Bytes may be given in binary multiples: `K`, `M` and `G`.
///
/// ```
/// use transport_rxe_loop::Limits;
///
/// let limits: Limits = "queue_pairs=4096,bytes=256M".parse()?;
/// assert_eq!((limits.queue_pairs, limits.bytes), (4096, 256 << 20));
/// assert!("queue_pairs=many".parse::<Limits>().is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Limits {
    /// Queue pairs. There are eight ports for each, for identifiers that connect by [addresses](crate::cm#addresses-and-ports).
    pub queue_pairs: u32,
    /// Completion queues.
    pub completion_queues: u32,
    /// Memory regions and memory windows.
    pub memory_regions: u32,
    /// Shared receive queues.
    pub shared_receive_queues: u32,
    /// Completion channels and open contexts.
    pub channels: u32,
    /// Processes that are attached at the same time, at most 254.
    pub processes: u32,
    /// Bytes of the fabric's file, which holds everything except registered memory. The default of 53 MiB holds 1,024
    /// queue pairs of [usual](crate::QpCaps::USUAL) capacities, each with a completion queue for the 256 completions of
    /// its requests: 47 KiB for both. A program that needs fewer, or creates many fabrics, may request less.
    pub bytes: u64,
}

impl Limits {
    /// The default: 2,048 queue pairs and what usually belongs to them, in 53 MiB.
    pub const USUAL: Self = Self {
        queue_pairs: 2048,
        completion_queues: 1024,
        memory_regions: 4096,
        shared_receive_queues: 256,
        channels: 512,
        processes: 64,
        bytes: USUAL_BYTES,
    };

    cq_verbs::setters! { queue_pairs: u32; completion_queues: u32; memory_regions: u32; shared_receive_queues: u32; channels: u32; processes: u32; bytes: u64; }
}

impl Default for Limits {
    fn default() -> Self {
        Self::USUAL
    }
}

/// The fabric existed already, and has other limits than those requested.
///
/// See [`Context::other_limits`](crate::Context::other_limits) for an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[error("the device was there, and has other limits than were asked for: {in_force}")]
pub struct OtherLimitsError {
    /// The requested limits, rounded as they would be in force.
    pub asked: Limits,
    /// The limits in force.
    pub in_force: Limits,
}

impl Limits {
    /// The shape of a fabric with these limits.
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

    /// These limits and those in force, if they differ once these are rounded.
    pub(crate) fn others_than(&self, in_force: &Shape) -> Option<OtherLimitsError> {
        let asked = self.shape().in_force(&FORMAT).ok()?;
        let others = OtherLimitsError { asked: (&asked).into(), in_force: in_force.into() };
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
