//! Errors of creating objects and registering memory, each with a sentence that says what to do about it, and with the
//! number that C gets.

use crate::sentences::{from, numbered_sentences};
use crate::setup::{Errno, Gid, Limit};

/// What the device or the system refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[error("cannot {attempt}: {errno}")]
pub struct DeviceError {
    /// What was attempted; it completes the sentence "cannot …".
    pub attempt: &'static str,
    /// The error number.
    pub errno: Errno,
}

/// A system call of a transport that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[error("{call} of {object} failed: {errno}: {advice}")]
pub struct FailedCall {
    /// The name of the call.
    pub call: &'static str,
    /// What it was called for.
    pub object: &'static str,
    /// The error number.
    pub errno: Errno,
    /// What to do about it.
    pub advice: &'static str,
}

/// Why an object could not be created.
///
/// ```
/// use cq_verbs::setup::{CreateError, Errno, Limit};
///
/// let error = CreateError::TooMany { what: Limit::Cqe, asked: 1 << 20, max: 65536 };
/// assert_eq!(error.to_string(), "1048576 completion queue entries exceed the device's maximum of 65536");
/// assert_eq!(error.errno(), Errno::EINVAL);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum CreateError {
    /// A queue needs a capacity of at least 1.
    Zero(Limit),
    /// More than the device allows.
    TooMany {
        /// The limit.
        what: Limit,
        /// How many were requested.
        asked: u32,
        /// The maximum.
        max: u32,
    },
    /// The device's table has no free entry.
    TableFull {
        /// The limit.
        what: Limit,
        /// The size of the table.
        max: u32,
    },
    /// The device's memory has no such free extent.
    NoMemory {
        /// How many bytes were needed.
        bytes: usize,
    },
    /// A live process holds a lock of the device and does not release it: it is suspended, or broken.
    Stuck,
    /// This process was forked from the one that opened the device.
    Forked,
    /// The channel or queue to use was made by another opening of the device, by another device, or by the parent
    /// process.
    OtherContext,
    /// A shared receive queue was given for an unreliable connection.
    OwnReceives,
    /// The system gave no descriptor.
    NoDescriptor {
        /// The error number.
        errno: Errno,
    },
    /// A system call of the transport failed.
    System(FailedCall),
    /// The device refused.
    Refused(DeviceError),
}

numbered_sentences!(
    /// The number that the functions of libibverbs leave in `errno`.
    CreateError {
        Self::Zero(what) => Errno::EINVAL, ("0 {what} are too few: ask for at least 1");
        Self::TooMany { what, asked, max } => Errno::EINVAL, ("{asked} {what} exceed the device's maximum of {max}");
        Self::TableFull { what, max } => Errno::ENOMEM, ("all {max} {what} of the device are in use: destroy some first");
        Self::NoMemory { bytes } => Errno::ENOMEM,
            ("the device's memory has no {bytes} contiguous bytes left: create smaller queues, or destroy some first");
        Self::Stuck => Errno::EBUSY, ("another process holds a lock of the device: resume it or end it, then try again");
        Self::Forked => Errno::ENODEV, ("the device was opened by the parent process: open it in this one, too");
        Self::OtherContext => Errno::EINVAL,
            ("its queue or channel was made by another opening of the device: create both with the same one");
        Self::OwnReceives => Errno::EOPNOTSUPP, ("an unreliable connection can't use a shared receive queue: leave it out");
        Self::NoDescriptor { errno: errno @ Errno::EMFILE } => errno,
            ("the process has no descriptor left for the channel ({errno}): close some, or raise the limit (`ulimit -n`)");
        Self::NoDescriptor { errno } => errno, ("the system gave no descriptor for the channel ({errno})");
        Self::System(call) => call.errno, ("{call}");
        Self::Refused(error) => error.errno, ("{error}");
    }
);

