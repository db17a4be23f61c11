//! Identifiers, as librdmacm has them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use cq_verbs::cm::{ConnParam, EventKind, Status};
use cq_verbs::setup::{Errno, QpAttr, QpState, QpType};

use super::attributes;
use super::event_channel::EventChannel;
use crate::addresses::{check, source_to};
use crate::connections::port::PortSpace;
use crate::connections::{All, IdKey, Queued};
use crate::lifecycle::Device;
use crate::protocol::cm::message::{Kind, Message};
use crate::protocol::cm::{self, Call, State};

/// `struct rdma_cm_id`: an identifier. Dropping it destroys it: the peer gets the event REJECTED or DISCONNECTED, the requests
/// that wait at a listener are rejected, and its events that were not taken are discarded.
///
/// ```
/// use transport_rxe_loop::cm::{CmId, EventChannel, PortSpace};
/// use transport_rxe_loop::{Context, QpType};
///
/// let context = Context::open("loop0").unwrap();
/// let channel = EventChannel::new(&context).unwrap();
/// let id = CmId::new(&channel, PortSpace::TCP, QpType::RC).unwrap();
/// id.bind("127.0.0.1:0".parse().unwrap()).unwrap();
/// id.listen(8).unwrap();
/// assert!(channel.take().unwrap().is_none(), "nobody connects");
/// ```
#[doc(alias = "rdma_cm_id")]
#[derive(Debug)]
pub struct CmId {
    pub(super) device: &'static Device,
    pub(super) key: IdKey,
}

/// There is no way to an address.
const UNREACHABLE: Status = Status(-Errno::EHOSTUNREACH.0);

pub(super) fn errno(errno: rustix::io::Errno) -> Errno {
    Errno(errno.raw_os_error())
}

/// All addresses of the family of this one, without a port.
const fn all_of_its_family(addr: SocketAddr) -> SocketAddr {
    match addr {
        SocketAddr::V4(_) => SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
        SocketAddr::V6(_) => SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0),
    }
}

impl CmId {
    /// Creates an identifier for queue pairs of a type, in a port space: `rdma_create_id`.
    ///
    /// # Errors
    /// ENODEV: this is a forked child. EOPNOTSUPP: the type is not among the [known ones](QpType::KNOWN).
    #[doc(alias("rdma_create_id", "rdma_destroy_id"))]
    pub fn new(channel: &EventChannel, space: PortSpace, qp_type: QpType) -> Result<Self, Errno> {
        if !QpType::KNOWN.contains(&qp_type) {
            return Err(Errno::EOPNOTSUPP);
        }
        let device = channel.device;
        let created =
            device.connections.lock().map(|mut all| all.create(channel.key, space, qp_type));
        Ok(Self { device, key: created.map_err(errno)? })
    }

    /// Its number, which no other identifier of the process has: events name it.
    #[must_use]
    pub const fn key(&self) -> u64 {
        self.key.0
    }

    /// Does something with the identifier.
    pub(super) fn with<T>(
        &self,
        step: impl FnOnce(&mut All, IdKey) -> Result<T, rustix::io::Errno>,
    ) -> Result<T, Errno> {
        let mut all = self.device.connections.lock().map_err(errno)?;
        step(&mut all, self.key).map_err(errno)
    }

    /// Binds it to a local address, with port 0 to any port: `rdma_bind_addr`. An unspecified address covers all
    /// addresses of its family; ::, without [`IdOption::AfOnly`](super::IdOption::AfOnly), for those of both.
    ///
    /// # Errors
    /// EADDRINUSE: the port is taken. EADDRNOTAVAIL: the address is not of this machine, or the port is taken and one of the
    /// two is unspecified. EACCES: the port is privileged, and this thread is not. EINVAL: it is bound. EMFILE, ENFILE: there is
    /// no descriptor to ask the system with, whose addresses it has; EAFNOSUPPORT: the process may not use netlink sockets.
    /// ENOMEM: the fabric has no more ports. EAGAIN: a process is stopped while it takes one. ENOENT: /proc is not mounted.
    pub fn bind(&self, addr: SocketAddr) -> Result<(), Errno> {
        check(addr).map_err(errno)?;
        self.with(|all, key| self.device.connections.bind(all, key, addr))
    }

