//! The events of connections, and the numbers in them.

use core::fmt;
use std::io;

use cq_core::foreign_number;

use super::ConnParam;
use crate::setup::Errno;

/// For transports: `struct rdma_cm_event`, an event as the connection manager queues it.
///
/// ```
/// use cq_verbs::cm::{CmEvent, EventKind, Status};
/// use cq_verbs::setup::Errno;
///
/// let event = CmEvent::new(EventKind::UNREACHABLE, Status::from(Errno::ETIMEDOUT));
/// assert_eq!((event.kind, event.status), (EventKind::UNREACHABLE, Status(-110)));
/// ```
#[doc(alias = "rdma_cm_event")]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct CmEvent {
    /// What happened.
    pub kind: EventKind,
    /// Its status.
    pub status: Status,
    /// What the peer sent, in CONNECT_REQUEST, CONNECT_RESPONSE, ESTABLISHED and REJECTED (the private data alone);
    /// zeros in others.
    pub param: ConnParam,
}

impl CmEvent {
    /// An event without parameters.
    #[must_use]
    pub fn new(kind: EventKind, status: Status) -> Self {
        Self { kind, status, param: ConnParam::default() }
    }

    /// The event as users see it.
    #[must_use]
    pub const fn event(&self) -> Event {
        Event { kind: self.kind, status: self.status }
    }
}

/// An event of a connection.
///
/// ```
/// use cq_verbs::cm::{Event, EventKind, Status};
///
/// let event = Event { kind: EventKind::DISCONNECTED, status: Status(0) };
/// assert_eq!(event.to_string(), "disconnected (no status)");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// Its status.
    pub status: Status,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind.name() {
            Some(_) => write!(f, "{} ({})", self.kind, self.status),
            None => write!(f, "event {} ({})", self.kind.0, self.status),
        }
    }
}

foreign_number! {
    /// `enum rdma_cm_event_type`: what happened. Any number is legal ([C3](cq_core::contract#c3)).
    ///
    /// ```
    /// use cq_verbs::cm::EventKind;
    ///
    /// assert_eq!((EventKind::REJECTED.0, EventKind::REJECTED.name()), (8, Some("REJECTED")));
    /// assert_eq!(EventKind::REJECTED.to_string(), "the peer rejected the request");
    /// assert_eq!(EventKind(99).to_string(), "unknown event");
    /// ```
    EventKind("rdma_cm_event_type", "rdma_event_str"), "unknown event" {
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

/// The status of an operation: 0 is success, a negative number an errno, any other specific to the transport.
///
/// ```
/// use cq_verbs::cm::Status;
/// use cq_verbs::setup::Errno;
///
/// assert_eq!(Status::from(Errno::ETIMEDOUT), Status(-110));
/// assert_eq!(Status(3).to_string(), "status 3");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(transparent)]
pub struct Status(pub i32);

impl From<Errno> for Status {
    fn from(errno: Errno) -> Self {
        Self(errno.0.wrapping_neg())
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
///
/// ```
/// use cq_verbs::cm::{CmError, RejectReason};
///
/// /// Whether the peer's program may not have started yet.
/// fn is_early(error: &CmError) -> bool {
///     matches!(error, CmError::Rejected { reason: RejectReason::NO_LISTENER, .. })
/// }
/// let error = CmError::Rejected { reason: RejectReason(8), private_data: Vec::new() };
/// assert!(is_early(&error));
/// assert_eq!(error.to_string(), "the peer rejected the connection: there is no listener at that port");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
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
