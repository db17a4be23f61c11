//! Connecting through librdmacm, by IP addresses as with sockets.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use transport_verbs::{Access, RecvWr, SendWr, cm};
//!
//! let limit = Duration::from_secs(5);
//! let mut route = cm::resolve("192.0.2.1:7471".parse()?, limit)?;
//! let context = route.device().open()?;
//! let pd = context.alloc_pd()?;
//! let cq = context.cq(16).create()?;
//! let region = pd.allocate(64, Access::LOCAL_WRITE)?;
//! let mut qp = pd.qp(&cq).create()?;
//! route.init(&mut qp)?;
//! qp.post_recv(&[RecvWr::new(1, &[region.sge(..64)?])])?;
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
//! # use transport_verbs::{Access, RecvWr, cm};
//! # let limit = Duration::from_secs(5);
//! let mut listener = cm::Listener::bind("0.0.0.0:7471".parse()?)?;
//! let mut request = listener.accept(limit)?;
//! let context = request.device().open()?;
//! let pd = context.alloc_pd()?;
//! let cq = context.cq(16).create()?;
//! let region = pd.allocate(64, Access::LOCAL_WRITE)?;
//! let mut qp = pd.qp(&cq).create()?;
//! request.init(&mut qp)?;
//! qp.post_recv(&[RecvWr::new(1, &[region.sge(..64)?])])?; // before the peer can send
//! let connection = request.accept(&mut qp, b"welcome", limit)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The types and functions are those of [`cq_verbs::cm`], which describes them, for the [identifiers](Id) of librdmacm.
//! No call waits longer than its limit, except that on InfiniBand librdmacm waits for the daemon ibacm, where that
//! runs.
//!
//! InfiniBand and RoCE are supported. On iWARP the kernel connects queue pairs in another way, and connecting fails
//! with [`CmError::Unexpected`].

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use cq_verbs::cm::{Advice, CmEvent, ConnParam, Identifier, ModifyQpError, QpInfo};
use cq_verbs::setup::{Errno, QpAttrMask, QpState};

pub use cq_verbs::cm::{CmError, Event, EventKind, RejectReason, Status};

use crate::device::Context;
use crate::error::{Attempt, OpenError, errno};
use crate::qp::QueuePair;
use crate::sys::cm;
use crate::trace;

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

/// Resolves an address, and the route to it.
///
/// # Errors
/// librdmacm can't be used, no device reaches the address, or it was not resolved in time.
#[doc(alias("rdma_resolve_addr", "rdma_resolve_route"))]
pub fn resolve(addr: SocketAddr, limit: Duration) -> Result<Route, CmError> {
    cq_verbs::cm::resolve(addr, limit)
}

/// `struct rdma_cm_id`: an identifier of librdmacm, with an event channel of its own. Programs that are generic over
/// the [`Identifier`] name it.
///
/// ```no_run
/// use std::net::SocketAddr;
/// use std::time::Duration;
///
/// use transport_verbs::cm::Id;
/// use transport_verbs::verbs::cm::{self, CmError, Identifier};
///
/// fn reach<I: Identifier>(addr: SocketAddr) -> Result<cm::Route<I>, CmError> {
///     cm::resolve(addr, Duration::from_secs(5))
/// }
///
/// let route = reach::<Id>("192.0.2.1:7471".parse()?)?;
/// assert!(!route.device().name()?.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Id(cm::Id);

impl AsFd for Id {
    /// Readable while there is an event.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Identifier for Id {
    type Device = Context;
    type OpenError = OpenError;

    const ADVICE: Advice = Advice {
        no_cm: "`ibv_devices` lists the devices, `modprobe rdma_ucm` loads the module of librdmacm",
        address: "`rdma link` lists the interfaces that have one, `ping` tells whether the address answers",
        route: "`rdma link` shows whether the port is up",
    };

    fn new() -> Result<Self, Errno> {
        numbered(cm::Id::new().map(Self))
    }

    fn bind(&mut self, addr: SocketAddr) -> Result<(), Errno> {
        numbered(self.0.bind(addr))
    }

    fn listen(&mut self, backlog: i32) -> Result<(), Errno> {
        numbered(self.0.listen(backlog))
    }

    fn resolve_addr(&mut self, addr: SocketAddr, limit: Duration) -> Result<(), Errno> {
        numbered(self.0.resolve_addr(addr, millis(limit)))
    }

    fn resolve_route(&mut self, limit: Duration) -> Result<(), Errno> {
        numbered(self.0.resolve_route(millis(limit)))
    }

    fn connect(&mut self, param: &ConnParam<&[u8]>) -> Result<(), Errno> {
        numbered(self.0.connect(param))
    }

    fn establish(&mut self) -> Result<(), Errno> {
        numbered(self.0.establish())
    }

    fn accept(&mut self, param: &ConnParam<&[u8]>) -> Result<(), Errno> {
        numbered(self.0.accept(param))
    }

    fn reject(&mut self, private_data: &[u8]) -> Result<(), Errno> {
        numbered(self.0.reject(private_data))
    }

    fn disconnect(&mut self) -> Result<(), Errno> {
        numbered(self.0.disconnect())
    }

    fn take_event(&mut self) -> Result<Option<(CmEvent, Option<Self>)>, Errno> {
        let Some((event, request)) = numbered(self.0.take_event())? else { return Ok(None) };
        trace::event!(
            DEBUG, event = ?event.kind, status = event.status.0, "event of the connection manager"
        );
        Ok(Some((event, request.map(Self))))
    }

    fn local_addr(&self) -> Option<SocketAddr> {
        self.0.local_addr()
    }

    fn peer_addr(&self) -> Option<SocketAddr> {
        self.0.peer_addr()
    }

    fn device_name(&self) -> Result<String, Errno> {
        numbered(self.0.device_name())
    }

    fn port_number(&self) -> u8 {
        self.0.port_number()
    }

    fn open(&self) -> Result<Context, OpenError> {
        Context::open(&self.0.device_name().attempt("name the connection's device")?)
    }

    fn is_device_of(&self, qp: &QueuePair) -> Result<bool, Errno> {
        Ok(qp.device_name() == self.device_name()?)
    }

    fn describe(qp: &QueuePair) -> QpInfo {
        let limits = qp.limits();
        QpInfo {
            device: qp.device_name().to_owned(),
            srq: qp.has_srq(),
            max_qp_rd_atom: limits.max_qp_rd_atom,
            max_qp_init_rd_atom: limits.max_qp_init_rd_atom,
        }
    }

    fn modify_qp(
        &mut self,
        qp: &mut QueuePair,
        to: QpState,
        rd_atomic: Option<u8>,
    ) -> Result<(), ModifyQpError> {
        let (mut attr, mask) = numbered(self.0.qp_attr(to.0))?;
        match rd_atomic {
            Some(of_the_peer) if to == QpState::RTR => attr.max_dest_rd_atomic = of_the_peer,
            Some(own) if to == QpState::RTS => attr.max_rd_atomic = own,
            _ => {}
        }
        Ok(qp.modify_raw(&mut attr, QpAttrMask::from_bits_retain(mask as u32))?)
    }
}

fn numbered<V>(step: io::Result<V>) -> Result<V, Errno> {
    step.map_err(|error| errno(&error))
}

/// A timeout for librdmacm: at least a millisecond, since 0 means none.
fn millis(limit: Duration) -> i32 {
    i32::try_from(limit.as_millis()).unwrap_or(i32::MAX).max(1)
}
