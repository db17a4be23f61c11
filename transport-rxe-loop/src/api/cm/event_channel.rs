//! Event channels, as librdmacm has them, and what is taken from them.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

use cq_core::transport::{EventError, Woken};
use cq_verbs::cm::CmEvent;
use cq_verbs::descriptor;
use cq_verbs::setup::Errno;

use super::attributes;
use super::id::{CmId, errno};
use crate::api::device::Context;
use crate::conditions::FORKED;
use crate::connections::channel::OBJECT;
use crate::connections::{ChannelKey, Queued};
use crate::error::CreateError;
use crate::lifecycle::Device;

/// `struct rdma_event_channel`: where the events of identifiers are queued. Its descriptor is readable exactly while an event
/// is, and can be watched by poll(2) and epoll(7), also for edges. A process of the same user can make a listener's readable
/// without one, by what is no request. Several threads may take events at once.
///
/// ```
/// use cq_core::transport::Woken;
/// use transport_rxe_loop::cm::{CmId, EventChannel, EventKind, PortSpace};
/// use transport_rxe_loop::{Context, QpType};
///
/// let channel = EventChannel::new(&Context::open("loop0")?)?;
/// let id = CmId::new(&channel, PortSpace::TCP, QpType::RC)?;
/// id.resolve_addr(None, ([127, 0, 0, 1], 7471).into())?;
/// assert_eq!(channel.block(None)?, Woken::Event);
/// let taken = channel.take()?.unwrap();
/// assert_eq!((taken.id, taken.event.kind), (id.key(), EventKind::ADDR_RESOLVED));
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// See [`CmId`] for a listener.
#[doc(alias("rdma_event_channel", "rdma_create_event_channel", "rdma_destroy_event_channel"))]
#[derive(Debug)]
pub struct EventChannel {
    pub(super) device: &'static Device,
    pub(super) key: ChannelKey,
    fd: Arc<OwnedFd>,
}

/// `struct rdma_cm_event`: an event that was taken from a channel.
///
/// ```
/// use transport_rxe_loop::cm::{CmId, EventChannel, EventKind, PortSpace, Status};
/// use transport_rxe_loop::{Context, QpType};
///
/// let channel = EventChannel::new(&Context::open("loop0")?)?;
/// let id = CmId::new(&channel, PortSpace::TCP, QpType::RC)?;
/// id.queue_event(EventKind(1000), Status(0), 99)?; // one of the program's own
/// let taken = channel.take()?.unwrap();
/// assert_eq!((taken.id, taken.arg), (id.key(), 99));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct IdEvent {
    /// The [key](CmId::key) of the identifier; of a connection request, of the listener.
    pub id: u64,
    /// What happened, and what the peer has sent.
    pub event: CmEvent,
    /// The queue key of the peer's queue pair, for datagrams.
    pub qkey: u32,
    /// The identifier that a connection request brings.
    pub request: Option<CmId>,
    /// The argument of an event that the program has [queued itself](CmId::queue_event); else 0.
    pub arg: u64,
}

impl EventChannel {
    /// Creates a channel: `rdma_create_event_channel`.
    ///
    /// # Errors
    /// The system refuses a descriptor or a socket, or this is a forked child.
    pub fn new(context: &Context) -> Result<Self, CreateError> {
        let device = context.device;
        let mut all = device.connections.lock().map_err(|_| FORKED)?;
        let created = all.create_channel();
        let (key, fd) = created.map_err(|why| why.for_object(OBJECT))?;
        Ok(Self { device, key, fd })
    }

    /// Takes the oldest event, if there is one: `rdma_get_cm_event` of a channel that does not block, and
    /// `rdma_ack_cm_event`.
    ///
    /// # Errors
    /// EMFILE, ENFILE: a request has arrived, and no descriptor is free for it. It waits, and the channel stays readable.
    /// ENOMEM, ENOSPC: the system refuses to watch a request's socket; the request is rejected.
    /// ENODEV: this is a forked child.
    pub fn take(&self) -> Result<Option<IdEvent>, Errno> {
        let taken = self.take_held()?;
        if let Some(IdEvent { request: Some(request), .. }) = &taken {
            request.begin()?;
        }
        Ok(taken)
    }

    /// The same where several threads take events: of the identifier that a connection request brings none comes before
    /// [`CmId::begin`], [`CmId::accept`] or [`CmId::migrate`].
    ///
    /// # Errors
    /// As for [`take`](Self::take).
    pub fn take_held(&self) -> Result<Option<IdEvent>, Errno> {
        let mut all = self.device.connections.lock().map_err(errno)?;
        let taken = all.take(self.key).map_err(errno)?;
        Ok(taken.map(|queued| self.event(queued)))
    }

    /// Waits until there may be an event, the deadline has passed, or this thread has handled a signal.
    ///
    /// # Errors
    /// The system refused. EBADF: the program has closed the descriptor.
    pub fn block(&self, deadline: Option<Instant>) -> Result<Woken, EventError> {
        let refused = |errno: rustix::io::Errno| EventError::Device(errno.raw_os_error());
        let all = self.device.connections.lock();
        all.and_then(|mut all| all.channel(self.key)?.epoll().map(drop)).map_err(refused)?;
        descriptor::block(&*self.fd, deadline)
    }

    fn event(&self, queued: Queued) -> IdEvent {
        let Queued { id, event: (kind, status), request, message, arg } = queued;
        let mut event = CmEvent::new(kind, status);
        if let Some(message) = &message {
            event.param = attributes::received(message);
        }
        let qkey = message.map_or(0, |message| message.qkey);
        let request = request.map(|key| CmId { device: self.device, key });
        IdEvent { id: id.0, event, qkey, request, arg }
    }
}

impl AsFd for EventChannel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for EventChannel {
    /// Identifiers that use it are destroyed by that.
    fn drop(&mut self) {
        if let Ok(mut all) = self.device.connections.lock() {
            all.destroy_channel(self.key);
        }
    }
}
