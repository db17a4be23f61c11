//! Locks that are not released, and memory that is not left; and what these are for those who create objects.

pub use cq_verbs::setup::{CreateError, Limit, RegisterError};

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
