//! Connecting by IP addresses, as with librdmacm and with sockets. Any address of this machine leads to the device.
//!
//! ```
//! use std::time::Duration;
//!
//! use transport_rxe_loop::{Access, RecvWr, SendWr, Wc, cm};
//!
//! let limit = Duration::from_secs(20);
//! let mut listener = cm::Listener::bind("127.0.0.1:0".parse()?)?;
//! let addr = listener.local_addr().ok_or("not bound")?;
//!
//! let server = std::thread::spawn(move || {
//!     let request = listener.accept(limit)?;
//!     assert!(request.private_data().starts_with(b"hello"));
//!     let context = request.device().open()?;
//!     let cq = context.cq(16).create()?;
//!     let mut qp = context.alloc_pd()?.qp(&cq).create()?;
//!     let mut connection = request.accept(&mut qp, b"welcome", limit)?;
//!     qp.post_send(&[SendWr::send_inline(1, b"over the loopback")])?;
//!     connection.wait_disconnected(limit)?;
//!     Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! });
//!
//! let mut route = cm::resolve(addr, limit)?;
//! let context = route.device().open()?;
//! let pd = context.alloc_pd()?;
//! let mut cq = context.cq(16).create()?;
//! let region = pd.allocate(64, Access::LOCAL_WRITE)?;
//! let mut qp = pd.qp(&cq).create()?;
//! route.init(&mut qp)?;
//! qp.post_recv(&[RecvWr::new(2, &[region.sge(..64)?])])?;
//! let mut connection = route.connect(&mut qp, b"hello", limit)?;
//! let mut wcs = [Wc::default()];
//! while cq.poll(&mut wcs)?.is_empty() {}
//! assert_eq!(wcs[0].result()?.byte_len(), 17);
//! connection.disconnect(&mut qp)?;
//! server.join().unwrap().unwrap();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The types and functions are those of [`cq_verbs::cm`], which describes them. A program that handles the events of many
//! identifiers itself uses [`EventChannel`] and [`CmId`], which work as `rdma_event_channel` and `rdma_cm_id` do in
//! librdmacm.
//!
//! # Addresses and ports
//! Any IPv4 or IPv6 address of this machine leads to the device of the same fabric; for any other the event is ADDR_ERROR.
//! Whether an address is this machine's is asked of the system (rtnetlink): broadcast and multicast addresses are not, and
//! `net.ipv4.ip_nonlocal_bind` does not matter. The question needs a descriptor for a moment.
//!
//! Ports belong to a fabric, and in it to a network namespace: two fabrics have the same ports, and they are not those of TCP.
//! A port is free when its holder is dropped or dies. A fabric has eight for each of its queue pairs; where they are used up,
//! binding fails with ENOMEM. Processes connect that are in the same network namespace, in whatever PID namespaces. An
//! unspecified address covers all addresses of its family, and :: those of both, unless an [option](IdOption) limits it; while
//! it has a port, no other address of either family can have it, except that two of different families, each limited to its own,
//! can. Ports below `net.ipv4.ip_unprivileged_port_start` need CAP_NET_BIND_SERVICE.
//!
//! # States
//! What can be called when is Linux' rule, and [one table](crate::internals::connecting). A call that is not allowed in the state of its
//! identifier fails with EINVAL, and changes nothing.
//!
//! # Times
//! A request waits 20 s for the answer, an answer 20 s for the peer to be ready, and a disconnection 4 s for the peer; then
//! the event is UNREACHABLE, or DISCONNECTED with the status -ETIMEDOUT. A process that is stopped does not answer. An ended
//! connection leaves the time-wait state after one second. A request to a port at which nobody listens is sent again for
//! 255 ms before it is rejected: over a network it takes a while, too, and some programs connect to who is about to listen. One
//! that finds the backlog full is rejected at once.
//!
//! A process works on its connections while it takes events: the side that requests gets its answer and notifies the peer that
//! it has it when it takes the event.
//!
//! # Processes
//! A connection has one descriptor in each process, a listener one, a channel three, and a port none. A listener is a socket
//! next to the fabric's file, with a random name and mode 0600: so only processes of its user send requests. Both ends of a connection
//! are of one user, whatever their pids.
//!
//! A forked child can use none of it (ENODEV), and keeps no port. Connections end with their own process, unless that was
//! killed and a child lives that has not executed another program: then they end with the child.

mod attributes;
mod event_channel;
mod id;
mod option;
mod own_channel;

use std::net::SocketAddr;
use std::time::Duration;

pub use cq_verbs::cm::{CmError, ConnParam, Event, EventKind, RejectReason, Status};

pub use self::event_channel::{EventChannel, IdEvent};
pub use self::id::CmId;
pub use self::option::IdOption;
pub use self::own_channel::Id;
pub use crate::connections::port::PortSpace;

use crate::api::device::Context;

/// A device, and the route from it to a peer.
pub type Route = cq_verbs::cm::Route<Id>;
/// A listener for connection requests.
pub type Listener = cq_verbs::cm::Listener<Id>;
/// A connection request, and the device that received it.
pub type Request = cq_verbs::cm::Request<Id>;
/// An established connection.
pub type Connection = cq_verbs::cm::Connection<Id>;
/// The device through which the peer is reached.
pub type CmDevice<'a> = cq_verbs::cm::CmDevice<'a, Id>;

/// Resolves an address in the fabric that `RXE_LOOP_FABRIC` names, and the route to it.
///
/// # Errors
/// The fabric can't be opened, or the address is not of this machine.
pub fn resolve(addr: SocketAddr, limit: Duration) -> Result<Route, CmError> {
    cq_verbs::cm::resolve(addr, limit)
}

/// The same in the fabric of a context.
///
/// # Errors
/// As for [`resolve`].
pub fn resolve_in(context: &Context, addr: SocketAddr, limit: Duration) -> Result<Route, CmError> {
    cq_verbs::cm::resolve_with(|| Id::in_fabric(context), addr, limit)
}

/// A listener in the fabric of a context, as [`Listener::bind`] makes it.
///
/// # Errors
/// As those.
pub fn listen_in(context: &Context, addr: SocketAddr) -> Result<Listener, CmError> {
    Listener::bind_with(|| Id::in_fabric(context), addr)
}
