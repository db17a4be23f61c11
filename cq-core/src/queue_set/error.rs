//! Why a set can't be polled or waited for.

use super::{ChannelId, QueueId};
use crate::sentences::sentences;
use crate::setup::DeviceError;
use crate::transport::{ArmError, EventError, PollError};

/// Why a set of queues can't be polled, armed or waited for. The set stays usable: what failed is named, and reported
/// again until it is removed, while the rest is served in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SetError {
    /// The buffer has no entry for a completion.
    EmptyBuffer,
    /// The set has queues and no channel, so no event would end the sleep.
    NoChannel,
    /// A queue failed or ended.
    Poll {
        /// The queue.
        queue: QueueId,
        /// Why it can't be polled.
        error: PollError,
    },
    /// A queue can't be armed.
    Arm {
        /// The queue.
        queue: QueueId,
        /// Why not.
        error: ArmError,
    },
    /// A channel failed.
    Event {
        /// The channel.
        channel: ChannelId,
        /// Why it can't be read.
        error: EventError,
    },
    /// The system can't wait for the descriptors.
    System(DeviceError),
}

sentences!(SetError {
    Self::EmptyBuffer => ("the buffer holds no completion: give one with at least one entry");
    Self::NoChannel => ("the set has completion queues and no channel: add their channels to it");
    Self::Poll { .. } => ("a completion queue of the set can't be polled: remove it from the set");
    Self::Arm { .. } => ("a completion queue of the set can't be armed: remove it from the set");
    Self::Event { .. } => ("a channel of the set can't be read: remove it from the set, with its completion queues");
    Self::System(_) => ("the set can't wait");
}
    Self::Poll { error, .. } => error;
    Self::Arm { error, .. } => error;
    Self::Event { error, .. } => error;
    Self::System(error) => error;
);
