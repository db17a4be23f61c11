//! Why two sides did not come together, and what happens to those that have.

use std::net::SocketAddr;
use std::{fmt, io};

use cq_core::foreign_number;
use thiserror::Error;

use crate::sys::cm;
use cq_core::setup::{DeviceError, ModifyError};

/// Why there is no connection, or none any more.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CmError {
    /// librdmacm can't be used.
    #[error(
        "librdmacm is of no use here ({0}): `ibv_devices` lists the devices, `modprobe rdma_ucm` loads its module"
    )]
    NoCm(io::Error),
    /// librdmacm or the device refused.
    #[error(transparent)]
    Refused(#[from] DeviceError),
    /// The time was over.
    #[error("{awaited} did not come in time")]
    TimedOut {
        /// What was waited for.
        awaited: &'static str,
    },
    /// No device reaches the address, or nobody there says that it is his.
    #[error(
        "{addr} can't be reached through an RDMA device ({status}): `rdma link` lists the interfaces that have one, `ping` tells whether the address answers"
    )]
    Address {
        /// The address.
        addr: SocketAddr,
        /// What librdmacm said.
        status: Status,
    },
    /// There is no path to the address.
    #[error(
        "no path leads from an RDMA device to the peer ({0}): `rdma link` shows whether the port is up"
    )]
    Route(Status),
    /// The peer does not answer connection requests.
    #[error("the peer's machine does not answer ({0}): has it an RDMA device at this address?")]
    Unreachable(Status),
    /// The peer said no.
    #[error("the peer refused the connection: {reason}")]
    Rejected {
        /// Why.
        reason: RejectReason,
        /// What it had to say, and zeros up to what the transport carries.
        private_data: Vec<u8>,
    },
    /// It went wrong between the request and the end of the greeting.
    #[error("the connection failed while it was made ({0}): try again")]
    Failed(Status),
    /// The peer took its request back, or its answer, before this side was done.
    #[error("the peer gave up before the connection was made: it may have waited too long")]
    Abandoned,
    /// The peer ended the connection.
    #[error("the peer ended the connection")]
    Disconnected,
    /// The device is gone.
    #[error("the RDMA device was removed: close what belongs to it")]
    DeviceRemoved,
    /// An event that has no business here.
    #[error("librdmacm reported {0}, which was not to be expected here")]
    Unexpected(Event),
    /// More than a message of the connection manager holds.
    #[error("{len} bytes of private data are more than the {max} that can go along")]
    PrivateDataTooLong {
        /// How many were given.
        len: usize,
        /// How many it holds.
        max: usize,
    },
    /// The queue pair belongs to another device than the connection.
    #[error(
        "the queue pair is one of {queue_pair}, and the connection goes through {connection}: make it on a context of that device"
    )]
    OtherDevice {
        /// The device of the queue pair.
        queue_pair: String,
        /// The device of the connection.
        connection: String,
    },
    /// The queue pair did not go to the state that it has to be in.
    #[error(transparent)]
    Modify(#[from] ModifyError),
}

impl CmError {
    /// What an event that was not hoped for means to somebody who connects. `addr` is the peer's.
    pub(super) fn of(event: cm::Event, addr: Option<SocketAddr>) -> Self {
        let status = Status(event.status);
        match (EventKind(event.kind), addr) {
            (EventKind::ADDR_ERROR, Some(addr)) => Self::Address { addr, status },
            (EventKind::ROUTE_ERROR, _) => Self::Route(status),
            (EventKind::UNREACHABLE, _) => Self::Unreachable(status),
            (EventKind::REJECTED, _) => Self::Rejected {
                reason: RejectReason(event.status),
                private_data: event.private_data,
            },
            (EventKind::CONNECT_ERROR, _) => Self::Failed(status),
            (EventKind::DISCONNECTED, _) => Self::Disconnected,
            (EventKind::DEVICE_REMOVAL, _) => Self::DeviceRemoved,
            _ => Self::Unexpected(Event::of(&event)),
        }
    }
}

/// What librdmacm reported of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// How it went.
    pub status: Status,
}

impl Event {
    pub(super) const fn of(event: &cm::Event) -> Self {
        Self { kind: EventKind(event.kind), status: Status(event.status) }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.kind, self.status)
    }
}

foreign_number! {
    /// `enum rdma_cm_event_type`: what happened. Any number is legal ([C3](cq_core::contract#c3)).
    EventKind {
        /// The address is found.
        ADDR_RESOLVED = 0, "the address was found";
        /// The address is not found.
        ADDR_ERROR = 1, "the address was not found";
        /// The path is found.
        ROUTE_RESOLVED = 2, "the path was found";
        /// The path is not found.
        ROUTE_ERROR = 3, "the path was not found";
        /// A peer wants to connect.
        CONNECT_REQUEST = 4, "a peer wants to connect";
        /// The peer has accepted.
        CONNECT_RESPONSE = 5, "the peer accepted";
        /// Connecting failed.
        CONNECT_ERROR = 6, "connecting failed";
        /// The peer's machine does not answer.
        UNREACHABLE = 7, "the peer's machine does not answer";
        /// The peer refuses.
        REJECTED = 8, "the peer refused";
        /// The connection is there.
        ESTABLISHED = 9, "the connection is established";
        /// One of the sides ended the connection.
        DISCONNECTED = 10, "the connection ended";
        /// The device is gone: everything that belongs to it is to be closed.
        DEVICE_REMOVAL = 11, "the device was removed";
        /// A multicast group is joined.
        MULTICAST_JOIN = 12, "a multicast group was joined";
        /// A multicast group is not joined, or lost.
        MULTICAST_ERROR = 13, "a multicast group was not joined";
        /// The network interface of the device has another address now.
        ADDR_CHANGE = 14, "the interface's address changed";
        /// Nothing of the ended connection is under way in the network any more.
        TIMEWAIT_EXIT = 15, "the ended connection is out of the network";
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.text() {
            Some(text) => f.pad(text),
            None => write!(f, "event {}", self.0),
        }
    }
}

/// How an operation went: 0 is well, a negative number an errno, any other the transport's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Status(pub i32);

impl Status {
    pub(super) fn of(error: &io::Error) -> Self {
        Self(error.raw_os_error().map_or(0, i32::wrapping_neg))
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("no status"),
            errno @ i32::MIN..0 => {
                write!(f, "{}", io::Error::from_raw_os_error(errno.saturating_neg()))
            }
            other => write!(f, "status {other}"),
        }
    }
}

/// Why a peer refused. On InfiniBand and RoCE it is the number in its REJ message, on iWARP a negative
/// errno. A number outside the constants is legal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct RejectReason(pub i32);

impl RejectReason {
    /// Its machine took too long to answer.
    pub const TIMEOUT: Self = Self(4);
    /// Nobody listens at that port.
    pub const NO_LISTENER: Self = Self(8);
    /// Its machine takes the queue pair to be connected already.
    pub const STALE_CONNECTION: Self = Self(10);
    /// The program there refused.
    pub const BY_PEER: Self = Self(28);
}

impl fmt::Display for RejectReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TIMEOUT => f.write_str("its machine waited too long for an answer"),
            Self::NO_LISTENER => f.write_str("nobody listens at that port"),
            Self::STALE_CONNECTION => {
                f.write_str("a queue pair of this number is connected already, or was just now")
            }
            Self::BY_PEER => f.write_str("the program there said no, or left"),
            Self(errno @ i32::MIN..0) => write!(f, "{}", Status(errno)),
            Self(other) => write!(f, "reason {other} of the REJ message"),
        }
    }
}
