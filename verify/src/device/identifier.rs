//! Connecting by addresses: what the suite asks of an identifier.

use std::net::SocketAddr;
use std::time::Instant;

use cq_verbs::cm::{CmEvent, ConnParam};
use serde::{Deserialize, Serialize};

use super::{Device, Made, QpState};

/// A call of an identifier. As data it has one form on its way to another process, and wherever else it is only handed
/// on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CmCall {
    /// `rdma_bind_addr`.
    Bind(SocketAddr),
    /// `rdma_listen`.
    Listen,
    /// `rdma_resolve_addr`.
    ResolveAddr(SocketAddr),
    /// `rdma_resolve_route`.
    ResolveRoute,
    /// `rdma_connect`.
    Connect(ConnParam),
    /// `rdma_establish`.
    Establish,
    /// `rdma_accept`.
    Accept(ConnParam),
    /// `rdma_reject`, with private data.
    Reject(Vec<u8>),
    /// `rdma_disconnect`.
    Disconnect,
}

/// An identifier for connecting by addresses. Dropping destroys it.
pub trait Identifier<D: Device>: Send + Sized {
    /// Makes a call. Its answer comes as an event.
    ///
    /// # Errors
    /// Those of the call.
    fn call(&mut self, call: &CmCall) -> Made<()>;

    /// Takes the next event, if there is one, and the identifier that a connection request brings.
    ///
    /// # Errors
    /// The system failed.
    fn take_event(&mut self) -> Made<Option<(CmEvent, Option<Self>)>>;

    /// Whether its descriptor is readable, by the deadline at the latest.
    fn is_readable(&self, deadline: Instant) -> bool;

    /// Its own address and the peer's, once it has them.
    fn addrs(&self) -> [Option<SocketAddr>; 2];

    /// Opens the device that it is bound to.
    fn open(&self) -> D;

    /// Changes a queue pair of its device to INIT, RTR or RTS, with the attributes that the connection manager has.
    ///
    /// # Errors
    /// There are none, or the queue pair can't go there.
    fn modify(&mut self, qp: &mut D::Qp, to: QpState) -> Made<()>;
}
