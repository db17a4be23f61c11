//! Errors of creating objects and registering memory, each with a sentence that says what to do about it, and with the
//! number that C gets.

use core::fmt;

use crate::sentences::{from, numbered_sentences};
use crate::setup::{Errno, Gid, LimitKind, ModifyError, QpType};

/// Why a transport, its device or the system refused: a sentence, and the error number. Each transport has its own.
///
/// ```
/// use cq_verbs::setup::{CreateError, DeviceError, Errno};
///
/// let refused = DeviceError::cannot("create a queue pair", Errno::EPERM);
/// assert_eq!(refused.to_string(), "cannot create a queue pair: operation not permitted (EPERM, errno 1)");
///
/// /// A reason of one transport. Programs compare an error with it.
/// const DOWN: DeviceError = DeviceError::new("the card is down: reset it", Errno::ENODEV);
/// let error = CreateError::from(DOWN);
/// assert_eq!((error, error.errno()), (CreateError::Refused(DOWN), Errno::ENODEV));
///
/// let full = DeviceError::new("the card lacks {} {}: {errno}", Errno::ENOSPC).number(64).text("bytes");
/// assert_eq!(full.to_string(), "the card lacks 64 bytes: no space left (ENOSPC, errno 28)");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct DeviceError {
    text: &'static str,
    values: [Option<Value>; 3],
    errno: Errno,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
enum Value {
    Text(&'static str),
    Number(u64),
}

impl DeviceError {
    /// An error with this text: what happened, and what to do about it. In it `{errno}` stands for the error number, and
    /// each `{}` for the next value, of which there are at most three.
    #[must_use]
    pub const fn new(text: &'static str, errno: Errno) -> Self {
        Self { text, values: [None; 3], errno }
    }

    /// What was attempted and failed; `attempt` completes the sentence "cannot …".
    #[must_use]
    pub const fn cannot(attempt: &'static str, errno: Errno) -> Self {
        Self::new("cannot {}: {errno}", errno).text(attempt)
    }

    /// The next value is this text.
    #[must_use]
    pub const fn text(self, text: &'static str) -> Self {
        self.with(Value::Text(text))
    }

    /// The next value is this number.
    #[must_use]
    pub const fn number(self, number: u64) -> Self {
        self.with(Value::Number(number))
    }

    const fn with(mut self, value: Value) -> Self {
        match &mut self.values {
            [next @ None, ..] | [_, next @ None, _] | [_, _, next] => *next = Some(value),
        }
        self
    }

    /// The number that C gets.
    #[must_use]
    pub const fn errno(&self) -> Errno {
        self.errno
    }
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut values = self.values.iter().flatten();
        for (nth, part) in self.text.split(['{', '}']).enumerate() {
            match (nth % 2, part) {
                (0, text) => f.write_str(text)?,
                (_, "errno") => write!(f, "{}", self.errno)?,
                _ => match values.next() {
                    Some(Value::Text(text)) => f.write_str(text)?,
                    Some(Value::Number(number)) => write!(f, "{number}")?,
                    None => {}
                },
            }
        }
        Ok(())
    }
}

impl fmt::Debug for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceError({self})")
    }
}

impl core::error::Error for DeviceError {}

/// Why an object could not be created.
///
/// ```
/// use cq_verbs::setup::{CreateError, Errno, LimitKind};
///
/// let error = CreateError::TooMany { what: LimitKind::Cqe, asked: 1 << 20, max: 65536 };
/// assert_eq!(error.to_string(), "1048576 completion queue entries exceed the device's maximum of 65536");
/// assert_eq!(error.errno(), Errno::EINVAL);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum CreateError {
    /// A queue needs a capacity of at least 1.
    Zero(LimitKind),
    /// More than the device allows.
    TooMany {
        /// The limit.
        what: LimitKind,
        /// How many were requested.
        asked: u32,
        /// The maximum.
        max: u32,
    },
    /// The device's table has no free entry.
    TableFull {
        /// The limit.
        what: LimitKind,
        /// The size of the table.
        max: u32,
    },
    /// The channel or queue to use was made by another opening of the device, by another device, or by the parent
    /// process.
    OtherContext,
    /// A shared receive queue was given for an unreliable connection.
    OwnReceives,
    /// Queue pairs of this type are not supported: it is not among the [known ones](QpType::KNOWN).
    UnknownType(QpType),
    /// The device refused.
    Refused(DeviceError),
}

numbered_sentences!(
    /// The number that the functions of libibverbs leave in `errno`.
    CreateError {
        Self::Zero(what) => Errno::EINVAL, ("0 {what} are too few: ask for at least 1");
        Self::TooMany { what, asked, max } => Errno::EINVAL, ("{asked} {what} exceed the device's maximum of {max}");
        Self::TableFull { what, max } => Errno::ENOMEM, ("all {max} {what} of the device are in use: destroy some first");
        Self::OtherContext => Errno::EINVAL,
            ("its queue or channel was made by another opening of the device: create both with the same one");
        Self::OwnReceives => Errno::EOPNOTSUPP, ("an unreliable connection can't use a shared receive queue: leave it out");
        Self::UnknownType(of) => Errno::EOPNOTSUPP, ("queue pairs of type {} are not supported: use RC, UC or UD", of.0);
        Self::Refused(error) => error.errno(), ("{error}");
    }
);

/// Why memory could not be registered ([Q10](cq_core::contract#q10)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    /// The system gave no memory.
    NoMemory {
        /// How many bytes were needed.
        len: usize,
        /// The error number.
        errno: Errno,
    },
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
        Self::NoMemory { len, errno } => errno, ("the system gave no {len} bytes of memory: {errno}");
        Self::Refused(error) => error.errno(), ("{error}");
    }
);

/// Why a completion queue could not be resized ([Q12](cq_core::contract#q12)). Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum ModerateError {
    /// The device does not support it.
    Unsupported,
    /// The device refused. EINVAL: more than its attributes allow.
    Refused(DeviceError),
}

numbered_sentences!(
    /// The number that `ibv_modify_cq(3)` returns.
    ModerateError {
        Self::Unsupported => Errno::EOPNOTSUPP, ("the device can't moderate events: arm less often instead");
        Self::Refused(error) => error.errno(), ("{error}");
    }
);

/// Why the limit of a shared receive queue could not be armed ([Q9](cq_core::contract#q9)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    /// The device refused.
    Refused(DeviceError),
}

numbered_sentences!(
    /// The number that `ibv_modify_srq(3)` returns.
    ArmLimitError {
        Self::TooMany { asked, max } => Errno::EINVAL, ("a limit of {asked} is more than the queue's {max} receives");
        Self::Refused(error) => error.errno(), ("{error}");
    }
);

/// Why an address handle could not be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    /// The port's link layer is Ethernet: each address needs a global route.
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
        Self::Refused(error) => error.errno(), ("{error}");
    }
);

from! {
    DeviceError => CreateError::Refused;
    DeviceError => RegisterError::Refused;
    DeviceError => ModerateError::Refused;
    DeviceError => ArmLimitError::Refused;
    DeviceError => AddressError::Refused;
    DeviceError => ModifyError::Device;
    CreateError => ResizeError::Create;
}
