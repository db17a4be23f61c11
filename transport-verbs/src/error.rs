//! What can go wrong while setting up, each with a sentence that says what to do about it.

use std::io;

use cq_core::setup::{QpAttrMask, QpState};
use cq_core::transport::EventError;
use thiserror::Error;

/// Why a device could not be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// There is no RDMA device at all.
    #[error(
        "there is no RDMA device here: `ibv_devices` lists them, `rdma link add rxe0 type rxe netdev NAME` makes a software one"
    )]
    NoDevice,
    /// There is no device of this name.
    #[error("there is no RDMA device {name:?}; there are {}", there_are.join(", "))]
    NoSuchDevice {
        /// The name that was asked for.
        name: String,
        /// The names that there are.
        there_are: Vec<String>,
    },
    /// The device or the system refused.
    #[error(transparent)]
    Refused(#[from] DeviceError),
}

/// What libibverbs or the device refused, with the errno that it gave.
#[derive(Debug, Error)]
#[error("cannot {attempt}: {error}")]
pub struct DeviceError {
    attempt: &'static str,
    error: io::Error,
}

impl DeviceError {
    /// `attempt` completes the sentence "cannot …".
    pub(crate) const fn new(attempt: &'static str, error: io::Error) -> Self {
        Self { attempt, error }
    }

    /// The errno.
    #[must_use]
    pub fn errno(&self) -> i32 {
        self.error.raw_os_error().unwrap_or(0)
    }
}

/// Why memory could not be registered (Q10).
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RegisterError {
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
    /// The system has no memory to give.
    #[error("the system gave no {len} bytes of memory (errno {errno})")]
    NoMemory {
        /// How much was needed.
        len: usize,
        /// What it said.
        errno: i32,
    },
    /// The device refused, or the limit on locked memory did.
    #[error(transparent)]
    Refused(#[from] DeviceError),
}

/// Says what was attempted when it fails.
pub(crate) trait Attempt<V> {
    fn attempt(self, attempt: &'static str) -> Result<V, DeviceError>;
}

impl<V> Attempt<V> for io::Result<V> {
    fn attempt(self, attempt: &'static str) -> Result<V, DeviceError> {
        self.map_err(|error| DeviceError::new(attempt, error))
    }
}

/// A failure while reading events, by its code.
#[allow(clippy::needless_pass_by_value)]
pub(crate) fn event_error(error: io::Error) -> EventError {
    EventError::Device(error.raw_os_error().unwrap_or(0))
}

/// Why a completion queue can't have a size. Nothing was made or changed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CapacityError {
    /// A completion queue has to hold something.
    #[error("a completion queue of 0 completions is too small: ask for at least 1")]
    Zero,
    /// More than the device allows.
    #[error("{asked} completions are more than the {max} that a queue of the device holds")]
    TooMany {
        /// How many were asked for.
        asked: u32,
        /// How many there can be.
        max: u32,
    },
    /// The device refused. EINVAL in resizing: more completions wait than were asked for; poll some first.
    #[error(transparent)]
    Refused(#[from] DeviceError),
}

/// Why a completion queue's events are not moderated.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ModerateError {
    /// The device has no such thing (EOPNOTSUPP).
    #[error("the device can't moderate events: arm less often instead")]
    Unsupported,
    /// The device refused. EINVAL: more than it can, see the attributes.
    #[error(transparent)]
    Refused(#[from] DeviceError),
}

/// Why a queue pair stays as it is (Q1): the device refused. Nothing was changed.
#[derive(Debug, Error)]
#[error(
    "the device refused to take the queue pair from {from} to {to} with {mask}: {error}; see ibv_modify_qp(3) for what this change takes"
)]
#[non_exhaustive]
pub struct ModifyError {
    /// The state that it is in.
    pub from: QpState,
    /// The state that was asked for.
    pub to: QpState,
    /// The attributes that were given.
    pub mask: QpAttrMask,
    pub(crate) error: io::Error,
}

impl ModifyError {
    /// The errno.
    #[must_use]
    pub fn errno(&self) -> i32 {
        self.error.raw_os_error().unwrap_or(0)
    }
}
