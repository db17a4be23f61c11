//! Variables of the environment that are options, for programs that can't be changed.

use std::env;

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

/// Whether the environment requests that service threads copy.
pub fn service_from_env() -> Result<bool, OpenError> {
    match env::var_os(COPY) {
        None => Ok(false),
        Some(how) if how == "direct" => Ok(false),
        Some(how) if how == "service" => Ok(true),
        Some(how) => Err(OpenError::UnknownCopying { how }),
    }
}

/// Whether the environment requests that polls are counted.
pub fn counts_from_env() -> Result<bool, OpenError> {
    match env::var_os(COUNT) {
        None => Ok(false),
        Some(what) if what == "polls" => Ok(true),
        Some(what) => Err(OpenError::UnknownCount { what }),
    }
}

/// Whether the environment requests the imitation of Soft-RoCE.
pub fn imitates_from_env() -> Result<bool, OpenError> {
    match env::var_os(IMITATE) {
        None => Ok(false),
        Some(what) if what == "rxe" => Ok(true),
        Some(what) => Err(OpenError::UnknownImitation { what }),
    }
}

/// Whether the environment requests a strict device.
pub fn strict_from_env() -> Result<bool, OpenError> {
    match env::var_os(STRICT) {
        None => Ok(false),
        Some(how) if how == "0" => Ok(false),
        Some(how) if how == "1" => Ok(true),
        Some(how) => Err(OpenError::UnknownStrictness { how }),
    }
}

/// The link layer that the environment requests, if any.
pub fn link_layer_from_env() -> Result<Option<LinkLayer>, OpenError> {
    match env::var_os(LINK_LAYER) {
        None => Ok(None),
        Some(what) if what == "infiniband" => Ok(Some(LinkLayer::InfiniBand)),
        Some(what) if what == "ethernet" => Ok(Some(LinkLayer::Ethernet)),
        Some(what) => Err(OpenError::UnknownLinkLayer { what }),
    }
}
