//! Locks that are not released, and what that is for those who create objects.

use cq_verbs::setup::DeviceError;
pub use cq_verbs::setup::{CreateError, LimitKind, RegisterError};

use crate::conditions::STUCK;

/// A lock could not be taken: a live process has held it longer than any lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stuck;

impl From<Stuck> for DeviceError {
    fn from(Stuck: Stuck) -> Self {
        STUCK
    }
}

impl From<Stuck> for CreateError {
    fn from(Stuck: Stuck) -> Self {
        STUCK.into()
    }
}
