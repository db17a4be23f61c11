//! Errors of connecting.

use alloc::string::String;
use alloc::vec::Vec;
use std::net::SocketAddr;

use super::{CmEvent, Event, EventKind, RejectReason, Status};
use crate::sentences::from;
use crate::setup::{DeviceError, Errno, ModifyError};

/// Why connecting failed, or a connection ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum CmError {
    /// The connection manager can't be used.
    #[error("the connection manager can't be used ({errno}): {advice}")]
    NoCm {
        /// The error number.
        errno: Errno,
        /// What to do about it.
        advice: &'static str,
    },
    /// The connection manager or the device refused.
    #[error(transparent)]
    Refused(#[from] DeviceError),
    /// The timeout passed.
    #[error("{awaited} did not come in time")]
    TimedOut {
        /// What was waited for.
        awaited: &'static str,
    },
    /// No device reaches the address, or no host has it.
    #[error("{addr} can't be reached through an RDMA device ({status}): {advice}")]
    Address {
        /// The address.
        addr: SocketAddr,
        /// The status of the connection manager.
        status: Status,
        /// What to do about it.
        advice: &'static str,
    },
    /// There is no route to the address.
    #[error("there is no route from an RDMA device to the peer ({status}): {advice}")]
    Route {
        /// The status of the connection manager.
        status: Status,
        /// What to do about it.
        advice: &'static str,
    },
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
    #[error("the connection manager reported an unexpected event: {0}")]
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

/// For transports: what the errors of connecting advise users to do. Each completes a sentence, after a colon.
#[derive(Clone, Copy, Debug)]
pub struct Advice {
    /// Of [`CmError::NoCm`]: there is no connection manager.
    pub no_cm: &'static str,
    /// Of [`CmError::Address`]: no device reaches the address.
    pub address: &'static str,
    /// Of [`CmError::Route`]: the device has no route to it.
    pub route: &'static str,
}

/// For transports: why [`modify_qp`](super::Identifier::modify_qp) did not change the queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum ModifyQpError {
    /// The connection manager did not report the attributes.
    #[error("the connection manager does not report the queue pair's attributes: {0}")]
    Attributes(Errno),
    /// The queue pair did not change to the state.
    #[error(transparent)]
    Modify(#[from] ModifyError),
}

from! {
    Errno => ModifyQpError::Attributes;
}

impl CmError {
    /// What an unexpected event means while connecting. `addr` is the peer's.
    pub(super) fn of(event: CmEvent, addr: Option<SocketAddr>, advice: &Advice) -> Self {
        let status = event.status;
        match (event.kind, addr) {
            (EventKind::ADDR_ERROR, Some(addr)) => {
                Self::Address { addr, status, advice: advice.address }
            }
            (EventKind::ROUTE_ERROR, _) => Self::Route { status, advice: advice.route },
            (EventKind::UNREACHABLE, _) => Self::Unreachable(status),
            (EventKind::REJECTED, _) => Self::Rejected {
                reason: RejectReason(status.0),
                private_data: event.param.private_data,
            },
            (EventKind::CONNECT_ERROR, _) => Self::Failed(status),
            (EventKind::DISCONNECTED, _) => Self::Disconnected,
            (EventKind::DEVICE_REMOVAL, _) => Self::DeviceRemoved,
            _ => Self::Unexpected(event.event()),
        }
    }
}
