//! The errors of this crate as those of `std::io`. Feature `std`.

use std::io::{Error, ErrorKind};

use crate::ledger::NotPostedError;
use crate::setup::InUseError;

cq_core::io_errors! {
    crate::setup::DeviceError { error => error.errno(); }
    crate::setup::RangeError { _ => ErrorKind::InvalidInput; }
    crate::setup::MtuError { _ => ErrorKind::InvalidInput; }
    crate::setup::TimerError { _ => ErrorKind::InvalidInput; }
    crate::setup::EndpointError { _ => ErrorKind::InvalidData; }
    crate::post::WrError {
        This::QueueFull => ErrorKind::WouldBlock;
        This::Unsupported => ErrorKind::Unsupported;
        This::Device(code) | This::Unknown(code) => Self::from_raw_os_error(*code);
        _ => ErrorKind::InvalidInput;
    }
    crate::post::PostError { error => error.why; }
    crate::ledger::ReapError { This::Refused(why) => *why; This::Poll(error) => *error; }
    crate::queue_set::SetError {
        This::Poll { error, .. } => *error;
        This::Arm { error, .. } => *error;
        This::Event { error, .. } => *error;
        This::System(error) => *error;
        _ => ErrorKind::InvalidInput;
    }
    crate::rpma::RpmaError {
        This::NoCompletion => ErrorKind::WouldBlock;
        This::Provider(error) | This::Unknown(error) => *error;
        This::Create(error) => *error;
        _ => ErrorKind::InvalidInput;
    }
    #[cfg(target_has_atomic = "32")]
    crate::budget::OverdrawnError {}
    #[cfg(target_has_atomic = "32")]
    crate::tracked::CreateTrackedError { This::Create(error) => *error; }
    #[cfg(target_has_atomic = "32")]
    crate::tracked::FailError { This::Modify(error) => *error; This::Marker(why) => *why; }
    #[cfg(target_has_atomic = "32")]
    crate::tracked::DrainError { This::Fail(error) => *error; This::Poll(error) => *error; }
    #[cfg(target_os = "linux")]
    crate::cm::CmError {
        This::NoCm { errno, .. } => *errno;
        This::Refused(error) => *error;
        This::Modify(error) => *error;
        This::TimedOut { .. } => ErrorKind::TimedOut;
        This::Address { .. } | This::Route { .. } | This::Unreachable(_) => ErrorKind::HostUnreachable;
        This::Rejected { .. } => ErrorKind::ConnectionRefused;
        This::Failed(status) => Self::from_raw_os_error(status.0.saturating_neg());
        This::Disconnected | This::Abandoned => ErrorKind::ConnectionReset;
    }
    #[cfg(target_os = "linux")]
    crate::cm::ModifyQpError { This::Attributes(errno) => *errno; This::Modify(error) => *error; }
    #[cfg(target_os = "linux")]
    crate::exchange::ExchangeError {
        This::TimedOut { .. } => ErrorKind::TimedOut;
        This::Closed { .. } => ErrorKind::UnexpectedEof;
        This::Stream(error) => error.kind();
        _ => ErrorKind::InvalidData;
    }
    #[cfg(all(feature = "tokio", unix))]
    crate::task::RequestError { This::Refused(why) => *why; This::Failed(failed) => *failed; }
}

/// The token is dropped.
impl<T, E: Into<Self>> From<NotPostedError<T, E>> for Error {
    fn from(error: NotPostedError<T, E>) -> Self {
        error.why.into()
    }
}

/// The channel is dropped.
#[cfg(all(target_os = "linux", feature = "std"))]
impl<C> From<crate::wait_set::AddChannelError<C>> for Error {
    fn from(error: crate::wait_set::AddChannelError<C>) -> Self {
        error.why.into()
    }
}

/// The handle is dropped.
impl<T> From<InUseError<T>> for Error {
    fn from(error: InUseError<T>) -> Self {
        Self::new(ErrorKind::ResourceBusy, error.map(drop))
    }
}

/// The buffer is dropped.
#[cfg(all(feature = "tokio", unix))]
impl<B> From<crate::task::UnfinishedError<B>> for Error {
    fn from(error: crate::task::UnfinishedError<B>) -> Self {
        error.why.into()
    }
}

/// That of its cause.
#[cfg(target_os = "linux")]
impl From<crate::exchange::ConnectError> for Error {
    fn from(error: crate::exchange::ConnectError) -> Self {
        match error {
            crate::exchange::ConnectError::Exchange(error) => error.into(),
            crate::exchange::ConnectError::Modify(error) => error.into(),
            crate::exchange::ConnectError::Post(error) => error.into(),
        }
    }
}
