//! Errors of connecting.

use alloc::string::String;
use alloc::vec::Vec;
use std::net::SocketAddr;

use super::{CmEvent, Event, EventKind, RejectReason, Status};
use crate::sentences::{from, sentences};
use crate::setup::{DeviceError, Errno, ModifyError};

/// Why connecting failed, or a connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CmError {
    /// The connection manager can't be used.
    NoCm {
        /// The error number.
        errno: Errno,
        /// What to do about it.
        advice: &'static str,
    },
    /// The connection manager or the device refused.
    Refused(DeviceError),
    /// The timeout passed.
    TimedOut {
        /// What was waited for.
        awaited: &'static str,
    },
    /// No device reaches the address, or no host has it.
    Address {
        /// The address.
        addr: SocketAddr,
        /// The status of the connection manager.
        status: Status,
        /// What to do about it.
        advice: &'static str,
    },
    /// There is no route to the address.
    Route {
        /// The status of the connection manager.
        status: Status,
        /// What to do about it.
        advice: &'static str,
    },
    /// The peer does not answer connection requests.
    Unreachable(Status),
    /// The peer rejected the request.
    Rejected {
        /// Why.
        reason: RejectReason,
        /// Its private data, padded with zeros up to the size that the transport carries.
        private_data: Vec<u8>,
    },
    /// Connecting failed after the request.
    Failed(Status),
    /// The peer withdrew its request or its answer before the connection was established.
    Abandoned,
    /// The peer disconnected.
    Disconnected,
    /// The device was removed.
    DeviceRemoved,
    /// An unexpected event.
    Unexpected(Event),
    /// The private data is too long.
    PrivateDataTooLong {
        /// The given size.
        len: usize,
        /// The maximum size.
        max: usize,
    },
    /// The queue pair belongs to another device than the connection.
    OtherDevice {
        /// The device of the queue pair.
        queue_pair: String,
        /// The device of the connection.
        connection: String,
    },
    /// The queue pair did not change to the required state.
    Modify(ModifyError),
}

sentences!(CmError {
    Self::NoCm { errno, advice } => ("the connection manager can't be used ({errno}): {advice}");
    Self::Refused(ref error) => ("{error}");
    Self::TimedOut { awaited } => ("{awaited} did not come in time");
    Self::Address { addr, status, advice } => ("{addr} can't be reached through an RDMA device ({status}): {advice}");
    Self::Route { status, advice } => ("there is no route from an RDMA device to the peer ({status}): {advice}");
    Self::Unreachable(status) => ("the peer's host does not answer ({status}): has it an RDMA device at this address?");
    Self::Rejected { reason, .. } => ("the peer rejected the connection: {reason}");
    Self::Failed(status) => ("connecting failed ({status}): try again");
    Self::Abandoned => ("the peer gave up before the connection was established: it may have waited too long");
    Self::Disconnected => ("the peer disconnected");
    Self::DeviceRemoved => ("the RDMA device was removed: destroy the objects that were created on it");
    Self::Unexpected(event) => ("the connection manager reported an unexpected event: {event}");
    Self::PrivateDataTooLong { len, max } => ("{len} bytes of private data exceed the maximum of {max}");
    Self::OtherDevice { ref queue_pair, ref connection } =>
        ("the queue pair is of device {queue_pair}, and the connection uses {connection}: create the queue pair on a context of that device");
    Self::Modify(ref error) => ("{error}");
});

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModifyQpError {
    /// The connection manager did not tell the attributes.
    Attributes(Errno),
    /// The queue pair did not change to the state.
    Modify(ModifyError),
}

sentences!(ModifyQpError {
    Self::Attributes(errno) => ("the connection manager does not tell the queue pair's attributes: {errno}");
    Self::Modify(ref error) => ("{error}");
});

from! {
    DeviceError => CmError::Refused;
    ModifyError => CmError::Modify;
    Errno => ModifyQpError::Attributes;
    ModifyError => ModifyQpError::Modify;
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
