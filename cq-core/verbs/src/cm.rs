//! Connecting by IP addresses, as with sockets, through a connection manager that works as librdmacm does. Feature
//! `std`; Linux.
//!
//! ```
//! use std::error::Error;
//! use std::net::SocketAddr;
//! use std::time::Duration;
//!
//! use cq_verbs::cm::{self, Identifier};
//! use cq_verbs::device::{Device, DevicePd, Region};
//! use cq_verbs::post::Post;
//! use cq_verbs::setup::Access;
//! use cq_verbs::wr::{RecvWr, SendWr};
//!
//! const LIMIT: Duration = Duration::from_secs(5);
//!
//! fn ask<I: Identifier>(addr: SocketAddr) -> Result<(), Box<dyn Error>> {
//!     let mut route = cm::resolve::<I>(addr, LIMIT)?;
//!     let context = route.device().open()?;
//!     let pd = context.alloc_pd()?;
//!     let cq = context.cq(16).create()?;
//!     let region = pd.allocate(64, Access::LOCAL_WRITE)?;
//!     let mut qp = pd.qp(&cq).create()?;
//!     route.init(&mut qp)?;
//!     qp.post_recv(&[RecvWr::new(1, &[region.sge(..64)?])])?;
//!
//!     let mut connection = route.connect(&mut qp, b"hello", LIMIT)?;
//!     qp.post_send(&[SendWr::send_inline(2, b"over RDMA")])?;
//!     // …
//!     Ok(connection.disconnect(&mut qp)?)
//! }
//!
//! /// The other side.
//! fn serve<I: Identifier>(addr: SocketAddr) -> Result<(), Box<dyn Error>> {
//!     let mut listener = cm::Listener::<I>::bind(addr)?;
//!     let mut request = listener.accept(LIMIT)?;
//!     let context = request.device().open()?;
//!     let pd = context.alloc_pd()?;
//!     let cq = context.cq(16).create()?;
//!     let region = pd.allocate(64, Access::LOCAL_WRITE)?;
//!     let mut qp = pd.qp(&cq).create()?;
//!     request.init(&mut qp)?;
//!     qp.post_recv(&[RecvWr::new(1, &[region.sge(..64)?])])?; // before the peer can send
//!     let mut connection = request.accept(&mut qp, b"welcome", LIMIT)?;
//!     // …
//!     Ok(connection.wait_disconnected(LIMIT)?)
//! }
//! ```
//!
//! A transport has these types and functions for its own [`Identifier`], under the same names: `transport_verbs::cm`, and `transport_rxe_loop::cm`,
//! whose example `by_address` is a whole program.
//!
//! Both sides take the same steps: the address or the connection request determines the device; the program creates its
//! objects on that device, with the ordinary API; then the queue pair is connected. An open context of the device can
//! be used, too: one protection domain, one completion queue and one set of regions can be shared by all its
//! connections.
//!
//! [`Route`], [`Listener`], [`Request`] and [`Connection`] own the identifiers of the connection manager. Contexts and
//! queue pairs do not depend on them, so they can be dropped in any order. Private data arrives padded with zeros: a
//! program whose data varies in length sends the length, too. No call waits longer than its limit.
//!
//! # Receives that are late
//! A queue pair that is connected here asks its peer to wait 655.36 ms before it sends again where no receive is posted:
//! [`min_rnr_timer`](crate::setup::QpAttr::min_rnr_timer) is the longest, as the kernel's connection manager has it. On hardware a
//! receive that is a moment too late costs all of that; the loopback delivers as soon as the receive is there. So receives
//! are posted after `init`, before the peer can send; or the time is made shorter once the queue pair is connected:
//! `qp.modify(&QpAttr::new().min_rnr_timer(RnrTimer::at_least(Duration::from_micros(640))))`.
//!
//! What every transport promises are the rules from [M1](cq_core::contract#m1) to [M9](cq_core::contract#m9).

mod connection;
mod error;
mod event;
mod identifier;
mod listener;
mod param;
mod route;
mod steps;

pub use self::connection::{CmDevice, Connection};
pub use self::error::{Advice, CmError, ModifyQpError};
pub use self::event::{CmEvent, Event, EventKind, RejectReason, Status};
pub use self::identifier::{Identifier, QpInfo, QpOf};
pub use self::listener::{Listener, Request};
pub use self::param::ConnParam;
#[doc(alias("rdma_resolve_addr", "rdma_resolve_route"))]
pub use self::route::resolve;
pub use self::route::{Route, resolve_with};
