//! The key of a completion queue.

use core::fmt;

/// Identifies a completion queue in the events of a channel. A device makes it for its queues, and a
/// [channel](crate::channel) of software queues for theirs.
///
/// ```
/// use cq_core::transport::CqKey;
///
/// let key = CqKey { index: 3, generation: 1 };
/// assert_eq!(key.to_string(), "3.1");
/// assert!(key < CqKey { index: 3, generation: 2 });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
