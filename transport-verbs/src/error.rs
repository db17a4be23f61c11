//! What can go wrong while setting up, each with a sentence that says what to do about it.

use std::{fmt, io};

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

/// Says what was attempted when it fails.
pub(crate) trait Attempt<V> {
    fn attempt(self, attempt: &'static str) -> Result<V, DeviceError>;
}

impl<V> Attempt<V> for io::Result<V> {
    fn attempt(self, attempt: &'static str) -> Result<V, DeviceError> {
        self.map_err(|error| DeviceError::new(attempt, error))
    }
}

/// Something still uses what was to be destroyed (EBUSY); the handle comes back.
pub struct InUse<T> {
    /// What was to be destroyed.
    pub handle: T,
    what: &'static str,
    users: &'static str,
}

impl<T> InUse<T> {
    pub(crate) const fn new(handle: T, what: &'static str, users: &'static str) -> Self {
        Self { handle, what, users }
    }
}

impl<T> fmt::Display for InUse<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the {} is in use: destroy {} first", self.what, self.users)
    }
}

impl<T> fmt::Debug for InUse<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<T> std::error::Error for InUse<T> {}
