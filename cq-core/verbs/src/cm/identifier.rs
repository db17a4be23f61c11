//! What a transport implements.

use alloc::string::String;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::Duration;

use super::{Advice, CmEvent, ConnParam, ModifyQpError};
use crate::device::{self, Object};
use crate::setup::{Errno, QpState};

/// The queue pairs that an identifier connects.
pub type QpOf<I> = <<I as Identifier>::Device as device::Device>::Qp;

/// For transports: `struct rdma_cm_id` of a reliable connection, with an event channel of its own. It is to a
/// connection what a socket is to TCP. Its descriptor is readable while an event is queued.
///
/// No call waits: most have an answer that comes as an event, in the order that the man page rdma_cm(7) has.
///
/// | call | events |
/// |---|---|
/// | `resolve_addr` | ADDR_RESOLVED, or ADDR_ERROR |
/// | `resolve_route` | ROUTE_RESOLVED, or ROUTE_ERROR |
/// | `listen` | CONNECT_REQUEST for each request, with an identifier of its own |
/// | `connect` | CONNECT_RESPONSE once the peer accepts; REJECTED, UNREACHABLE or CONNECT_ERROR |
/// | `accept` | ESTABLISHED once the peer calls `establish`; REJECTED, UNREACHABLE or CONNECT_ERROR |
/// | `disconnect` of either side | DISCONNECTED on both, once; later TIMEWAIT_EXIT |
///
/// Dropping an identifier destroys it, and discards its events. A connection request that is not answered is rejected
/// by that, with [`RejectReason::BY_PEER`](super::RejectReason::BY_PEER); a connection is disconnected. In librdmacm
/// `rdma_destroy_id` does this. An identifier that came with a request does not depend on the listener's.
///
/// An error is the number that the call of librdmacm sets.
pub trait Identifier: AsFd + Object + Sized {
    /// The device that it is bound to.
    type Device: device::Device;
    /// Why that can't be opened.
    type OpenError: core::error::Error + Object;

    /// What the errors of connecting advise users of this transport to do.
    const ADVICE: Advice;

    /// Creates an identifier: `rdma_create_id`.
    ///
    /// # Errors
    /// There is no connection manager.
    fn new() -> Result<Self, Errno>;

    /// Binds it to a local address, with port 0 to any port: `rdma_bind_addr`.
    ///
    /// # Errors
    /// The address is not of this machine (EADDRNOTAVAIL), or the port is taken (EADDRINUSE, and EADDRNOTAVAIL of the
    /// unspecified address).
    fn bind(&mut self, addr: SocketAddr) -> Result<(), Errno>;

    /// Lets peers connect to it, as many at a time as the backlog says: `rdma_listen`.
    ///
    /// # Errors
    /// It is not bound, or the port is taken.
    fn listen(&mut self, backlog: i32) -> Result<(), Errno>;

    /// Starts looking for the device that reaches an address: `rdma_resolve_addr`. ADDR_ERROR with -ETIMEDOUT comes
    /// when the limit has passed.
    ///
    /// # Errors
    /// No device can reach it.
    fn resolve_addr(&mut self, addr: SocketAddr, limit: Duration) -> Result<(), Errno>;

    /// Starts looking for the path to the address: `rdma_resolve_route`. ROUTE_ERROR with -ETIMEDOUT comes when the
    /// limit has passed.
    ///
    /// # Errors
    /// The address is not resolved.
    fn resolve_route(&mut self, limit: Duration) -> Result<(), Errno>;

    /// Requests a connection: `rdma_connect`. The private data has at most 56 bytes.
    ///
    /// # Errors
    /// The route is not resolved, or the private data is too long (EINVAL).
    fn connect(&mut self, param: &ConnParam<&[u8]>) -> Result<(), Errno>;

    /// Tells the peer that its answer has come, and that the queue pair of this side is ready: `rdma_establish`.
    ///
    /// # Errors
    /// The peer has not answered.
    fn establish(&mut self) -> Result<(), Errno>;

    /// Accepts the connection request with which it came: `rdma_accept`. The private data has at most 196 bytes.
    ///
    /// # Errors
    /// The peer has given up (EINVAL), or the private data is too long.
    fn accept(&mut self, param: &ConnParam<&[u8]>) -> Result<(), Errno>;

    /// Rejects the connection request with which it came: `rdma_reject`. The private data has at most 148 bytes.
    ///
    /// # Errors
    /// The peer has given up, or the private data is too long (EINVAL).
    fn reject(&mut self, private_data: &[u8]) -> Result<(), Errno>;

    /// Ends the connection, or completes the end that the peer began: `rdma_disconnect`. The queue pair is unchanged.
    ///
    /// # Errors
    /// The device is gone.
    fn disconnect(&mut self) -> Result<(), Errno>;

    /// Takes the next event, if there is one, and the identifier that CONNECT_REQUEST brings: `rdma_get_cm_event`,
    /// `rdma_ack_cm_event` and `rdma_migrate_id`.
    ///
    /// # Errors
    /// The system failed.
    fn take_event(&mut self) -> Result<Option<(CmEvent, Option<Self>)>, Errno>;

    /// Its local address, once it has one.
    fn local_addr(&self) -> Option<SocketAddr>;

    /// The peer's address, once it has one.
    fn peer_addr(&self) -> Option<SocketAddr>;

    /// The name of its device, once it has one.
    ///
    /// # Errors
    /// It has none, or the device is gone (ENODEV).
    fn device_name(&self) -> Result<String, Errno>;

    /// The number of its device's port, once it has one; 0 before.
    fn port_number(&self) -> u8;

    /// Opens its device.
    ///
    /// # Errors
    /// It has none, the device is gone, or the system refused.
    fn open(&self) -> Result<Self::Device, Self::OpenError>;

    /// Whether a queue pair is of its device. Only there does the number of a queue pair name it.
    ///
    /// # Errors
    /// It has no device, or the device is gone (ENODEV).
    fn is_device_of(&self, qp: &QpOf<Self>) -> Result<bool, Errno>;

    /// What the connection manager needs to know about a queue pair, apart from its number.
    fn describe(qp: &QpOf<Self>) -> QpInfo;

    /// Changes a queue pair to INIT, RTR or RTS, with the attributes that the connection manager has for it:
    /// `rdma_init_qp_attr` and `ibv_modify_qp`. `rd_atomic` replaces the number of READs and atomics among these, where
    /// it is given: `max_dest_rd_atomic` of RTR, `max_rd_atomic` of RTS.
    ///
    /// # Errors
    /// The connection manager has no attributes for this state, with EINVAL if the peer has given up; or the queue pair
    /// can't go there.
    fn modify_qp(
        &mut self,
        qp: &mut QpOf<Self>,
        to: QpState,
        rd_atomic: Option<u8>,
    ) -> Result<(), ModifyQpError>;
}

/// What the connection manager needs to know about a queue pair, apart from its number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct QpInfo {
    /// The name of its device.
    pub device: String,
    /// Whether it uses a shared receive queue.
    pub srq: bool,
    /// READs and atomics of its peer that its device allows.
    pub max_qp_rd_atom: u8,
    /// READs and atomics of its own that its device allows.
    pub max_qp_init_rd_atom: u8,
}
