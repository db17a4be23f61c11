//! Limits as text, for the environment variable `RXE_LOOP_LIMITS`.

use std::str::FromStr;
use std::{env, fmt};

use thiserror::Error;

use super::Limits;

/// The environment variable with the limits of programs that request none.
pub const VARIABLE: &str = "RXE_LOOP_LIMITS";

/// Why a text could not be parsed as [`Limits`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum LimitsTextError {
    /// It is not UTF-8.
    #[error("it is not UTF-8")]
    NotText,
    /// A part of it is not `name=value`.
    #[error("`{part}` is not of the form `name=value`")]
    NoValue {
        /// The part.
        part: String,
    },
    /// No limit has this name.
    #[error(
        "unknown limit `{name}`: use queue_pairs, completion_queues, memory_regions, shared_receive_queues, channels, processes or bytes"
    )]
    Unknown {
        /// The name.
        name: String,
    },
    /// A value is not a number, or is too large.
    #[error("`{name}={value}` is not a number: give one such as `4096`, or of bytes `64M` or `1G`")]
    BadNumber {
        /// The name of the limit.
        name: String,
        /// The value.
        value: String,
    },
}

/// The limits in the environment, if any.
pub fn from_env() -> Result<Option<Limits>, LimitsTextError> {
    match env::var_os(VARIABLE) {
        None => Ok(None),
        Some(text) => text.to_str().ok_or(LimitsTextError::NotText)?.parse().map(Some),
    }
}

impl FromStr for Limits {
    type Err = LimitsTextError;

    /// Parses limits in the format of [the environment](Limits#from-the-environment). Others have their defaults.
    fn from_str(text: &str) -> Result<Self, LimitsTextError> {
        let mut limits = Self::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let no_value = || LimitsTextError::NoValue { part: part.to_owned() };
            let (name, value) = part.split_once('=').ok_or_else(no_value)?;
            let (name, value) = (name.trim(), value.trim());
            let bad =
                || LimitsTextError::BadNumber { name: name.to_owned(), value: value.to_owned() };
            let number = || value.parse::<u32>().map_err(|_| bad());
            match name {
                "queue_pairs" => limits.queue_pairs = number()?,
                "completion_queues" => limits.completion_queues = number()?,
                "memory_regions" => limits.memory_regions = number()?,
                "shared_receive_queues" => limits.shared_receive_queues = number()?,
                "channels" => limits.channels = number()?,
                "processes" => limits.processes = number()?,
                "bytes" => limits.bytes = bytes(value).ok_or_else(bad)?,
                _ => return Err(LimitsTextError::Unknown { name: name.to_owned() }),
            }
        }
        Ok(limits)
    }
}

/// Parses a number of bytes with an optional binary unit.
fn bytes(value: &str) -> Option<u64> {
    let units = [("K", 10), ("M", 20), ("G", 30)];
    let (number, shift) = units
        .into_iter()
        .find_map(|(unit, shift)| Some((value.strip_suffix(unit)?, shift)))
        .unwrap_or((value, 0));
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

impl fmt::Display for Limits {
    /// Formats the limits as `RXE_LOOP_LIMITS` takes them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { queue_pairs, completion_queues, memory_regions, .. } = self;
        let Self { shared_receive_queues, channels, processes, bytes, .. } = self;
        write!(f, "queue_pairs={queue_pairs},completion_queues={completion_queues},")?;
        write!(
            f,
            "memory_regions={memory_regions},shared_receive_queues={shared_receive_queues},"
        )?;
        write!(f, "channels={channels},processes={processes},bytes={bytes}")
    }
}

#[cfg(test)]
mod tests;
