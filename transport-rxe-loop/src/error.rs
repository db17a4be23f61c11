//! What can go wrong while setting up, each with a sentence that says what to do about it.

use std::fmt;

use thiserror::Error;

/// A lock could not be had: a process that lives has held it for longer than any lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stuck;

/// Why shared memory could not be allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocError {
    /// The device is the parent process'.
    Forked,
    /// There are not so many bytes in one piece.
    Full {
        /// How many were asked for.
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

/// A limit of the device or of a queue pair, to name it in errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Limit {
    /// Entries of a completion queue.
    Cqe,
    /// Requests of a send queue.
    SendWr,
    /// Requests of a receive queue.
    RecvWr,
    /// Pieces of a send request.
    SendSge,
    /// Pieces of a receive request.
    RecvSge,
    /// Inline bytes of a send request.
    Inline,
    /// Queue pairs of the device.
    QueuePairs,
    /// Completion queues of the device.
    CompletionQueues,
    /// Receives of a shared receive queue.
    SrqWr,
    /// Pieces of a receive of a shared receive queue.
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

/// Why an object could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CreateError {
    /// The queue has to hold something.
    #[error("0 {0} are too few: ask for at least 1")]
    Zero(Limit),
    /// More than the device allows.
    #[error("{asked} {what} are more than the device's {max}")]
    TooMany {
        /// What there would be too many of.
        what: Limit,
        /// How many were asked for.
        asked: u32,
        /// How many there can be.
        max: u32,
    },
    /// Every place of the device's table is taken.
    #[error("all {max} {what} of the device are in use: destroy some first")]
    TableFull {
        /// What there are too many of.
        what: Limit,
        /// How many there can be.
        max: u32,
    },
    /// The device's memory is used up.
    #[error(
        "the device's memory has no {bytes} bytes left in one piece: make smaller queues, or destroy some first"
    )]
    NoMemory {
        /// How much was needed.
        bytes: usize,
    },
    /// A process that lives holds a lock of the device and does not give it back: it is suspended, or broken.
    #[error("another process holds a lock of the device: let it go on, or end it, then try again")]
    Stuck,
    /// This process was forked from the one that opened the device.
    #[error("the device was opened by the parent process: open it in this one, too")]
    Forked,
    /// What it is to be made with is of another fabric, or of the process that this one was forked from.
    #[error("its queue or channel is of another fabric: make both by one opening of the device")]
    OtherFabric,
    /// An unreliable connection was to take its receives from a shared receive queue.
    #[error(
        "unreliable connections have receives of their own: leave the shared receive queue out"
    )]
    OwnReceives,
    /// The system refused a descriptor.
    #[error(
        "the system gave no descriptor for the channel (errno {errno}): close some, or raise the limit (`ulimit -n`)"
    )]
    NoDescriptor {
        /// What it said.
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
    /// There is nothing to register.
    #[error("a memory region of 0 bytes can't be registered")]
    Empty,
    /// The memory would go past the end of the address space.
    #[error("{len} bytes at {addr:#x} go past the end of the address space")]
    OutOfRange {
        /// Where it starts.
        addr: u64,
        /// How long it is.
        len: usize,
    },
    /// Peers may write what the device itself may not.
    #[error("REMOTE_WRITE and REMOTE_ATOMIC need LOCAL_WRITE too")]
    NeedsLocalWrite,
    /// A right that the device does not know, and that is not marked optional.
    #[error("access flags {bits:#x} are not known to the device; optional ones start at bit 20")]
    UnknownAccess {
        /// The flags that are not known.
        bits: u32,
    },
    /// Every place of the device's table is taken.
    #[error("all {max} memory regions and windows of the device are in use: deregister some first")]
    TableFull {
        /// How many there can be.
        max: u32,
    },
    /// The protection domain is one too many to be told from others: nothing can be made in it.
    #[error(
        "this process has more than {max} protection domains: destroy some, and make this one anew"
    )]
    TooManyDomains {
        /// How many there can be.
        max: u32,
    },
    /// What processes share has no room for the device to allocate so much.
    #[error(
        "the system's shared memory has no room for {len} bytes: free some of /dev/shm or enlarge it, or register memory of your own"
    )]
    SharedMemoryFull {
        /// How much was needed.
        len: usize,
    },
    /// The process may not make a file of that length, as what the device allocates lies in one.
    #[error(
        "files of this process may have {limit} bytes, and the region takes {len}: raise that (`ulimit -f`), or register memory of your own"
    )]
    FileSizeLimit {
        /// How much was needed.
        len: usize,
        /// How much there may be.
        limit: u64,
    },
    /// The system has no memory to give.
    #[error("the system gave no {len} bytes of memory (errno {errno})")]
    NoMemory {
        /// How much was needed.
        len: usize,
        /// What it said.
        errno: i32,
    },
}
