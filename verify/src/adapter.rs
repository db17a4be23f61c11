//! Implements the suite's [`Device`] for every transport with the traits of [`cq_verbs::device`]. It only translates.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::thread;
use std::time::{Duration, Instant};

use cq_core::transport::{EventError, Woken};
use cq_core::wc::Wc;
use cq_verbs::async_event::AsyncEvent;
use cq_verbs::async_event::AsyncEvents;
use cq_verbs::cm::{self, CmEvent, ConnParam, Identifier as _, ModifyQpError};
use cq_verbs::descriptor;
use cq_verbs::device::{self as core, DevicePd as _};
use cq_verbs::post::{Post, WrError};
use cq_verbs::setup::{AddressVector, GlobalRoute, Port};
use cq_verbs::wr::{RecvWr, SendWr};

use crate::device::{
    Access, Address, CmCall, Cq, CqInit, Destination, Destroy, Device, Identifier, Limits, Made,
    Mr, Mw, Posted, Qp, QpAttr, QpCaps, QpInit, QpState, SMALL_CAPS, Srq, SrqInit,
};

/// What the suite requires of a transport beyond the traits of [`cq_verbs::device`].
pub trait Transport: Send + 'static {
    /// The open device.
    type Context: core::Device<Instant = Instant>;
    /// A memory window.
    type Mw: Mw + 'static;
    /// An identifier of its connection manager.
    type Id: cm::Identifier<Device = Self::Context>;

    /// Opens the device.
    fn open() -> Self::Context;

    /// Allocates a memory window, not bound.
    ///
    /// # Errors
    /// The device has none.
    fn alloc_mw(pd: &PdOf<Self>) -> Made<Self::Mw>;

    /// Creates an identifier.
    ///
    /// # Errors
    /// There is no connection manager.
    fn create_id(context: &Self::Context) -> Made<Self::Id>;

    /// Whether arming a queue raises its event at once if it holds completions.
    fn raises_when_armed(_: &Self::Context) -> bool {
        false
    }

    /// The address of this machine at which identifiers reach each other.
    fn address() -> IpAddr {
        Ipv4Addr::LOCALHOST.into()
    }
}

type PdOf<T> = <<T as Transport>::Context as core::Device>::Pd;
type ChannelOf<T> = <<T as Transport>::Context as core::Device>::Channel;
type CqOf<T> = <<T as Transport>::Context as core::Device>::Cq;
type SrqOf<T> = <<T as Transport>::Context as core::Device>::Srq;
type AhOf<T> = <<T as Transport>::Context as core::Device>::Ah;

/// An open device and its first port.
pub struct Opened<T: Transport> {
    context: T::Context,
    port: Port,
}

impl<T: Transport> fmt::Debug for Opened<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened").field("port", &self.port).finish_non_exhaustive()
    }
}

impl<T: Transport> Opened<T> {
    /// Wraps an open device.
    pub fn of(context: T::Context) -> Self {
        let port = core::Device::port(&context, 1).expect("it has a port");
        Self { context, port }
    }
}

/// A queue pair, and the port that it shares with its peer.
#[derive(Debug)]
pub struct Pair<Q> {
    qp: Q,
    port: Port,
}

/// An identifier of a transport's connection manager.
pub struct CmId<T: Transport>(T::Id);

impl<T: Transport> fmt::Debug for CmId<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CmId").field(&self.0).finish()
    }
}

impl<T: Transport> Device for Opened<T> {
    type Pd = PdOf<T>;
    type Mr = <T::Context as core::Device>::Memory;
    type Channel = ChannelOf<T>;
    type Cq = CqOf<T>;
    type Srq = SrqOf<T>;
    type Ah = AhOf<T>;
    type Mw = T::Mw;
    type Qp = Pair<<T::Context as core::Device>::Qp>;
    type Id = CmId<T>;

    fn open() -> Self {
        Self::of(T::open())
    }

    fn raises_when_armed(&self) -> bool {
        T::raises_when_armed(&self.context)
    }

    fn limits(&self) -> Limits {
        let most = core::Device::attributes(&self.context);
        Limits {
            max_cqe: most.max_cqe,
            max_qp_wr: most.max_qp_wr,
            max_sge: most.max_sge,
            // The suite uses no more inline bytes than this on a device that does not report its limit.
            max_inline: most.max_inline.unwrap_or(SMALL_CAPS.max_inline),
            max_rd_atomic: most.max_qp_init_rd_atom,
            max_srq_wr: most.max_srq_wr,
            max_srq_sge: most.max_srq_sge,
        }
    }

