//! The errors of opening a device, and what the system refused.

use std::io;

use cq_core::transport::EventError;
use cq_verbs::setup::{CreateError, DeviceError, Errno, LimitKind};
use thiserror::Error;

/// Why a device could not be opened.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The host has no RDMA device.
    #[error(
        "there is no RDMA device here: `ibv_devices` lists them, `rdma link add rxe0 type rxe netdev NAME` makes a software one"
    )]
    NoDevice,
    /// There is no device of this name.
    #[error("there is no RDMA device {name:?}; there are {}", there_are.join(", "))]
    NoSuchDevice {
        /// The name that was asked for.
        name: String,
        /// The names of the devices of this host.
        there_are: Vec<String>,
    },
    /// The device or the system refused.
    #[error(transparent)]
    Refused(#[from] DeviceError),
}

cq_core::io_errors! {
    OpenError {
        This::NoDevice | This::NoSuchDevice { .. } => io::ErrorKind::NotFound;
        This::Refused(error) => *error;
    }
}

/// Says what was attempted when it fails.
pub(crate) trait Attempt<V> {
    fn attempt(self, attempt: &'static str) -> Result<V, DeviceError>;
}

impl<V> Attempt<V> for io::Result<V> {
    fn attempt(self, attempt: &'static str) -> Result<V, DeviceError> {
        self.map_err(|error| refused(attempt, &error))
    }
}

/// `attempt` completes the sentence "cannot …".
pub(crate) fn refused(attempt: &'static str, error: &io::Error) -> DeviceError {
    DeviceError::cannot(attempt, errno(error))
}

/// The first limit that more was asked of than the device has, or what it said otherwise.
pub(crate) fn beyond(limits: &[(LimitKind, u32, u32)], refused: DeviceError) -> CreateError {
    match limits.iter().find(|(_, asked, max)| asked > max) {
        Some(&(what, asked, max)) => CreateError::TooMany { what, asked, max },
        None => refused.into(),
    }
}

/// The error number.
pub(crate) fn errno(error: &io::Error) -> Errno {
    Errno(error.raw_os_error().unwrap_or(0))
}

/// A failure while reading events, by its code.
#[allow(clippy::needless_pass_by_value)]
pub(crate) fn event_error(error: io::Error) -> EventError {
    EventError::Device(error.raw_os_error().unwrap_or(0))
}
