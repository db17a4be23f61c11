//! The passive side: listening, and answering connection requests.

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use cq_core::transport::Deadline;

use super::connection::{CmDevice, Connection};
use super::steps::{attempt, bounded, created, expect, init, next, or_abandoned, param, start};
use super::{CmError, CmEvent, EventKind, Identifier, QpOf};
use crate::setup::Errno;

/// How many requests may wait for [`Listener::accept`].
const BACKLOG: i32 = 128;

/// A listener for connection requests. Its descriptor is readable while there is one to [`accept`](Self::accept).
///
/// ```
/// use std::net::{Ipv4Addr, SocketAddr};
/// use std::time::Duration;
///
/// use cq_verbs::cm::{CmError, Identifier, Listener, Request};
///
/// /// Listens at a free port, and sends its number to the peer.
/// fn listen<I: Identifier>(report: impl FnOnce(Option<SocketAddr>)) -> Result<Request<I>, CmError> {
///     let mut listener = Listener::<I>::bind((Ipv4Addr::UNSPECIFIED, 0).into())?;
///     report(listener.local_addr());
///     listener.accept(Duration::from_secs(60))
/// }
/// ```
#[derive(Debug)]
pub struct Listener<I> {
    id: I,
}

impl<I: Identifier> Listener<I> {
    /// Listens at an address: that of one device's interface, 0.0.0.0 for all of IPv4, or :: for all. Port 0 requests a
    /// free one, which [`local_addr`](Self::local_addr) returns.
    ///
    /// # Errors
    /// The connection manager can't be used, the address is not of this machine, or the port is taken.
    #[doc(alias("rdma_bind_addr", "rdma_listen"))]
    pub fn bind(addr: SocketAddr) -> Result<Self, CmError> {
        Self::bind_with(I::new, addr)
    }

    /// The same, with an identifier that `create` returns.
    ///
    /// # Errors
    /// As for [`bind`](Self::bind).
    pub fn bind_with(
        create: impl FnOnce() -> Result<I, Errno>,
        addr: SocketAddr,
    ) -> Result<Self, CmError> {
        let mut id = created(create())?;
        attempt(id.bind(addr), "bind to the address")?;
        attempt(id.listen(BACKLOG), "listen at the address")?;
        Ok(Self { id })
    }

    /// The address at which it listens.
    #[must_use]
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.id.local_addr()
    }

    /// Waits for a connection request.
    ///
    /// # Errors
    /// There was none in time, the device was removed, or the system failed.
    #[doc(alias = "rdma_get_request")]
    pub fn accept(&mut self, limit: Duration) -> Result<Request<I>, CmError> {
        let deadline = Deadline::after(limit);
        loop {
            let (event, request) = next(&mut self.id, deadline, "a connection request")?;
            match (event.kind, request) {
                (EventKind::CONNECT_REQUEST, Some(id)) => {
                    return Ok(Request { id, event });
                }
                (EventKind::ADDR_CHANGE, _) => {}
                _ => return Err(CmError::of(event, None, &I::ADVICE)),
            }
        }
    }
}

impl<I: AsFd> AsFd for Listener<I> {
    cq_core::of_target! { self.id; as_fd(&self) -> BorrowedFd<'_>; }
}

/// A connection request, and the device that received it. Dropping it rejects it, as dropping its
/// [`Identifier`] does.
///
/// ```
/// use std::time::Duration;
///
/// use cq_verbs::cm::{CmError, Connection, Identifier, QpOf, Request};
///
/// /// Accepts who speaks the second version of a protocol. The queue pair is of the request's device.
/// fn answer<I: Identifier>(request: Request<I>, qp: &mut QpOf<I>) -> Result<Option<Connection<I>>, CmError> {
///     if !request.private_data().starts_with(b"version 2") {
///         request.reject(b"version 2 only")?;
///         return Ok(None);
///     }
///     request.accept(qp, b"welcome", Duration::from_secs(5)).map(Some)
/// }
/// ```
#[derive(Debug)]
pub struct Request<I> {
    id: I,
    event: CmEvent,
}

impl<I: Identifier> Request<I> {
    /// The maximum size of the private data of a rejection.
    pub const MAX_REFUSAL: usize = 148;
    /// The maximum size of the private data of an answer.
    pub const MAX_ANSWER: usize = 196;

    /// The device.
    #[must_use]
    pub const fn device(&self) -> CmDevice<'_, I> {
        CmDevice(&self.id)
    }

    /// The peer's address.
    #[must_use]
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        self.id.peer_addr()
    }

    /// The peer's private data, padded with zeros up to the size that the transport carries.
    #[must_use]
    pub fn private_data(&self) -> &[u8] {
        &self.event.param.private_data
    }

    /// Changes the queue pair to INIT. Receives that are posted in this state precede the peer's first message.
    /// [`accept`](Self::accept) does the same.
    ///
    /// # Errors
    /// The queue pair is of another device, or is connected.
    pub fn init(&mut self, qp: &mut QpOf<I>) -> Result<(), CmError> {
        init(&mut self.id, qp)
    }

    /// Accepts: connects the queue pair, from RESET or INIT to RTS, and waits until the peer's is
    /// connected, too.
    ///
    /// # Errors
    /// The queue pair is of another device or not in RESET or INIT, the private data is longer than
    /// [`MAX_ANSWER`](Self::MAX_ANSWER), or the peer gave up or did not answer in time. The state of the
    /// queue pair may have changed.
    #[doc(alias = "rdma_accept")]
    pub fn accept(
        mut self,
        qp: &mut QpOf<I>,
        private_data: &[u8],
        limit: Duration,
    ) -> Result<Connection<I>, CmError> {
        let deadline = Deadline::after(limit);
        bounded(private_data, Self::MAX_ANSWER)?;
        self.init(qp)?;
        let (responder_resources, initiator_depth) = start(&mut self.id, qp, &self.event.param)?;
        let answer = param::<I>(qp, private_data)
            .responder_resources(responder_resources)
            .initiator_depth(initiator_depth);
        or_abandoned(self.id.accept(&answer), "accept the connection")?;
        let awaited = "the peer's confirmation";
        expect(&mut self.id, EventKind::ESTABLISHED, deadline, awaited)?;
        Ok(Connection::new(self.id, self.event.param.private_data))
    }

    /// Rejects the request with private data. (Dropping rejects it without.)
    ///
    /// # Errors
    /// The private data is longer than [`MAX_REFUSAL`](Self::MAX_REFUSAL), or the peer has given up.
    #[doc(alias = "rdma_reject")]
    pub fn reject(mut self, private_data: &[u8]) -> Result<(), CmError> {
        bounded(private_data, Self::MAX_REFUSAL)?;
        Ok(attempt(self.id.reject(private_data), "reject the connection")?)
    }
}
