//! Limits, as errors name them.

use core::fmt;

/// A limit of the device or of a queue pair, as named in errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum LimitKind {
    /// Entries of a completion queue.
    Cqe,
    /// Requests of a send queue.
    SendWr,
    /// Requests of a receive queue.
    RecvWr,
    /// Scatter/gather elements of a send request.
    SendSge,
    /// Scatter/gather elements of a receive request.
    RecvSge,
    /// Inline bytes of a send request.
    Inline,
    /// Queue pairs of the device.
    QueuePairs,
    /// Completion queues of the device.
    CompletionQueues,
    /// Receives of a shared receive queue.
    SrqWr,
    /// Scatter/gather elements of a receive of a shared receive queue.
    SrqSge,
    /// Shared receive queues of the device.
    SharedReceiveQueues,
    /// Completion channels and open contexts of the device.
    Channels,
    /// Memory regions and windows of the device.
    MemoryRegions,
    /// Protection domains of a process.
    ProtectionDomains,
    /// Completion vectors of the device.
    CompletionVectors,
}

impl fmt::Display for LimitKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cqe => "completion queue entries",
            Self::SendWr => "send requests",
            Self::RecvWr => "receive requests",
            Self::SendSge => "send scatter/gather elements",
            Self::RecvSge => "receive scatter/gather elements",
            Self::Inline => "inline bytes",
            Self::QueuePairs => "queue pairs",
            Self::CompletionQueues => "completion queues",
            Self::SrqWr => "shared receive requests",
            Self::SrqSge => "shared receive scatter/gather elements",
            Self::SharedReceiveQueues => "shared receive queues",
            Self::Channels => "channels and open contexts",
            Self::MemoryRegions => "memory regions and windows",
            Self::ProtectionDomains => "protection domains",
            Self::CompletionVectors => "completion vectors",
        })
    }
}
