//! The exit statuses of failures, and their causes.

use std::error::Error;
use std::fmt;

use bench::Failure;
use cq_verbs::causes::Causes;

/// The exit status where cqperf is asked for what can't be measured.
pub const USAGE: u8 = 2;
/// The exit status where the transport has no device.
pub const NO_DEVICE: u8 = 3;
/// The exit status of an interrupted run, as a shell has it for SIGINT.
pub const INTERRUPTED: u8 = 130;

/// The exit status, and why.
#[derive(Debug)]
pub struct Exit {
    /// The exit status.
    pub code: u8,
    /// Why.
    pub why: Failure,
}

impl Exit {
    /// Something else went wrong.
    pub fn failed(why: impl Into<Failure>) -> Self {
        Self { code: 1, why: why.into() }
    }

    /// This can't be measured.
    pub fn usage(why: impl Into<Failure>) -> Self {
        Self { code: USAGE, why: why.into() }
    }

    /// Somebody wanted it to end.
    pub fn interrupted() -> Self {
        let why = "interrupted: the report is of what was measured until then";
        Self { code: INTERRUPTED, why: why.into() }
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for Exit {
    fn from(why: E) -> Self {
        Self::failed(why)
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Causes(&*self.why).fmt(f)
    }
}
