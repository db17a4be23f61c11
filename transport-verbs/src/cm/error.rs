//! Errors of connecting, and the events of connections.

use std::net::SocketAddr;
use std::{fmt, io};

use cq_core::foreign_number;
use thiserror::Error;

use crate::sys::cm;
use cq_core::setup::{DeviceError, ModifyError};

/// Why connecting failed, or a connection ended.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CmError {
    /// librdmacm can't be used.
    #[error(
        "librdmacm can't be used ({0}): `ibv_devices` lists the devices, `modprobe rdma_ucm` loads its module"
    )]
    NoCm(io::Error),
    /// librdmacm or the device refused.
    #[error(transparent)]
    Refused(#[from] DeviceError),
    /// The timeout passed.
    #[error("{awaited} did not come in time")]
    TimedOut {
        /// What was waited for.
        awaited: &'static str,
    },
    /// No device reaches the address, or no host has it.
    #[error(
        "{addr} can't be reached through an RDMA device ({status}): `rdma link` lists the interfaces that have one, `ping` tells whether the address answers"
    )]
    Address {
        /// The address.
        addr: SocketAddr,
        /// The status of librdmacm.
        status: Status,
    },
    /// There is no route to the address.
    #[error(
        "there is no route from an RDMA device to the peer ({0}): `rdma link` shows whether the port is up"
    )]
    Route(Status),
    /// The peer does not answer connection requests.
    #[error("the peer's host does not answer ({0}): has it an RDMA device at this address?")]
    Unreachable(Status),
    /// The peer rejected the request.
    #[error("the peer rejected the connection: {reason}")]
    Rejected {
        /// Why.
        reason: RejectReason,
        /// Its private data, padded with zeros up to the size that the transport carries.
        private_data: Vec<u8>,
    },
    /// Connecting failed after the request.
    #[error("connecting failed ({0}): try again")]
    Failed(Status),
    /// The peer withdrew its request or its answer before the connection was established.
    #[error("the peer gave up before the connection was established: it may have waited too long")]
    Abandoned,
    /// The peer disconnected.
    #[error("the peer disconnected")]
    Disconnected,
    /// The device was removed.
    #[error("the RDMA device was removed: destroy the objects that were created on it")]
    DeviceRemoved,
    /// An unexpected event.
    #[error("librdmacm reported an unexpected event: {0}")]
    Unexpected(Event),
    /// The private data is too long.
    #[error("{len} bytes of private data exceed the maximum of {max}")]
    PrivateDataTooLong {
        /// The given size.
        len: usize,
        /// The maximum size.
        max: usize,
    },
    /// The queue pair belongs to another device than the connection.
    #[error(
        "the queue pair is of device {queue_pair}, and the connection uses {connection}: create the queue pair on a context of that device"
    )]
    OtherDevice {
        /// The device of the queue pair.
        queue_pair: String,
        /// The device of the connection.
        connection: String,
    },
    /// The queue pair did not change to the required state.
    #[error(transparent)]
    Modify(#[from] ModifyError),
}

impl CmError {
    /// What an unexpected event means while connecting. `addr` is the peer's.
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

/// An event of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// Its status.
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
        /// The address is resolved.
        ADDR_RESOLVED = 0, "the address was resolved";
        /// The address can't be resolved.
        ADDR_ERROR = 1, "the address can't be resolved";
        /// The route is resolved.
        ROUTE_RESOLVED = 2, "the route was resolved";
        /// The route can't be resolved.
        ROUTE_ERROR = 3, "the route can't be resolved";
        /// A connection request.
        CONNECT_REQUEST = 4, "connection request";
        /// The peer has accepted.
        CONNECT_RESPONSE = 5, "the peer accepted";
        /// Connecting failed.
        CONNECT_ERROR = 6, "connecting failed";
        /// The peer's host does not answer.
        UNREACHABLE = 7, "the peer's host does not answer";
        /// The peer rejected the request.
        REJECTED = 8, "the peer rejected the request";
        /// The connection is established.
        ESTABLISHED = 9, "the connection is established";
        /// One of the sides disconnected.
        DISCONNECTED = 10, "disconnected";
        /// The device was removed: all its objects have to be destroyed.
        DEVICE_REMOVAL = 11, "the device was removed";
        /// A multicast group is joined.
        MULTICAST_JOIN = 12, "a multicast group was joined";
        /// A multicast group was not joined, or was left.
        MULTICAST_ERROR = 13, "a multicast group was not joined";
        /// The network interface of the device has another address now.
        ADDR_CHANGE = 14, "the interface's address changed";
        /// No packet of the ended connection is left in the network: its queue pair may be used again.
        TIMEWAIT_EXIT = 15, "the ended connection has left the time-wait state";
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

/// The status of an operation: 0 is success, a negative number an errno, any other specific to the transport.
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

/// Why a peer rejected a request. On InfiniBand and RoCE it is the number in its REJ message, on iWARP a negative
/// errno. A number outside the constants is legal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct RejectReason(pub i32);

impl RejectReason {
    /// Its host waited too long for an answer.
    pub const TIMEOUT: Self = Self(4);
    /// There is no listener at that port.
    pub const NO_LISTENER: Self = Self(8);
    /// Its host still has a connection of a queue pair of this number.
    pub const STALE_CONNECTION: Self = Self(10);
    /// The program of the peer rejected it.
    pub const BY_PEER: Self = Self(28);
}

impl fmt::Display for RejectReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TIMEOUT => f.write_str("its host waited too long for an answer"),
            Self::NO_LISTENER => f.write_str("there is no listener at that port"),
            Self::STALE_CONNECTION => {
                f.write_str("a queue pair of this number is connected already, or was just now")
            }
            Self::BY_PEER => f.write_str("its program rejected the request, or ended"),
            Self(errno @ i32::MIN..0) => write!(f, "{}", Status(errno)),
            Self(other) => write!(f, "reason {other} of the REJ message"),
        }
    }
}
