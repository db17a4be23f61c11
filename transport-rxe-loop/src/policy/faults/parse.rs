//! Faults in text form, for programs that can't be changed.

use std::env;
use std::str::FromStr;
use std::time::Duration;

use cq_core::wc::WcStatus;
use cq_verbs::fault::When;
use thiserror::Error;

use super::{Fault, Faults};

/// The environment variable with the faults of programs that request none.
pub const VARIABLE: &str = "RXE_LOOP_FAULTS";

/// Why a text could not be parsed as [`Faults`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum FaultsError {
    /// It is not UTF-8.
    #[error("it is not UTF-8")]
    NotText,
    /// A part of it is not `name=value`.
    #[error("`{part}` is not of the form `name=value`")]
    NoValue {
        /// Which one.
        part: String,
    },
    /// No fault has this name.
    #[error("unknown fault `{name}`: use seed, fail, defer, delay, rnr, stop, overrun or spurious")]
    Unknown {
        /// The name.
        name: String,
    },
    /// The seed is not a number, or out of range.
    #[error("`{value}` is not a seed: give a whole number below 2^64")]
    BadSeed {
        /// The value.
        value: String,
    },
    /// When the fault happens can't be parsed.
    #[error("`{value}` does not say when: give a probability from 0 to 1, or `#3` for the third")]
    BadWhen {
        /// The value.
        value: String,
    },
    /// A duration can't be parsed.
    #[error("`{value}` is not a duration: give one such as `50us` or `2ms`")]
    BadTime {
        /// The value.
        value: String,
    },
    /// No status has this name, or it is not a failure.
    #[error(
        "`{value}` is not a failure: give the name of a status, such as `RETRY_EXC_ERR`, or its number"
    )]
    BadStatus {
        /// The value.
        value: String,
    },
    /// A fault lacks its part after the colon.
    #[error("`{name}` also needs a colon and {wanted}")]
    Incomplete {
        /// The name of the fault.
        name: String,
        /// What is missing.
        wanted: &'static str,
    },
}

/// Parses the environment variable, if it is set.
pub fn from_env() -> Result<Option<Faults>, FaultsError> {
    match env::var_os(VARIABLE) {
        None => Ok(None),
        Some(text) => text.to_str().ok_or(FaultsError::NotText)?.parse().map(Some),
    }
}

impl FromStr for Faults {
    type Err = FaultsError;

    /// Parses the format of [the environment variable](Faults#from-the-environment). An empty text has no faults.
    fn from_str(text: &str) -> Result<Self, FaultsError> {
        let mut faults = Self::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let no_value = || FaultsError::NoValue { part: part.to_owned() };
            match part.split_once('=').ok_or_else(no_value)? {
                ("seed", value) => faults.seed = parse_seed(value)?,
                (name, value) => {
                    let (when, fault) = parse_rule(name, value)?;
                    faults = faults.with(when, fault);
                }
            }
        }
        Ok(faults)
    }
}

fn parse_rule(name: &str, value: &str) -> Result<(When, Fault), FaultsError> {
    /// How long a peer has no receive, and how long it stops, by default.
    const USUAL: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(10));
    let (when, more) = match value.split_once(':') {
        Some((when, more)) => (when, Some(more)),
        None => (value, None),
    };
    let incomplete = |wanted| FaultsError::Incomplete { name: name.to_owned(), wanted };
    let lasting = |usual| more.map_or(Ok(usual), parse_time);
    Ok(match name {
        "defer" => (When::always(), Fault::Defer(parse_time(value)?)),
        "overrun" => (parse_when(value)?, Fault::Overrun),
        "spurious" => (parse_when(value)?, Fault::Spurious),
        "rnr" => (parse_when(when)?, Fault::Starve(lasting(USUAL.0)?)),
        "stop" => (parse_when(when)?, Fault::Stop(lasting(USUAL.1)?)),
        "delay" => {
            let by = more.ok_or_else(|| incomplete("by how much, as `delay=0.1:2ms`"))?;
            (parse_when(when)?, Fault::Delay(parse_time(by)?))
        }
        "fail" => {
            let status = more.ok_or_else(|| incomplete("with which status, as `fail=#3:21`"))?;
            (parse_when(when)?, Fault::Fail(parse_status(status)?))
        }
        _ => return Err(FaultsError::Unknown { name: name.to_owned() }),
    })
}

fn parse_seed(value: &str) -> Result<u64, FaultsError> {
    value.parse().map_err(|_| FaultsError::BadSeed { value: value.to_owned() })
}

fn parse_when(value: &str) -> Result<When, FaultsError> {
    let when = match value.strip_prefix('#') {
        Some(nth) => nth.parse().ok().filter(|&nth| nth > 0).map(When::nth),
        None => {
            let probability = value.parse().ok().filter(|chance| (0.0..=1.0).contains(chance));
            probability.map(When::chance)
        }
    };
    when.ok_or_else(|| FaultsError::BadWhen { value: value.to_owned() })
}

fn parse_time(value: &str) -> Result<Duration, FaultsError> {
    humantime::parse_duration(value).map_err(|_| FaultsError::BadTime { value: value.to_owned() })
}

fn parse_status(value: &str) -> Result<WcStatus, FaultsError> {
    let named = |status: &&WcStatus| status.name().is_some_and(|name| name == value);
    let status = WcStatus::KNOWN.iter().find(named).copied();
    let status = status.or_else(|| value.parse().ok().map(WcStatus));
    let failure = status.filter(|&status| status != WcStatus::SUCCESS);
    failure.ok_or_else(|| FaultsError::BadStatus { value: value.to_owned() })
}
