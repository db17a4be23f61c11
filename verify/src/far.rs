//! The loopback of another process as a [`Device`]: every call goes there and is carried out there.
//!
//! ```no_run
//! use verify::device::{Cq, Device};
//! use verify::far::{self, Far};
//!
//! // First of all: this may be the other process.
//! if far::serve_if_asked().unwrap() {
//!     return;
//! }
//! let device = Far::open();
//! assert_eq!(device.create_cq(16, None).unwrap().capacity(), 16);
//! ```
//!
//! | module | owns |
//! |---|---|
//! | `link` | the process that is the far end, asking it, and what becomes of it |
//! | `wire` | calls and frames, and wires that are handed over |
//! | `words`, `access` | cq-core's words as they go over the wire |
//! | `serve`, `objects` | the far end: answering calls by carrying them out |
//!
//! The far end is this same program, started with an argument of its own; it ends with its near end. One
//! that ends before, or does not answer in time, makes every call about it panic with the reason; what is
//! opened next is at a new one.
//!
//! Each call has a wire for itself while it lasts, so that one thread may sleep on a channel there while
//! others go on.

pub(crate) mod access;
mod link;
mod objects;
mod serve;
mod wire;
mod words;

use std::sync::Arc as Shared;
use std::thread;
use std::time::Duration;

use cq_core::async_event::AsyncEvent;
use cq_core::transport::{
    Arm, ArmError, Armed, AsyncEvents, Block, CqKey, EventError, Events, Notify, Poll, PollError,
    Post, PostError,
};
use cq_core::wc::Wc;
use cq_core::wr::{RecvWr, SendWr};
use serde::de::DeserializeOwned;

use self::link::Link;
pub use self::link::serve_if_asked;
use self::objects::WC;
use self::wire::{Call, Id, Kind};
use self::words::{Caps, Key, Receive, Refusing, Report, Said, Send, Unarmed, Unpolled, Unread};
use crate::device::{
    Access, Attr, Cq, Destroy, Device, Limits, Mr, Qp, QpCaps, QpInit, Refusal, State,
};

/// An object there.
#[derive(Debug)]
struct Handle {
    link: Shared<Link>,
    kind: Kind,
    id: Id,
    /// Whether it is still there.
    lives: bool,
}

impl Handle {
    fn new(link: &Shared<Link>, kind: Kind, id: Id) -> Self {
        Self { link: link.clone(), kind, id, lives: true }
    }

    fn ask<T: DeserializeOwned>(&self, call: &Call) -> T {
        self.ask_with(call, &[]).0
    }

    fn ask_with<T: DeserializeOwned>(&self, call: &Call, raw: &[u8]) -> (T, Vec<u8>) {
        let answer = self.link.ask(call, raw, Some(Duration::ZERO));
        answer.unwrap_or_else(|why| panic!("{why}"))
    }

    fn destroy(mut self) -> Result<(), Self> {
        self.lives = !self.ask::<bool>(&Call::Destroy { kind: self.kind, id: self.id });
        if self.lives { Err(self) } else { Ok(()) }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.lives {
            let call = Call::Drop { kind: self.kind, id: self.id };
            // Where the far end is gone, so is this; whoever asks it next is told.
            let _ = self.link.ask::<()>(&call, &[], Some(Duration::ZERO));
        }
    }
}

/// The device `loop0`, opened there.
#[derive(Debug)]
pub struct Far(Handle);

/// A protection domain there.
#[derive(Debug)]
pub struct FarPd(Handle);

/// A memory region there.
#[derive(Debug)]
pub struct FarMr {
    handle: Handle,
    addr: u64,
    lkey: u32,
    rkey: u32,
}

/// A completion channel there.
#[derive(Debug)]
pub struct FarChannel(Handle);

/// A completion queue there.
#[derive(Debug)]
pub struct FarCq {
    handle: Handle,
    key: CqKey,
}

/// A queue pair there.
#[derive(Debug)]
pub struct FarQp {
    handle: Handle,
    number: u32,
    caps: QpCaps,
}

impl Far {
    fn made(&self, kind: Kind, id: Id) -> Handle {
        Handle::new(&self.0.link, kind, id)
    }
}

impl Device for Far {
    type Pd = FarPd;
    type Mr = FarMr;
    type Channel = FarChannel;
    type Cq = FarCq;
    type Qp = FarQp;

    fn open() -> Self {
        let link = Link::now();
        let opened = link.ask(&Call::Open, &[], Some(Duration::ZERO));
        let (id, _) = opened.unwrap_or_else(|why| panic!("{why}"));
        Self(Handle::new(&link, Kind::Device, id))
    }

    fn limits(&self) -> Limits {
        self.0.ask(&Call::Limits { device: self.0.id })
    }

    fn alloc_pd(&self) -> FarPd {
        FarPd(self.made(Kind::Pd, self.0.ask(&Call::AllocPd { device: self.0.id })))
    }

