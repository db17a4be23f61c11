//! Errors of creating objects and registering memory, each with a sentence that says what to do about it.

use std::fmt;

use thiserror::Error;

/// A lock could not be taken: a live process has held it longer than any lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stuck;

/// Why shared memory could not be allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocError {
    /// The device was opened by the parent process.
    Forked,
    /// There are not so many contiguous free bytes.
    Full {
        /// How many were requested.
        bytes: usize,
    },
    /// Another process holds the lock.
    Stuck,
}

impl From<Stuck> for AllocError {
    fn from(Stuck: Stuck) -> Self {
        Self::Stuck
    }
}

/// A limit of the device or of a queue pair, as named in errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Limit {
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
    /// Memory regions of the device.
    MemoryRegions,
    /// Protection domains of a process.
    ProtectionDomains,
}

impl fmt::Display for Limit {
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
            Self::MemoryRegions => "memory regions",
            Self::ProtectionDomains => "protection domains",
        })
    }
}

/// Why an object could not be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CreateError {
    /// A queue needs a capacity of at least 1.
    #[error("0 {0} are too few: ask for at least 1")]
    Zero(Limit),
    /// More than the device allows.
    #[error("{asked} {what} exceed the device's maximum of {max}")]
    TooMany {
        /// The limit.
        what: Limit,
        /// How many were requested.
        asked: u32,
        /// The maximum.
        max: u32,
    },
    /// The device's table has no free entry.
    #[error("all {max} {what} of the device are in use: destroy some first")]
    TableFull {
        /// The limit.
        what: Limit,
        /// The size of the table.
        max: u32,
    },
    /// The device's memory has no such free extent.
    #[error(
        "the device's memory has no {bytes} contiguous bytes left: create smaller queues, or destroy some first"
    )]
    NoMemory {
        /// How many bytes were needed.
        bytes: usize,
    },
    /// A live process holds a lock of the device and does not release it: it is suspended, or broken.
    #[error("another process holds a lock of the device: resume it or end it, then try again")]
    Stuck,
    /// This process was forked from the one that opened the device.
    #[error("the device was opened by the parent process: open it in this one, too")]
    Forked,
    /// The queue or channel to use belongs to another fabric, or was opened by the parent process.
    #[error(
        "its queue or channel belongs to another fabric: create both with the same open device"
    )]
    OtherFabric,
    /// A shared receive queue was given for an unreliable connection.
    #[error("an unreliable connection can't use a shared receive queue: leave it out")]
    OwnReceives,
    /// The system gave no descriptor.
    #[error(
        "the system gave no descriptor for the channel (errno {errno}): close some, or raise the limit (`ulimit -n`)"
    )]
    NoDescriptor {
        /// The system's error number.
        errno: i32,
    },
}

impl From<Stuck> for CreateError {
    fn from(Stuck: Stuck) -> Self {
        Self::Stuck
    }
}

impl From<AllocError> for CreateError {
    fn from(why: AllocError) -> Self {
        match why {
            AllocError::Forked => Self::Forked,
            AllocError::Full { bytes } => Self::NoMemory { bytes },
            AllocError::Stuck => Self::Stuck,
        }
    }
}

/// Why memory could not be registered (Q10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// This process was forked from the one that opened the device.
    #[error("the device was opened by the parent process: open it in this one, too")]
    Forked,
    /// The region has no bytes.
    #[error("a memory region of 0 bytes can't be registered")]
    Empty,
    /// The memory would go past the end of the address space.
    #[error("{len} bytes at {addr:#x} go past the end of the address space")]
    OutOfRange {
        /// Where it starts.
        addr: u64,
        /// Its length.
        len: usize,
    },
    /// Peers could write what the device itself must not.
    #[error("REMOTE_WRITE and REMOTE_ATOMIC need LOCAL_WRITE too")]
    NeedsLocalWrite,
    /// An access flag that the device does not know, and that is not marked optional.
    #[error("access flags {bits:#x} are not known to the device; optional ones start at bit 20")]
    UnknownAccess {
        /// The unknown flags.
        bits: u32,
    },
    /// The device's table has no free entry.
    #[error("all {max} memory regions and windows of the device are in use: deregister some first")]
    TableFull {
        /// The size of the table.
        max: u32,
    },
    /// The process has more protection domains than can be numbered; nothing can be created in this one.
    #[error(
        "this process has more than {max} protection domains: destroy some, and create this one again"
    )]
    TooManyDomains {
        /// The maximum.
        max: u32,
    },
    /// The system's shared memory has no space for what the device would allocate.
    #[error(
        "the system's shared memory has no space for {len} bytes: free some of /dev/shm or enlarge it, or register memory of your own"
    )]
    SharedMemoryFull {
        /// How many bytes were needed.
        len: usize,
    },
    /// The process's limit on file sizes is less than the region, which the device would allocate in a file.
    #[error(
        "files of this process may have {limit} bytes, and the region needs {len}: raise the limit (`ulimit -f`), or register memory of your own"
    )]
    FileSizeLimit {
        /// How many bytes were needed.
        len: usize,
        /// The limit.
        limit: u64,
    },
    /// The system gave no memory.
    #[error("the system gave no {len} bytes of memory (errno {errno})")]
    NoMemory {
        /// How many bytes were needed.
        len: usize,
        /// The system's error number.
        errno: i32,
    },
}