    fn alloc_pd(&self) -> Self::Pd {
        core::Device::alloc_pd(&self.context).expect("there are domains left")
    }

    fn register(&self, pd: &Self::Pd, len: usize, access: Access) -> Made<Self::Mr> {
        pd.allocate(len, access).map_err(|error| error.errno())
    }

    fn create_channel(&self) -> Self::Channel {
        core::Device::create_channel(&self.context).expect("there are channels left")
    }

    fn create_cq_with(&self, init: CqInit<'_, Self::Channel>) -> Made<Self::Cq> {
        let CqInit { capacity, channel, ignores_overrun } = init;
        let new = core::Device::cq(&self.context, capacity).channel(channel);
        let new = if ignores_overrun { new.ignore_overrun() } else { new };
        new.create().map_err(|error| error.errno())
    }

    fn create_srq(&self, pd: &Self::Pd, init: &SrqInit) -> Made<Self::Srq> {
        pd.create_srq(init).map_err(|error| error.errno())
    }

    fn create_qp(&self, pd: &Self::Pd, init: &QpInit<'_, Self::Cq, Self::Srq>) -> Made<Self::Qp> {
        let QpInit { qp_type, send_cq, recv_cq, srq, caps, sq_sig_all } = *init;
        let init = pd.qp(send_cq).recv_cq(recv_cq).srq(srq).qp_type(qp_type).caps(caps);
        let qp = init.sq_sig_all(sq_sig_all).create().map_err(|error| error.errno())?;
        Ok(Pair { qp, port: self.port })
    }

    fn create_ah(&self, pd: &Self::Pd, to: Address) -> Made<Self::Ah> {
        let Port { gid, gid_index: sgid_index, lid, .. } = self.port;
        let route = GlobalRoute::default().gid(gid).sgid_index(sgid_index).hop_limit(64);
        let route = to.global.then_some(route);
        let there = AddressVector::default().port(to.port).lid(lid).route(route);
        pd.create_ah(&there).map_err(|error| error.errno())
    }

    fn ah_from_wc(&self, pd: &Self::Pd, wc: &Wc, grh: &[u8; 40]) -> Made<Self::Ah> {
        pd.ah_from_wc(&self.port, wc, grh).map_err(|error| error.errno())
    }

    fn alloc_mw(&self, pd: &Self::Pd) -> Made<Self::Mw> {
        T::alloc_mw(pd)
    }

    fn create_id(&self) -> Made<CmId<T>> {
        T::create_id(&self.context).map(CmId)
    }

    fn address(&self) -> IpAddr {
        T::address()
    }

    fn pause(&self) {
        thread::sleep(Duration::from_micros(50));
    }
}

impl<T: Transport> AsyncEvents for Opened<T> {
    fn take_async_event(&mut self) -> Result<Option<AsyncEvent>, EventError> {
        self.context.take_async_event()
    }
}

impl<H: core::Destroy> Destroy for H {
    fn destroy(self) -> Result<(), Self> {
        core::Destroy::destroy(self).map_err(|in_use| in_use.handle)
    }
}

impl<C: core::DeviceCq> Cq for C {
    fn capacity(&self) -> u32 {
        cq_core::transport::Capacity::capacity(self) as u32
    }

    fn resize(&mut self, capacity: u32) -> Made<u32> {
        core::DeviceCq::resize(self, capacity).map_err(|error| error.errno())
    }

    fn moderate(&mut self, count: u16, period: u16) -> Made<()> {
        core::DeviceCq::moderate(self, count, period).map_err(|error| error.errno())
    }
}

impl<S: core::DeviceSrq> Srq for S {
    fn number(&self) -> u32 {
        core::DeviceSrq::number(self)
    }

    fn caps(&self) -> SrqInit {
        core::DeviceSrq::caps(self)
    }

    fn post_recv(&mut self, list: &[RecvWr<'_>]) -> Posted {
        core::DeviceSrq::post_recv(self, list)
    }

    fn arm_limit(&mut self, limit: u32) -> Made<()> {
        core::DeviceSrq::arm_limit(self, limit).map_err(|error| error.errno())
    }

    fn limit(&self) -> u32 {
        core::DeviceSrq::limit(self).expect("the device tells")
    }
}

impl<M: core::Memory> Mr for M {
    fn addr(&self) -> u64 {
        core::Region::addr(self)
    }

    fn lkey(&self) -> u32 {
        core::Region::lkey(self)
    }

