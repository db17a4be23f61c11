//! Handles of the objects in the far process. Each method is a remote call.

use std::net::SocketAddr;
use std::time::Instant;

use cq_core::transport::{
    Arm, ArmError, Armed, Block, CqKey, EventError, Events, Notify, PollCq, PollError, Woken,
};
use cq_core::wc::Wc;
use cq_verbs::cm::CmEvent;
use cq_verbs::post::Post;
use cq_verbs::wr::{RecvWr, SendWr};

use super::objects::WC;
use super::requests::{Receive, Send};
use super::wire::{self, Call, Kind};
use super::{Far, Handle};
use crate::device::{
    CmCall, Cq, Destination, Destroy, Identifier, Made, Mr, Mw, Posted, Qp, QpAttr, QpCaps,
    QpState, Srq, SrqInit,
};

/// A protection domain in the far process.
#[derive(Debug)]
pub struct FarPd(pub(super) Handle);

/// A memory region in the far process.
#[derive(Debug)]
pub struct FarMr {
    pub(super) handle: Handle,
    pub(super) addr: u64,
    pub(super) lkey: u32,
    pub(super) rkey: u32,
}

/// A completion channel in the far process.
#[derive(Debug)]
pub struct FarChannel(pub(super) Handle);

/// A completion queue in the far process.
#[derive(Debug)]
pub struct FarCq {
    pub(super) handle: Handle,
    pub(super) key: CqKey,
}

/// A shared receive queue in the far process.
#[derive(Debug)]
pub struct FarSrq {
    pub(super) handle: Handle,
    pub(super) number: u32,
    pub(super) caps: SrqInit,
}

/// An address handle in the far process.
#[derive(Debug)]
pub struct FarAh(pub(super) Handle);

/// A memory window in the far process.
#[derive(Debug)]
pub struct FarMw(pub(super) Handle);

/// A queue pair in the far process.
#[derive(Debug)]
pub struct FarQp {
    pub(super) handle: Handle,
    pub(super) number: u32,
    pub(super) caps: QpCaps,
}

/// An identifier in the far process.
#[derive(Debug)]
pub struct FarId(pub(super) Handle);

impl Destroy for FarPd {
    fn destroy(self) -> Result<(), Self> {
        self.0.destroy().map_err(Self)
    }
}

impl Destroy for FarChannel {
    fn destroy(self) -> Result<(), Self> {
        self.0.destroy().map_err(Self)
    }
}

impl Destroy for FarCq {
    fn destroy(self) -> Result<(), Self> {
        let Self { handle, key } = self;
        handle.destroy().map_err(|handle| Self { handle, key })
    }
}

impl Destroy for FarSrq {
    fn destroy(self) -> Result<(), Self> {
        let Self { handle, number, caps } = self;
        handle.destroy().map_err(|handle| Self { handle, number, caps })
    }
}

impl Mr for FarMr {
    fn addr(&self) -> u64 {
        self.addr
    }

    fn lkey(&self) -> u32 {
        self.lkey
    }

    fn rkey(&self) -> u32 {
        self.rkey
    }

    fn read(&self, offset: usize, to: &mut [u8]) {
        let call = Call::Read { mr: self.handle.id, offset, len: to.len() };
        let ((), bytes) = self.handle.ask_with(&call, &[]);
        to.copy_from_slice(&bytes);
    }

    fn write(&self, offset: usize, from: &[u8]) {
        self.handle.ask_with::<()>(&Call::Write { mr: self.handle.id, offset }, from);
    }
}

impl Events for FarChannel {
    fn take_event(&mut self) -> Result<Option<CqKey>, EventError> {
        self.0.ask(&Call::Next { channel: self.0.id })
    }

    fn serves(&self, cq: CqKey) -> bool {
        self.0.ask(&Call::Serves { channel: self.0.id, cq })
    }
}

impl Block for FarChannel {
    type Instant = Instant;

    fn block(&mut self, deadline: Option<Instant>) -> Result<Woken, EventError> {
        // `Instant`s are not comparable between processes; durations are.
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let call = Call::Block { channel: self.0.id, left };
        self.0.ask_waiting(&call, left)
    }
}

impl PollCq for FarCq {
    type Entry = Wc;

    fn poll_into(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
        let buffer: Vec<u8> = out.iter().flat_map(|wc| wc.to_bytes()).collect();
        let call = Call::Poll { cq: self.handle.id };
        let (polled, buffer) = self.handle.ask_with(&call, &buffer);
        for (wc, bytes) in out.iter_mut().zip(buffer.chunks_exact(WC)) {
            *wc = Wc::from_bytes(bytes.try_into().expect("chunks of this size"));
        }
        polled
    }
}