    fn register(&self, pd: &FarPd, len: usize, access: Access) -> Result<FarMr, Refusal> {
        let (device, pd, access) = (self.0.id, pd.0.id, access.bits());
        let made: Result<_, _> = self.0.ask(&Call::Register { device, pd, len, access });
        made.map(|(addr, lkey, rkey, id)| {
            let handle = self.made(Kind::Mr, id);
            FarMr { handle, addr, lkey, rkey }
        })
    }

    fn create_channel(&self) -> FarChannel {
        let id = self.0.ask(&Call::CreateChannel { device: self.0.id });
        FarChannel(self.made(Kind::Channel, id))
    }

    fn create_cq(&self, capacity: u32, channel: Option<&FarChannel>) -> Result<FarCq, Refusal> {
        let (device, channel) = (self.0.id, channel.map(|channel| channel.0.id));
        let made: Result<(Key, _), _> = self.0.ask(&Call::CreateCq { device, capacity, channel });
        made.map(|(key, id)| FarCq { handle: self.made(Kind::Cq, id), key: key.into() })
    }

    fn create_qp(&self, pd: &FarPd, init: &QpInit<'_, FarCq>) -> Result<FarQp, Refusal> {
        let made: Result<(_, Caps, _), _> = self.0.ask(&Call::CreateQp {
            device: self.0.id,
            pd: pd.0.id,
            send_cq: init.send_cq.handle.id,
            recv_cq: init.recv_cq.handle.id,
            caps: init.caps.into(),
            sq_sig_all: init.sq_sig_all,
        });
        made.map(|(number, caps, id)| {
            let handle = self.made(Kind::Qp, id);
            FarQp { handle, number, caps: caps.into() }
        })
    }

    fn pause(&self) {
        thread::sleep(Duration::from_micros(50));
    }
}

impl AsyncEvents for Far {
    fn next_async(&mut self) -> Result<Option<AsyncEvent>, EventError> {
        let event: Result<Option<Report>, Unread> =
            self.0.ask(&Call::NextAsync { device: self.0.id });
        Ok(event?.map(AsyncEvent::from))
    }
}

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
    fn next(&mut self) -> Result<Option<CqKey>, EventError> {
        let event: Result<Option<Key>, Unread> = self.0.ask(&Call::Next { channel: self.0.id });
        Ok(event?.map(CqKey::from))
    }
}

impl Block for FarChannel {
    fn block(&mut self, left: &mut Option<Duration>) -> Result<bool, EventError> {
        let call = Call::Block { channel: self.0.id, left: *left };
        let answer = self.0.link.ask::<(Result<bool, Unread>, _)>(&call, &[], *left);
        let ((woken, rest), _) = answer.unwrap_or_else(|why| panic!("{why}"));
        *left = rest;
        Ok(woken?)
    }
}

impl Poll for FarCq {
    fn poll(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
        let room: Vec<u8> = out.iter().flat_map(|wc| wc.to_bytes()).collect();
        let call = Call::Poll { cq: self.handle.id };
        let (polled, room): (Result<usize, Unpolled>, _) = self.handle.ask_with(&call, &room);
        for (wc, bytes) in out.iter_mut().zip(room.chunks_exact(WC)) {
            *wc = Wc::from_bytes(bytes.try_into().expect("chunks of this size"));
        }
        Ok(polled?)
    }
}

impl Arm for FarCq {
    fn arm(&mut self, on: Notify) -> Result<Armed, ArmError> {
        let call = Call::Arm { cq: self.handle.id, on: on.into() };
        let said: Result<Said, Unarmed> = self.handle.ask(&call);
        Ok(said?.into())
    }

    fn key(&self) -> CqKey {
        self.key
    }
}

impl Cq for FarCq {
    fn capacity(&self) -> u32 {
        self.handle.ask(&Call::Capacity { cq: self.handle.id })
    }

    fn resize(&mut self, capacity: u32) -> Result<u32, Refusal> {
        self.handle.ask(&Call::Resize { cq: self.handle.id, capacity })
    }
}

impl Post for FarQp {
    fn post_send(&mut self, list: &[SendWr<'_>]) -> Result<(), PostError> {
        let list = list.iter().map(Send::from).collect();
        let said: Result<(), Refusing> =
            self.handle.ask(&Call::PostSend { qp: self.handle.id, list });
        Ok(said?)
    }

    fn post_recv(&mut self, list: &[RecvWr<'_>]) -> Result<(), PostError> {
        let list = list.iter().map(Receive::from).collect();
        let said: Result<(), Refusing> =
            self.handle.ask(&Call::PostRecv { qp: self.handle.id, list });
        Ok(said?)
    }
}

impl Qp for FarQp {
    fn number(&self) -> u32 {
        self.number
    }

    fn caps(&self) -> QpCaps {
        self.caps
    }

    fn state(&self) -> State {
        self.handle.ask(&Call::State { qp: self.handle.id })
    }

    fn modify(&mut self, attr: &Attr) -> Result<(), Refusal> {
        self.handle.ask(&Call::Modify { qp: self.handle.id, attr: *attr })
    }
}
