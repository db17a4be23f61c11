//! The active side: resolving an address, and requesting a connection.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use cq_core::transport::Deadline;

use super::connection::{CmDevice, Connection};
use super::steps::{attempt, bounded, created, expect, init, left, param, start};
use super::{CmError, EventKind, Identifier, QpOf};
use crate::setup::Errno;

/// Resolves an address, and the route to it.
///
/// # Errors
/// The connection manager can't be used, no device reaches the address, or it was not resolved in time.
#[doc(alias("rdma_create_ep", "rdma_destroy_ep"))]
pub fn resolve<I: Identifier>(addr: SocketAddr, limit: Duration) -> Result<Route<I>, CmError> {
    resolve_with(I::new, addr, limit)
}

/// The same, with identifiers that `create` returns: one for each attempt.
///
/// # Errors
/// As for [`resolve`].
pub fn resolve_with<I: Identifier>(
    create: impl FnMut() -> Result<I, Errno>,
    addr: SocketAddr,
    limit: Duration,
) -> Result<Route<I>, CmError> {
    let deadline = Deadline::after(limit);
    let mut id = find_device(create, addr, deadline)?;
    let resolving = id.resolve_route(left(deadline));
    resolving.map_err(|errno| CmError::Route { status: errno.into(), advice: I::ADVICE.route })?;
    expect(&mut id, EventKind::ROUTE_RESOLVED, deadline, "the route to the address")?;
    Ok(Route { id })
}

/// An identifier whose address is resolved. It resolves repeatedly: with librdmacm the kernel misses an answer that
/// comes before it listens, and then looks again only at the end of its timeout.
fn find_device<I: Identifier>(
    mut create: impl FnMut() -> Result<I, Errno>,
    addr: SocketAddr,
    deadline: Option<Instant>,
) -> Result<I, CmError> {
    const AGAIN: Duration = Duration::from_millis(250);
    loop {
        let mut id = created(create())?;
        let resolving = id.resolve_addr(addr, left(deadline).min(AGAIN));
        resolving.map_err(|errno| CmError::Address {
            addr,
            status: errno.into(),
            advice: I::ADVICE.address,
        })?;
        match expect(&mut id, EventKind::ADDR_RESOLVED, deadline, "the address") {
            Err(CmError::TimedOut { .. }) if left(deadline) > Duration::ZERO => {}
            answer => return answer.map(|_| id),
        }
    }
}

/// A device, and the route from it to a peer.
///
/// ```
/// use std::error::Error;
/// use std::time::Duration;
///
/// use cq_verbs::cm::{Connection, Identifier, QpOf, Route};
/// use cq_verbs::post::Post;
/// use cq_verbs::wr::RecvWr;
///
/// /// The queue pair is of the route's device, and its receives are posted before the peer can send.
/// fn connect<I: Identifier>(
///     mut route: Route<I>,
///     qp: &mut QpOf<I>,
///     receives: &[RecvWr<'_>],
/// ) -> Result<Connection<I>, Box<dyn Error>> {
///     route.init(qp)?;
///     qp.post_recv(receives)?;
///     Ok(route.connect(qp, b"hello", Duration::from_secs(5))?)
/// }
/// ```
#[doc(alias("rdma_create_id", "rdma_resolve_addr", "rdma_resolve_route"))]
#[derive(Debug)]
pub struct Route<I> {
    id: I,
}

impl<I: Identifier> Route<I> {
    /// The maximum size of the private data of a connection request.
    pub const MAX_REQUEST: usize = 56;

    /// The device.
    #[must_use]
    pub const fn device(&self) -> CmDevice<'_, I> {
        CmDevice(&self.id)
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
    #[doc(alias("rdma_create_qp", "rdma_create_qp_ex", "rdma_init_qp_attr"))]
    pub fn init(&mut self, qp: &mut QpOf<I>) -> Result<(), CmError> {
        init(&mut self.id, qp)
    }

    /// Requests a connection from the peer, and connects the queue pair, from RESET or INIT to RTS.
    ///
    /// # Errors
    /// The queue pair is of another device or not in RESET or INIT, the private data is longer than
    /// [`MAX_REQUEST`](Self::MAX_REQUEST), or the peer rejected the request or did not answer in time. The
    /// state of the queue pair may have changed.
    #[doc(alias("rdma_connect", "rdma_establish"))]
    pub fn connect(
        mut self,
        qp: &mut QpOf<I>,
        private_data: &[u8],
        limit: Duration,
    ) -> Result<Connection<I>, CmError> {
        let deadline = Deadline::after(limit);
        bounded(private_data, Self::MAX_REQUEST)?;
        // Checked before the peer gets the request, which would end the connection of a connected queue pair.
        self.init(qp)?;
        let request = param::<I>(qp, private_data);
        attempt(self.id.connect(&request), "request a connection")?;
        let awaited = "the peer's answer";
        let answer = expect(&mut self.id, EventKind::CONNECT_RESPONSE, deadline, awaited)?;
        // Again: the peer's limits are known only now.
        self.init(qp)?;
        start(&mut self.id, qp, &answer.param)?;
        attempt(self.id.establish(), "complete the connection")?;
        Ok(Connection::new(self.id, answer.param.private_data))
    }
}