/// Why memory could not be registered ([Q10](cq_core::contract#q10)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum RegisterError {
    /// The region has no bytes.
    Empty,
    /// The memory would go past the end of the address space.
    OutOfRange {
        /// Where it starts.
        addr: u64,
        /// Its length.
        len: usize,
    },
    /// Peers could write what the device itself must not.
    NeedsLocalWrite,
    /// An access flag that the device does not know, and that is not marked optional.
    UnknownAccess {
        /// The unknown flags.
        bits: u32,
    },
    /// The device's table has no free entry.
    TableFull {
        /// The size of the table.
        max: u32,
    },
    /// The system's shared memory has no space for what the device would allocate.
    SharedMemoryFull {
        /// How many bytes were needed.
        len: usize,
    },
    /// The process's limit on file sizes is less than the region, which the device would allocate in a file.
    FileSizeLimit {
        /// How many bytes were needed.
        len: usize,
        /// The limit.
        limit: u64,
    },
    /// The system gave no memory.
    NoMemory {
        /// How many bytes were needed.
        len: usize,
        /// The error number.
        errno: Errno,
    },
    /// This process was forked from the one that opened the device.
    Forked,
    /// A system call of the transport failed.
    System(FailedCall),
    /// The device refused, or the limit on locked memory did.
    Refused(DeviceError),
}

numbered_sentences!(
    /// The number that the functions of libibverbs leave in `errno`.
    RegisterError {
        Self::Empty => Errno::EINVAL, ("a memory region of 0 bytes can't be registered");
        Self::OutOfRange { addr, len } => Errno::EFAULT, ("{len} bytes at {addr:#x} go past the end of the address space");
        Self::NeedsLocalWrite => Errno::EINVAL, ("REMOTE_WRITE and REMOTE_ATOMIC need LOCAL_WRITE too");
        Self::UnknownAccess { bits } => Errno::EINVAL,
            ("access flags {bits:#x} are not known to the device; optional ones start at bit 20");
        Self::TableFull { max } => Errno::ENOMEM,
            ("all {max} memory regions and windows of the device are in use: deregister some first");
        Self::SharedMemoryFull { len } => Errno::ENOMEM,
            ("the system's shared memory has no space for {len} bytes: free some of /dev/shm or enlarge it, or register memory of your own");
        Self::FileSizeLimit { len, limit } => Errno::EFBIG,
            ("files of this process may have {limit} bytes, and the region needs {len}: raise the limit (`ulimit -f`), or register memory of your own");
        Self::NoMemory { len, errno } => errno, ("the system gave no {len} bytes of memory: {errno}");
        Self::Forked => Errno::ENODEV, ("the device was opened by the parent process: open it in this one, too");
        Self::System(call) => call.errno, ("{call}");
        Self::Refused(error) => error.errno, ("{error}");
    }
);

/// Why a completion queue could not be resized ([Q12](cq_core::contract#q12)). Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum ResizeError {
    /// A queue of this capacity can't be made.
    Create(CreateError),
    /// The queue holds more completions than the new capacity.
    TooFew {
        /// The number of completions to be polled.
        unpolled: u32,
        /// The requested capacity.
        asked: u32,
    },
    /// More entries are [reserved](crate::budget) than the new capacity has.
    Reserved {
        /// The number of reserved entries, with those that are not yet free again.
        reserved: u32,
        /// The requested capacity.
        asked: u32,
    },
    /// The queue has overrun, which is permanent.
    Overrun,
}

numbered_sentences!(
    /// The number that `ibv_resize_cq(3)` returns.
    ResizeError {
        Self::Create(error) => error.errno(), ("{error}");
        Self::TooFew { unpolled, asked } => Errno::EINVAL,
            ("{unpolled} completions wait, more than the {asked} asked for: poll some first");
        Self::Reserved { reserved, asked } => Errno::EINVAL,
            ("{reserved} entries are reserved, more than the {asked} asked for: destroy queue pairs first, and poll the queue empty");
        Self::Overrun => Errno::EINVAL, ("the completion queue has overrun: destroy it, and make a larger one");
    }
);

/// Why the events of a completion queue could not be moderated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum ModerateError {
    /// The device does not support it.
    Unsupported,
    /// This process was forked from the one that opened the device.
    Forked,
    /// A live process holds the queue's lock and does not release it: it is suspended, or broken.
    Stuck,
    /// A system call of the transport failed, as for the thread that raises events once their period has passed.
    System(FailedCall),
    /// The device refused. EINVAL: more than its attributes allow.
    Refused(DeviceError),
}

