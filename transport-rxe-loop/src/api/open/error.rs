//! Errors of opening the device.

use std::ffi::OsString;
use std::io;

use cq_verbs::setup::Errno;
use thiserror::Error;

use crate::api::limits::{LimitsTextError, OtherLimitsError};
use crate::completion::channel::ChannelError;
use crate::engine::port::link_layer::LinkLayer;
use crate::error::CreateError;
use crate::policy::faults::FaultsError;
use crate::shm::error::{AttachError, ObserveError};
use crate::shm::limits::LimitsError;
use crate::shm::name::NameError;
use crate::shm::system::SystemError;

/// Why a device could not be opened.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// No device has this name.
    #[error("there is no device {name:?}; there are {}", there_are.join(", "))]
    NoSuchDevice {
        /// The requested name.
        name: String,
        /// The names of the devices.
        there_are: Vec<String>,
    },
    /// The channel of its asynchronous events could not be created.
    #[error("the device has no channel for its asynchronous events")]
    NoChannel(#[from] CreateError),
    /// The system refuses the FIFO of that channel.
    #[error("the device has no FIFO for its asynchronous events")]
    NoFifo(#[source] SystemError),
    /// The fabric could not be attached.
    #[error("the device's fabric can't be opened")]
    NoFabric(#[from] AttachError),
    /// `RXE_LOOP_COPY` is not a copy mode.
    #[error("RXE_LOOP_COPY is {how:?}: say `service` or `direct`, or unset it")]
    UnknownCopying {
        /// The value.
        how: OsString,
    },
    /// `RXE_LOOP_IMITATE` names no device that can be imitated.
    #[error("RXE_LOOP_IMITATE is {what:?}: say `rxe`, or unset it")]
    UnknownImitation {
        /// The value.
        what: OsString,
    },
    /// `RXE_LOOP_COUNT` names nothing that can be counted.
    #[error("RXE_LOOP_COUNT is {what:?}: say `polls`, or unset it")]
    UnknownCount {
        /// The value.
        what: OsString,
    },
    /// `RXE_LOOP_STRICT` does not say whether the device is strict.
    #[error("RXE_LOOP_STRICT is {how:?}: say `1`, or unset it")]
    UnknownStrictness {
        /// The value.
        how: OsString,
    },
    /// `RXE_LOOP_LINK_LAYER` is not a link layer.
    #[error("RXE_LOOP_LINK_LAYER is {what:?}: say `infiniband` or `ethernet`, or unset it")]
    UnknownLinkLayer {
        /// The value.
        what: OsString,
    },
    /// The fabric existed already, and has another link layer than the requested one.
    #[error(
        "the device was there with the link layer {in_force}, and {asked} was asked for: ask for the same or for none, or name another fabric in RXE_LOOP_FABRIC"
    )]
    OtherLinkLayer {
        /// The requested link layer.
        asked: LinkLayer,
        /// The link layer of the fabric.
        in_force: LinkLayer,
    },
    /// `RXE_LOOP_FAULTS` could not be parsed.
    #[error("RXE_LOOP_FAULTS can't be read")]
    BadFaults(#[from] FaultsError),
    /// `RXE_LOOP_LIMITS` could not be parsed.
    #[error("RXE_LOOP_LIMITS can't be read")]
    BadLimits(#[from] LimitsTextError),
}

impl From<ChannelError> for OpenError {
    fn from(why: ChannelError) -> Self {
        match why {
            ChannelError::Create(why) => Self::NoChannel(why),
            ChannelError::System(why) => Self::NoFifo(why),
        }
    }
}

impl OpenError {
    /// The error number that C gets.
    #[must_use]
    pub const fn errno(&self) -> Errno {
        match self {
            Self::NoSuchDevice { .. } => Errno::ENODEV,
            Self::NoChannel(why) => why.errno(),
            Self::NoFifo(why) => why.errno,
            Self::NoFabric(why) => why.errno(),
            _ => Errno::EINVAL,
        }
    }
}

cq_core::io_errors! {
    OpenError { error => error.errno(); }
    AttachError { error => error.errno(); }
    SystemError { error => error.errno; }
    ObserveError {
        ObserveError::NoSuchFabric { .. } => io::ErrorKind::NotFound;
        ObserveError::Unusable(error) => error.errno();
        _ => io::ErrorKind::InvalidInput;
    }
    NameError { _ => io::ErrorKind::InvalidInput; }
    LimitsError { _ => io::ErrorKind::InvalidInput; }
    LimitsTextError { _ => io::ErrorKind::InvalidInput; }
    FaultsError { _ => io::ErrorKind::InvalidInput; }
    OtherLimitsError { _ => io::ErrorKind::AlreadyExists; }
}
