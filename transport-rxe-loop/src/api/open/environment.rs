//! Variables of the environment that are options, for programs that can't be changed.

use std::env;
use std::ffi::OsString;

use super::OpenError;
use crate::engine::port::link_layer::LinkLayer;

/// The environment variable that selects how memory of other processes is copied.
const COPY: &str = "RXE_LOOP_COPY";

/// The environment variable that names what is counted.
const COUNT: &str = "RXE_LOOP_COUNT";

/// The environment variable that names the device to imitate.
const IMITATE: &str = "RXE_LOOP_IMITATE";

/// The environment variable that makes the device strict.
const STRICT: &str = "RXE_LOOP_STRICT";

/// The environment variable that names the link layer.
const LINK_LAYER: &str = "RXE_LOOP_LINK_LAYER";

/// What the variable's value stands for in `words`, if it is set.
fn chosen<T: Copy>(
    variable: &str,
    words: &[(&str, T)],
    unknown: impl FnOnce(OsString) -> OpenError,
) -> Result<Option<T>, OpenError> {
    let Some(said) = env::var_os(variable) else { return Ok(None) };
    let known = words.iter().find(|(word, _)| said == *word);
    known.map(|&(_, choice)| Some(choice)).ok_or_else(|| unknown(said))
}

/// Whether the environment requests that service threads copy.
pub fn service_from_env() -> Result<Option<bool>, OpenError> {
    let words = [("direct", false), ("service", true)];
    chosen(COPY, &words, |how| OpenError::UnknownCopying { how })
}

/// Whether the environment requests that polls are counted.
pub fn counts_from_env() -> Result<Option<bool>, OpenError> {
    chosen(COUNT, &[("polls", true)], |what| OpenError::UnknownCount { what })
}

/// Whether the environment requests the imitation of Soft-RoCE.
pub fn imitates_from_env() -> Result<Option<bool>, OpenError> {
    chosen(IMITATE, &[("rxe", true)], |what| OpenError::UnknownImitation { what })
}

/// Whether the environment requests a strict device.
pub fn strict_from_env() -> Result<Option<bool>, OpenError> {
    chosen(STRICT, &[("0", false), ("1", true)], |how| OpenError::UnknownStrictness { how })
}

/// The link layer that the environment requests, if any.
pub fn link_layer_from_env() -> Result<Option<LinkLayer>, OpenError> {
    let words = [("infiniband", LinkLayer::InfiniBand), ("ethernet", LinkLayer::Ethernet)];
    chosen(LINK_LAYER, &words, |what| OpenError::UnknownLinkLayer { what })
}