    /// Finds the device that reaches an address, from another one or from any: `rdma_resolve_addr`. The event is
    /// ADDR_RESOLVED, or ADDR_ERROR with -EHOSTUNREACH if the address is not of this machine, as none of many machines is. The identifier is bound after
    /// either.
    ///
    /// # Errors
    /// EINVAL: it is neither new nor bound alone; or one of the two addresses is of IPv4, and the other of IPv6. Those of
    /// [`bind`](Self::bind), for either address. Nothing has changed.
    #[doc(alias = "rdma_resolve_addr")]
    pub fn resolve_addr(&self, from: Option<SocketAddr>, to: SocketAddr) -> Result<(), Errno> {
        self.with(|all, key| {
            let id = all.id(key)?;
            _ = id.judge(Call::ResolveAddr(cm::OK))?;
            let local = id.local.or(from);
            if local.is_some_and(|local| local.is_ipv4() != to.is_ipv4()) {
                return Err(rustix::io::Errno::INVAL);
            }
            let source = source_to(to)?;
            let local = local.or(source).unwrap_or(all_of_its_family(to));
            if id.bound.is_none() {
                from.map_or(Ok(()), check)?;
                self.device.connections.bind(all, key, local)?;
            }
            let id = all.id(key)?;
            id.remote = Some(to);
            if let Some(source) = source {
                // An identifier that is bound to all addresses has the one from which it connects.
                id.local = id.local.map(|local| match local.ip().is_unspecified() {
                    true => SocketAddr::new(source.ip(), local.port()),
                    false => local,
                });
                if to.ip().is_unspecified() {
                    id.remote = Some(SocketAddr::new(source.ip(), to.port()));
                }
            }
            all.resolve(key, Call::ResolveAddr(source.map_or(UNREACHABLE, |_| cm::OK)))
        })
    }

    /// Finds the path to the address: `rdma_resolve_route`. The event is ROUTE_RESOLVED.
    ///
    /// # Errors
    /// EINVAL: the address is not resolved, or the route is.
    #[doc(alias = "rdma_resolve_route")]
    pub fn resolve_route(&self) -> Result<(), Errno> {
        self.with(|all, key| all.resolve(key, Call::ResolveRoute))
    }

