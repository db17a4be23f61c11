//! Why a set can't be polled or waited for.

use cq_core::transport::{ArmError, EventError, PollError};

use super::{ChannelId, QueueId};
use crate::setup::DeviceError;

/// Why a set of queues can't be polled, armed or waited for. The set stays usable: what failed is named, and reported
/// again until it is removed, while the rest is served in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum SetError {
    /// The buffer has no entry for a completion.
    #[error("the buffer holds no completion: give one with at least one entry")]
    EmptyBuffer,
    /// No channel of the set serves the queue, so none of its events would end the sleep.
    #[error("the channel of a completion queue is not in the set: add it, or remove the queue")]
    NoChannel {
        /// The queue.
        queue: QueueId,
    },
    /// A queue failed or ended.
    #[error("a completion queue of the set can't be polled: remove it from the set")]
    Poll {
        /// The queue.
        queue: QueueId,
        /// Why it can't be polled.
        #[source]
        error: PollError,
    },
    /// A queue can't be armed.
    #[error("a completion queue of the set can't be armed: remove it from the set")]
    Arm {
        /// The queue.
        queue: QueueId,
        /// Why not.
        #[source]
        error: ArmError,
    },
    /// A channel failed.
    #[error(
        "a channel of the set can't be read: remove it from the set, with its completion queues"
    )]
    Event {
        /// The channel.
        channel: ChannelId,
        /// Why it can't be read.
        #[source]
        error: EventError,
    },
    /// The system can't wait for the descriptors.
    #[error("the set can't wait")]
    System(#[source] DeviceError),
}
