//! The key of a completion queue.

use core::fmt;

/// Identifies a completion queue in the events of a channel. A device makes it for its queues, and a
/// [channel](crate::channel) of software queues for theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct CqKey {
    /// Of a device, the index in its table of completion queues.
    pub index: u32,
    /// Distinguishes the queue from earlier queues with the same index.
    pub generation: u32,
}

impl fmt::Display for CqKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.index, self.generation)
    }
}