    /// Lets peers connect to it, with at most so many requests waiting: `rdma_listen`. A backlog that is not above 0 is the
    /// maximum, 1024. One that is not bound is bound to any port of 0.0.0.0.
    ///
    /// # Errors
    /// EINVAL: it is neither new nor bound alone. EADDRINUSE, EADDRNOTAVAIL: it shares its port. EMFILE, ENFILE: there is no
    /// descriptor. EACCES, ENOSPC: the system allows no further file next to the fabric's.
    pub fn listen(&self, backlog: i32) -> Result<(), Errno> {
        self.with(|all, key| {
            if all.id(key)?.state == State::Idle {
                let any = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0);
                self.device.connections.bind(all, key, any)?;
            }
            self.device.connections.listen(all, key, backlog)
        })
    }

    /// Requests a connection: `rdma_connect`. The events are CONNECT_RESPONSE once the peer has accepted, for datagrams
    /// ESTABLISHED, or REJECTED or UNREACHABLE. The private data has at most 56 bytes, for datagrams 180.
    ///
    /// # Errors
    /// EINVAL: the route is not resolved, the identifier was connected before, the private data is too long, or the device does
    /// not allow so many READs and atomics. EAGAIN: the request has to be sent again, and the system refuses the device's thread.
    /// EMFILE, ENFILE: there is no descriptor, and nothing has changed. EACCES: the listener's socket is another user's. What
    /// else the system refuses: where that is after the request was sent, the identifier can be destroyed only.
    pub fn connect(&self, param: &ConnParam<&[u8]>) -> Result<(), Errno> {
        let message = self.message(Kind::Req, param)?;
        let request = self.with(|all, key| {
            let id = all.id(key)?;
            _ = id.judge(Call::Connect)?;
            let (Some(local), Some(remote)) = (id.local, id.remote) else {
                return Err(rustix::io::Errno::INVAL);
            };
            id.retry_count = message.param.retry_count;
            Ok(Message { addresses: [local, remote], ..message })
        })?;
        self.device.connections.request(self.key, request).map_err(errno)
    }

    /// Lets its events come: of one that came with a request, and was [held back](EventChannel::take_held).
    ///
    /// # Errors
    /// The system refuses to watch its socket.
    pub fn begin(&self) -> Result<(), Errno> {
        self.with(All::begin)
    }

    /// Accepts the request that it came with: `rdma_accept`. The event is ESTABLISHED once the peer is ready, and none for
    /// datagrams. The private data has at most 196 bytes, for datagrams 136.
    ///
    /// # Errors
    /// EINVAL: the peer has given up, the private data is too long, or the device does not allow so many READs and atomics.
    pub fn accept(&self, param: &ConnParam<&[u8]>) -> Result<(), Errno> {
        let message = self.message(Kind::Rep, param)?;
        self.with(|all, key| all.call(key, Call::Accept, message))
    }

    fn message(&self, kind: Kind, param: &ConnParam<&[u8]>) -> Result<Message, Errno> {
        let mut all = self.device.connections.lock().map_err(errno)?;
        attributes::parameters(kind, all.id(self.key).map_err(errno)?, param)
    }

    /// Rejects the request that it came with, or the peer's answer: `rdma_reject`. The peer's event is REJECTED with reason
    /// 28, and has at most 148 bytes of private data.
    ///
    /// # Errors
    /// EINVAL: there is nothing to reject, or the private data is too long.
    pub fn reject(&self, private_data: &[u8]) -> Result<(), Errno> {
        let service = self.with(|all, key| Ok(all.id(key)?.service()))?;
        let message = attributes::message(Kind::Rej, service, private_data)?;
        let message = Message { reason: cm::reason::BY_PEER, ..message };
        self.with(|all, key| all.call(key, Call::Reject, message))
    }

    /// Tells the peer that its answer has come and the queue pair is ready: `rdma_establish`.
    ///
    /// # Errors
    /// EINVAL: the peer has not answered, or has given up meanwhile.
    pub fn establish(&self) -> Result<(), Errno> {
        self.with(|all, key| all.call(key, Call::Establish, Message::of(Kind::Rtu)))
    }

    /// Disconnects, or completes the disconnection that the peer began: `rdma_disconnect`. The queue pair is unchanged. The event
    /// is DISCONNECTED on both sides, once.
    ///
    /// # Errors
    /// EINVAL: it is new, bound or resolved. Where there is no connection, or none any more, the call does nothing.
    pub fn disconnect(&self) -> Result<(), Errno> {
        self.with(|all, key| all.call(key, Call::Disconnect, Message::of(Kind::Dreq)))
    }

    /// Moves it to another channel of the same fabric, with its events: `rdma_migrate_id`.
    ///
    /// # Errors
    /// EINVAL: the channel is of another fabric.
    #[doc(alias = "rdma_migrate_id")]
    pub fn migrate(&self, channel: &EventChannel) -> Result<(), Errno> {
        if !std::ptr::eq(self.device, channel.device) {
            return Err(Errno::EINVAL);
        }
        self.with(|all, key| all.migrate(key, channel.key))
    }

    /// Queues an event of the program's own: `rdma_write_cm_event`. It is taken behind those that are queued.
    ///
    /// # Errors
    /// ENODEV: this is a forked child.
    #[doc(alias = "rdma_write_cm_event")]
    pub fn queue_event(&self, kind: EventKind, status: Status, arg: u64) -> Result<(), Errno> {
        self.with(|all, id| {
            all.push(Queued { id, event: (kind, status), request: None, message: None, arg })
        })
    }

    /// The attributes with which its queue pair goes to INIT, RTR or RTS: `rdma_init_qp_attr`.
    ///
    /// # Errors
    /// EINVAL: it has no device; the connection has ended; or the state needs what the peer has not sent.
    pub fn qp_attr(&self, to: QpState) -> Result<QpAttr, Errno> {
        let of_peer = to != QpState::INIT;
        self.with(|all, key| all.id(key)?.judge(Call::Attributes(of_peer)).map(drop))?;
        let port = self.device.engine.port_attributes();
        let mut all = self.device.connections.lock().map_err(errno)?;
        attributes::of_state(all.id(self.key).map_err(errno)?, &port, to)
    }

    /// Reports that a message has come before the peer's confirmation: `rdma_notify` of IBV_EVENT_COMM_EST. The connection is
    /// established once that has come, too.
    ///
    /// # Errors
    /// EISCONN: it is established. EINVAL: it is not accepted.
    #[doc(alias = "rdma_notify")]
    pub fn notify(&self) -> Result<(), Errno> {
        self.with(|all, key| all.id(key)?.judge(Call::Notify).map(drop))
    }

    /// Its local address, once it has one.
    #[must_use]
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.with(|all, key| Ok(all.id(key)?.local)).ok()?
    }

    /// The peer's address, once it has one.
    #[must_use]
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        self.with(|all, key| Ok(all.id(key)?.remote)).ok()?
    }
}

impl Drop for CmId {
    fn drop(&mut self) {
        if let Ok(mut all) = self.device.connections.lock() {
            all.destroy(self.key);
        }
    }
}
