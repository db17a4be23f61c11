//! Connecting through librdmacm, by IP addresses as with sockets.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use cq_core::transport::Post;
//! use cq_core::wr::{RecvWr, SendWr};
//! use transport_verbs::{Access, QpInit, cm};
//!
//! let limit = Duration::from_secs(5);
//! let mut route = cm::resolve("192.0.2.1:7471".parse()?, limit)?;
//! let context = route.device().open()?;
//! let pd = context.alloc_pd()?;
//! let cq = context.create_cq(16, None)?;
//! let region = pd.allocate(64, Access::LOCAL_WRITE)?;
//! let mut qp = pd.create_qp(&QpInit::new(&cq))?;
//! route.init(&mut qp)?;
//! qp.post_recv(&[RecvWr::new(1, &[region.sge(0, 64)?])])?;
//!
//! let mut connection = route.connect(&mut qp, b"hello", limit)?;
//! qp.post_send(&[SendWr::send_inline(2, b"over RDMA")])?;
//! // …
//! connection.disconnect(&mut qp)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The other side:
//!
//! ```no_run
//! # use std::time::Duration;
//! # use transport_verbs::{QpInit, cm};
//! # let limit = Duration::from_secs(5);
//! let mut listener = cm::Listener::bind("0.0.0.0:7471".parse()?)?;
//! let request = listener.accept(limit)?;
//! let context = request.device().open()?;
//! let cq = context.create_cq(16, None)?;
//! let mut qp = context.alloc_pd()?.create_qp(&QpInit::new(&cq))?;
//! let connection = request.accept(&mut qp, b"welcome", limit)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Both sides take the same steps: the address or the connection request determines the device; the program creates its
//! objects on that device, with the ordinary API; then the queue pair is connected. An open context of the device can be
//! used, too: one protection domain, one completion queue and one set of regions can be shared by all its connections.
//!
//! [`Route`], [`Listener`], [`Request`] and [`Connection`] own the objects of librdmacm. Contexts and queue pairs do not
//! depend on them, so they can be dropped in any order. Private data arrives padded with zeros: a program whose data
//! varies in length sends the length, too. No call waits longer than its limit, except that on InfiniBand librdmacm waits
//! for the daemon ibacm, where that runs.
//!
//! InfiniBand and RoCE are supported. On iWARP the kernel connects queue pairs in another way, and connecting fails with
//! [`CmError::Unexpected`].

mod connection;
mod error;
mod listener;

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use cq_core::channel::descriptor::block;
use cq_core::transport::Woken;
use rustix::io::Errno;

pub use self::connection::{Connection, Device};
pub use self::error::{CmError, Event, EventKind, RejectReason, Status};
pub use self::listener::{Listener, Request};

use self::connection::{check_device, enter, param};
use cq_core::setup::QpState;

use crate::error::{Attempt, os_error};
use crate::qp::QueuePair;
use crate::sys::cm::{self, Id};
use crate::trace;

/// Resolves an address, and the route to it.
///
/// # Errors
/// librdmacm can't be used, no device reaches the address, or it was not resolved in time.
pub fn resolve(addr: SocketAddr, limit: Duration) -> Result<Route, CmError> {
    let deadline = deadline_after(limit);
    let mut id = find_device(addr, deadline)?;
    let resolving = id.resolve_route(millis(left(deadline)));
    resolving.map_err(|error| CmError::Route(Status::of(&error)))?;
    expect(&mut id, EventKind::ROUTE_RESOLVED, deadline, "the route to the address")?;
    Ok(Route { id })
}

/// An identifier whose address is resolved. It resolves repeatedly: the kernel misses an answer that comes before it
/// listens, and then looks again only at the end of its timeout.
fn find_device(addr: SocketAddr, deadline: Option<Instant>) -> Result<Id, CmError> {
    const AGAIN: Duration = Duration::from_millis(250);
    loop {
        let mut id = Id::new().map_err(CmError::NoCm)?;
        let limit = left(deadline).map_or(AGAIN, |left| left.min(AGAIN));
        let resolving = id.resolve_addr(addr, millis(Some(limit)));
        resolving.map_err(|error| CmError::Address { addr, status: Status::of(&error) })?;
        match expect(&mut id, EventKind::ADDR_RESOLVED, deadline, "the address") {
            Err(CmError::TimedOut { .. }) if left(deadline) != Some(Duration::ZERO) => {}
            answer => return answer.map(|_| id),
        }
    }
}

/// A device, and the route from it to a peer.
#[derive(Debug)]
pub struct Route {
    id: Id,
}

