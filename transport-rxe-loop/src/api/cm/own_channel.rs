//! Identifiers with an event channel of their own, for [`cq_verbs::cm`].

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use cq_verbs::cm::{Advice, CmEvent, ConnParam, Identifier, ModifyQpError, QpInfo};
use cq_verbs::setup::{Errno, QpState, QpType};

use super::event_channel::EventChannel;
use super::id::CmId;
use crate::api::attr::MAX_RD_ATOMIC;
use crate::api::device::{Context, NAME};
use crate::api::open::OpenError;
use crate::api::qp::QueuePair;
use crate::connections::port::PortSpace;
use crate::engine::port;
use crate::trace;

/// An identifier of a reliable connection, with an event channel of its own. Programs that are generic over the
/// [`Identifier`] name it.
///
/// ```
/// use transport_rxe_loop::verbs::cm::Identifier;
/// use transport_rxe_loop::{Context, cm};
///
/// let context = Context::open("loop0")?;
/// let mut id = cm::Id::in_fabric(&context)?;
/// id.bind(([127, 0, 0, 1], 0).into())?;
/// id.listen(8)?;
/// assert!(id.local_addr().is_some_and(|addr| addr.port() > 0));
/// assert!(id.take_event()?.is_none()); // nobody connects
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Id {
    // In the order of dropping: the channel goes last.
    id: CmId,
    channel: EventChannel,
    context: Context,
}

impl Id {
    /// Creates one in the fabric of a context.
    ///
    /// # Errors
    /// EMFILE, ENFILE: no descriptor is available. ENODEV: this is a forked child.
    pub fn in_fabric(context: &Context) -> Result<Self, Errno> {
        let channel = EventChannel::new(context).map_err(|why| why.errno())?;
        let id = CmId::new(&channel, PortSpace::TCP, QpType::RC)?;
        Ok(Self { id, channel, context: context.clone() })
    }
}

impl AsFd for Id {
    /// Readable while there is an event.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }
}

impl Identifier for Id {
    type Device = Context;
    type OpenError = OpenError;

    const ADVICE: Advice = Advice {
        no_cm: "the fabric that RXE_LOOP_FABRIC names can't be opened, as `Context::open` tells in more words, or the system gives no socket",
        address: "the loopback reaches the addresses of this machine alone, which `ip address` lists",
        route: "resolve the address first",
    };

    fn new() -> Result<Self, Errno> {
        let context = Context::open(NAME).map_err(|why| why.errno())?;
        Self::in_fabric(&context)
    }

    fn bind(&mut self, addr: SocketAddr) -> Result<(), Errno> {
        self.id.bind(addr)
    }

    fn listen(&mut self, backlog: i32) -> Result<(), Errno> {
        self.id.listen(backlog)
    }

    fn resolve_addr(&mut self, addr: SocketAddr, _limit: Duration) -> Result<(), Errno> {
        self.id.resolve_addr(None, addr)
    }

    fn resolve_route(&mut self, _limit: Duration) -> Result<(), Errno> {
        self.id.resolve_route()
    }

    fn connect(&mut self, param: &ConnParam<&[u8]>) -> Result<(), Errno> {
        self.id.connect(param)
    }

    fn establish(&mut self) -> Result<(), Errno> {
        self.id.establish()
    }

    fn accept(&mut self, param: &ConnParam<&[u8]>) -> Result<(), Errno> {
        self.id.accept(param)
    }

    fn reject(&mut self, private_data: &[u8]) -> Result<(), Errno> {
        self.id.reject(private_data)
    }

    fn disconnect(&mut self) -> Result<(), Errno> {
        self.id.disconnect()
    }

    fn take_event(&mut self) -> Result<Option<(CmEvent, Option<Self>)>, Errno> {
        let Some(taken) = self.channel.take()? else { return Ok(None) };
        trace::event!(
            DEBUG, event = ?taken.event.kind, status = taken.event.status.0,
            "event of the connection manager"
        );
        let on_own_channel = |id: CmId| {
            let channel = EventChannel::new(&self.context).map_err(|why| why.errno())?;
            id.migrate(&channel)?;
            Ok(Self { id, channel, context: self.context.clone() })
        };
        Ok(Some((taken.event, taken.request.map(on_own_channel).transpose()?)))
    }

    fn local_addr(&self) -> Option<SocketAddr> {
        self.id.local_addr()
    }

    fn peer_addr(&self) -> Option<SocketAddr> {
        self.id.peer_addr()
    }

    fn device_name(&self) -> Result<String, Errno> {
        Ok(NAME.to_owned())
    }

    fn port_number(&self) -> u8 {
        self.peer_addr().map_or(0, |_| port::NUMBER)
    }

    fn open(&self) -> Result<Context, OpenError> {
        Ok(self.context.clone())
    }

    fn is_device_of(&self, qp: &QueuePair) -> Result<bool, Errno> {
        Ok(std::ptr::eq(qp.claimed.queue.engine, self.context.device.engine))
    }

    fn describe(qp: &QueuePair) -> QpInfo {
        QpInfo {
            device: NAME.to_owned(),
            srq: qp.has_srq,
            max_qp_rd_atom: MAX_RD_ATOMIC,
            max_qp_init_rd_atom: MAX_RD_ATOMIC,
        }
    }

    fn modify_qp(
        &mut self,
        qp: &mut QueuePair,
        to: QpState,
        rd_atomic: Option<u8>,
    ) -> Result<(), ModifyQpError> {
        let attr = self.id.qp_attr(to)?;
        let attr = match rd_atomic {
            Some(of_the_peer) if to == QpState::RTR => attr.max_dest_rd_atomic(of_the_peer),
            Some(own) if to == QpState::RTS => attr.max_rd_atomic(own),
            _ => attr,
        };
        Ok(qp.modify(&attr)?)
    }
}