numbered_sentences!(
    /// The number that `ibv_modify_cq(3)` returns.
    ModerateError {
        Self::Unsupported => Errno::EOPNOTSUPP, ("the device can't moderate events: arm less often instead");
        Self::Forked => Errno::ENODEV, ("the device was opened by the parent process: open it in this one, too");
        Self::Stuck => Errno::EBUSY, ("another process holds the queue's lock: resume it or end it, then try again");
        Self::System(call) => call.errno, ("{call}");
        Self::Refused(error) => error.errno, ("{error}");
    }
);

/// Why the limit of a shared receive queue could not be armed ([Q9](cq_core::contract#q9)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum ArmLimitError {
    /// The limit exceeds the queue's capacity.
    TooMany {
        /// The requested limit.
        asked: u32,
        /// The queue's capacity, in receives.
        max: u32,
    },
    /// This process was forked from the one that owns the queue.
    Forked,
    /// A live process holds the queue's lock and does not release it: it is suspended, or broken.
    Stuck,
    /// The device refused.
    Refused(DeviceError),
}

numbered_sentences!(
    /// The number that `ibv_modify_srq(3)` returns.
    ArmLimitError {
        Self::TooMany { asked, max } => Errno::EINVAL, ("a limit of {asked} is more than the queue's {max} receives");
        Self::Forked => Errno::ENODEV,
            ("the queue is the parent process's: open the device in this one, and create another");
        Self::Stuck => Errno::EBUSY, ("another process holds the queue's lock: resume it or end it, then try again");
        Self::Refused(error) => error.errno, ("{error}");
    }
);

/// Why an address handle could not be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum AddressError {
    /// The device has no such port.
    NoSuchPort {
        /// The requested port.
        port: u8,
    },
    /// The service level is out of range.
    NoSuchLevel {
        /// The requested service level.
        sl: u8,
    },
    /// No port has this local identifier.
    UnknownLid {
        /// The requested LID.
        lid: u16,
    },
    /// No port has this global identifier.
    UnknownGid {
        /// The requested GID.
        gid: Gid,
    },
    /// The port has no global identifier at this index.
    NoSuchGid {
        /// The requested index.
        index: u8,
    },
    /// This global identifier is of IPv4 and that at the source index of IPv6, or the other way round.
    OtherNetwork {
        /// The requested GID of the destination.
        gid: Gid,
        /// The requested index of the source.
        index: u8,
    },
    /// The port's link layer is Ethernet, or the device imitates one whose is: each address needs a global route.
    NoRoute,
    /// The completion is not a successful one of a receive, so it has no source address
    /// ([C4](cq_core::contract#c4)).
    NoDatagram,
    /// The device refused: it has no path there.
    Refused(DeviceError),
}

numbered_sentences!(
    /// The number that `ibv_create_ah(3)` leaves in `errno`.
    AddressError {
        Self::NoSuchPort { port } => Errno::EINVAL, ("the device has no port {port}: ports are numbered from 1");
        Self::NoSuchLevel { sl } => Errno::EINVAL, ("there is no service level {sl}: 0 to 15");
        Self::UnknownLid { lid } => Errno::EINVAL, ("no port has the local identifier {lid}: query the peer's port for its own");
        Self::UnknownGid { gid } => Errno::EINVAL, ("no port has the global identifier {gid}: query the peer's port for its own");
        Self::NoSuchGid { index } => Errno::EINVAL, ("the port has no global identifier at index {index}: query its table");
        Self::OtherNetwork { gid, index } => Errno::EINVAL,
            ("no route leads from the global identifier at index {index} to {gid}: use two of IPv4, or two of IPv6");
        Self::NoRoute => Errno::EINVAL, ("the address needs a global route, as on Ethernet: give one");
        Self::NoDatagram => Errno::EINVAL, ("the completion is not that of a received datagram");
        Self::Refused(error) => error.errno, ("{error}");
    }
);

from! {
    DeviceError => CreateError::Refused;
    DeviceError => RegisterError::Refused;
    DeviceError => AddressError::Refused;
    CreateError => ResizeError::Create;
}