impl Route {
    /// The maximum size of the private data of a connection request.
    pub const MAX_REQUEST: usize = 56;

    /// The device.
    #[must_use]
    pub const fn device(&self) -> Device<'_> {
        Device(&self.id)
    }

    /// The device's address.
    #[must_use]
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.id.local_addr()
    }

    /// Changes the queue pair to INIT. Receives that are posted in this state precede the peer's first message.
    /// [`connect`](Self::connect) does the same.
    ///
    /// # Errors
    /// The queue pair is of another device, or is connected.
    pub fn init(&mut self, qp: &mut QueuePair) -> Result<(), CmError> {
        check_device(&self.id, qp)?;
        enter(&mut self.id, qp, QpState::INIT, |_| {})
    }

    /// Requests a connection from the peer, and connects the queue pair, from RESET or INIT to RTS.
    ///
    /// # Errors
    /// The queue pair is of another device or not in RESET or INIT, the private data is longer than
    /// [`MAX_REQUEST`](Self::MAX_REQUEST), or the peer rejected the request or did not answer in time. The
    /// state of the queue pair may have changed.
    pub fn connect(
        mut self,
        qp: &mut QueuePair,
        private_data: &[u8],
        limit: Duration,
    ) -> Result<Connection, CmError> {
        let deadline = deadline_after(limit);
        bounded(private_data, Self::MAX_REQUEST)?;
        // Checked before the peer gets the request, which would end the connection of a connected queue pair.
        self.init(qp)?;
        let request = param(qp, private_data, cm::MOST, cm::MOST)?;
        self.id.connect(request).attempt("request a connection")?;
        let awaited = "the peer's answer";
        let answer = expect(&mut self.id, EventKind::CONNECT_RESPONSE, deadline, awaited)?;
        // Again: the peer's limits are known only now.
        self.init(qp)?;
        enter(&mut self.id, qp, QpState::RTR, |_| {})?;
        enter(&mut self.id, qp, QpState::RTS, |_| {})?;
        self.id.establish().attempt("complete the connection")?;
        Ok(Connection::new(self.id, answer.private_data))
    }
}

/// The next event, and the identifier that a connection request brings.
fn next(
    id: &mut Id,
    deadline: Option<Instant>,
    awaited: &'static str,
) -> Result<(cm::Event, Option<Id>), CmError> {
    loop {
        if let Some(taken) = id.next().attempt("read an event of the connection manager")? {
            let (event, _) = &taken;
            let kind = EventKind(event.kind);
            trace::event!(
                DEBUG, event = ?kind, status = event.status, "event of the connection manager"
            );
            return Ok(taken);
        }
        match block(id.as_fd(), deadline) {
            Ok(Woken::DeadlinePassed) => return Err(CmError::TimedOut { awaited }),
            // A signal does not end the wait.
            Ok(_) => {}
            Err(error) => Err(os_error(error)).attempt("wait for the connection manager")?,
        }
    }
}

/// The expected next event; another one is an error.
fn expect(
    id: &mut Id,
    expected: EventKind,
    deadline: Option<Instant>,
    awaited: &'static str,
) -> Result<cm::Event, CmError> {
    const TIMED_OUT: i32 = -Errno::TIMEDOUT.raw_os_error();
    loop {
        let (event, _) = next(id, deadline, awaited)?;
        match (EventKind(event.kind), event.status) {
            (kind, 0) if kind == expected => return Ok(event),
            (EventKind::ADDR_CHANGE, _) => {}
            // The kernel's timeout has passed.
            (EventKind::ADDR_ERROR | EventKind::ROUTE_ERROR, TIMED_OUT) => {
                return Err(CmError::TimedOut { awaited });
            }
            _ => return Err(CmError::of(event, id.peer_addr())),
        }
    }
}

/// When a time is over; None, if it is more than the clock can express, is never.
fn deadline_after(limit: Duration) -> Option<Instant> {
    Instant::now().checked_add(limit)
}

/// The time left; None is without limit.
fn left(deadline: Option<Instant>) -> Option<Duration> {
    deadline.map(|end| end.saturating_duration_since(Instant::now()))
}

/// A timeout for librdmacm: at least a millisecond, since 0 means none.
fn millis(limit: Option<Duration>) -> i32 {
    let millis = limit.map_or(u128::MAX, |limit| limit.as_millis());
    i32::try_from(millis).unwrap_or(i32::MAX).max(1)
}

const fn bounded(private_data: &[u8], max: usize) -> Result<(), CmError> {
    match private_data.len() {
        len if len > max => Err(CmError::PrivateDataTooLong { len, max }),
        _ => Ok(()),
    }
}