    fn rkey(&self) -> u32 {
        core::Region::rkey(self)
    }

    fn read(&self, offset: usize, to: &mut [u8]) {
        core::Memory::read(self, offset, to).expect("it is inside");
    }

    fn write(&self, offset: usize, from: &[u8]) {
        core::Memory::write(self, offset, from).expect("it is inside");
    }
}

impl<Q: Post> Post for Pair<Q> {
    fn post_send(&mut self, list: &[SendWr<'_>]) -> Posted {
        self.qp.post_send(list)
    }

    fn post_recv(&mut self, list: &[RecvWr<'_>]) -> Posted {
        self.qp.post_recv(list)
    }

    fn quiesce(&mut self) -> bool {
        self.qp.quiesce()
    }

    fn check_send(&self, wr: &SendWr<'_>) -> Result<(), WrError> {
        self.qp.check_send(wr)
    }

    fn check_recv(&self, wr: &RecvWr<'_>) -> Result<(), WrError> {
        self.qp.check_recv(wr)
    }
}

impl<Q: core::DeviceQp> Qp<Q::Ah> for Pair<Q> {
    fn post_to(&mut self, to: &Destination<'_, Q::Ah>, list: &[SendWr<'_>]) -> Posted {
        self.qp.to(to).post_send(list)
    }

    fn number(&self) -> u32 {
        self.qp.number()
    }

    fn caps(&self) -> QpCaps {
        self.qp.caps()
    }

    fn state(&self) -> QpState {
        self.qp.state().expect("the device tells")
    }

    fn modify(&mut self, attr: &QpAttr) -> Made<()> {
        let Port { gid, lid, .. } = self.port;
        let mut attr = *attr;
        attr.av = attr.av.map(|path| AddressVector::new(&self.port, gid, lid).port(path.port));
        self.qp.modify(&attr).map_err(|error| error.errno())
    }
}

/// The limit of resolving.
const LIMIT: Duration = Duration::from_secs(5);
/// How many requests may wait at a listener.
const BACKLOG: i32 = 16;

impl<T: Transport> Identifier<Opened<T>> for CmId<T> {
    fn call(&mut self, call: &CmCall) -> Made<()> {
        let id = &mut self.0;
        match call {
            CmCall::Bind(addr) => id.bind(*addr),
            CmCall::Listen => id.listen(BACKLOG),
            CmCall::ResolveAddr(addr) => id.resolve_addr(*addr, LIMIT),
            CmCall::ResolveRoute => id.resolve_route(LIMIT),
            CmCall::Connect(param) => id.connect(&lent(param)),
            CmCall::Establish => id.establish(),
            CmCall::Accept(param) => id.accept(&lent(param)),
            CmCall::Reject(private_data) => id.reject(private_data),
            CmCall::Disconnect => id.disconnect(),
        }
    }

    fn take_event(&mut self) -> Made<Option<(CmEvent, Option<Self>)>> {
        Ok(self.0.take_event()?.map(|(event, request)| (event, request.map(Self))))
    }

    fn is_readable(&self, deadline: Instant) -> bool {
        descriptor::block(&self.0, Some(deadline)) == Ok(Woken::Event)
    }

    fn addrs(&self) -> [Option<SocketAddr>; 2] {
        [self.0.local_addr(), self.0.peer_addr()]
    }

    fn open(&self) -> Opened<T> {
        Opened::of(self.0.open().expect("the device of the connection"))
    }

    fn modify(&mut self, qp: &mut <Opened<T> as Device>::Qp, to: QpState) -> Made<()> {
        assert_eq!(self.0.is_device_of(&qp.qp), Ok(true), "it was opened by this identifier");
        self.0.modify_qp(&mut qp.qp, to, None).map_err(|error| match error {
            ModifyQpError::Attributes(errno) => errno,
            ModifyQpError::Modify(error) => error.errno(),
            other => unreachable!("{other}"),
        })
    }
}

/// The parameters, without owning the private data.
fn lent(param: &ConnParam) -> ConnParam<&[u8]> {
    let ConnParam { qp_num, srq, ref private_data, .. } = *param;
    let ConnParam { responder_resources, initiator_depth, .. } = *param;
    let ConnParam { flow_control, retry_count, rnr_retry_count, .. } = *param;
    ConnParam::new(qp_num, &private_data[..])
        .srq(srq)
        .responder_resources(responder_resources)
        .initiator_depth(initiator_depth)
        .flow_control(flow_control)
        .retry_count(retry_count)
        .rnr_retry_count(rnr_retry_count)
}