impl Arm for FarCq {
    fn arm(&mut self, on: Notify) -> Result<Armed, ArmError> {
        self.handle.ask(&Call::Arm { cq: self.handle.id, on })
    }

    fn key(&self) -> CqKey {
        self.key
    }
}

impl Cq for FarCq {
    fn capacity(&self) -> u32 {
        self.handle.ask(&Call::Capacity { cq: self.handle.id })
    }

    fn resize(&mut self, capacity: u32) -> Made<u32> {
        self.handle.ask(&Call::Resize { cq: self.handle.id, capacity })
    }

    fn moderate(&mut self, count: u16, period: u16) -> Made<()> {
        self.handle.ask(&Call::Moderate { cq: self.handle.id, count, period })
    }
}

impl Srq for FarSrq {
    fn number(&self) -> u32 {
        self.number
    }

    fn caps(&self) -> SrqInit {
        self.caps
    }

    fn post_recv(&mut self, list: &[RecvWr<'_>]) -> Posted {
        let list = list.iter().map(Receive::from).collect();
        self.handle.ask(&Call::PostShared { srq: self.handle.id, list })
    }

    fn arm_limit(&mut self, limit: u32) -> Made<()> {
        self.handle.ask(&Call::ArmLimit { srq: self.handle.id, limit })
    }

    fn limit(&self) -> u32 {
        self.handle.ask(&Call::Limit { srq: self.handle.id })
    }
}

impl Mw for FarMw {
    fn rkey(&self) -> u32 {
        self.0.ask(&Call::WindowKey { mw: self.0.id })
    }
}

impl Post for FarQp {
    fn post_send(&mut self, list: &[SendWr<'_>]) -> Posted {
        let list = list.iter().map(Send::from).collect();
        self.handle.ask(&Call::PostSend { qp: self.handle.id, list })
    }

    fn post_recv(&mut self, list: &[RecvWr<'_>]) -> Posted {
        let list = list.iter().map(Receive::from).collect();
        self.handle.ask(&Call::PostRecv { qp: self.handle.id, list })
    }

    /// The buffers are the other process's, which destroys the queue pair before it frees them.
    fn quiesce(&mut self) -> bool {
        true
    }
}

impl Qp<FarAh> for FarQp {
    fn post_to(&mut self, to: &Destination<'_, FarAh>, list: &[SendWr<'_>]) -> Posted {
        let Destination { ah, qp_num, qkey, .. } = *to;
        let (qp, ah, list) = (self.handle.id, ah.0.id, list.iter().map(Send::from).collect());
        self.handle.ask(&Call::PostTo { qp, ah, qp_num, qkey, list })
    }

    fn number(&self) -> u32 {
        self.number
    }

    fn caps(&self) -> QpCaps {
        self.caps
    }

    fn state(&self) -> QpState {
        self.handle.ask(&Call::State { qp: self.handle.id })
    }

    fn modify(&mut self, attr: &QpAttr) -> Made<()> {
        self.handle.ask(&Call::Modify { qp: self.handle.id, attr: *attr })
    }
}

impl Identifier<Far> for FarId {
    fn call(&mut self, call: &CmCall) -> Made<()> {
        self.0.ask(&Call::Connecting { id: self.0.id, call: call.clone() })
    }

    fn take_event(&mut self) -> Made<Option<(CmEvent, Option<Self>)>> {
        type Taken = Made<Option<(CmEvent, Option<wire::Id>)>>;
        let taken: Taken = self.0.ask(&Call::NextOf { id: self.0.id });
        let request = |id| Self(Handle::new(&self.0.link, Kind::Id, id));
        taken.map(|taken| taken.map(|(event, id)| (event, id.map(request))))
    }

    fn is_readable(&self, deadline: Instant) -> bool {
        let left = deadline.saturating_duration_since(Instant::now());
        self.0.ask_waiting(&Call::IsReadable { id: self.0.id, left }, Some(left))
    }

    fn addrs(&self) -> [Option<SocketAddr>; 2] {
        self.0.ask(&Call::Addrs { id: self.0.id })
    }

    fn open(&self) -> Far {
        let id = self.0.ask(&Call::OpenOf { id: self.0.id });
        Far(Handle::new(&self.0.link, Kind::Device, id))
    }

    fn modify(&mut self, qp: &mut FarQp, to: QpState) -> Made<()> {
        self.0.ask(&Call::ModifyBy { id: self.0.id, qp: qp.handle.id, to })
    }
}
