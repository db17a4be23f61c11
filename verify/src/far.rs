//! The loopback in another process as a [`Device`]: every method is a remote procedure call.
//!
//! ```no_run
//! use verify::device::{Cq, Device};
//! use verify::far::{self, Far};
//!
//! // First: this program may have been started as the far process.
//! if far::serve_if_asked().unwrap() {
//!     return;
//! }
//! let device = Far::open();
//! assert_eq!(device.create_cq(16, None).unwrap().capacity(), 16);
//! ```
//!
//! | module | owns |
//! |---|---|
//! | `link` | the far process, and calls to it with a deadline |
//! | `wire` | calls, frames, and passing sockets to the far process |
//! | `requests` | work requests in serialized form |
//! | `handles` | handles of the objects in the far process |
//! | `serve`, `objects` | the far process: executing calls and returning their results |
//!
//! The far process runs this same program with a special argument, and exits with the process that started it. If it
//! exits before, or does not answer before the deadline, every later call to it panics with the reason, and the next
//! [`Far::open`](Device::open) starts a new one.
//!
//! Each call has a socket of its own while it lasts, so that one thread can wait for an event while others continue.

mod handles;
mod link;
mod objects;
mod requests;
mod serve;
mod wire;

use std::sync::Arc as Shared;
use std::thread;
use std::time::Duration;

use cq_core::transport::EventError;
use cq_core::wc::Wc;
use cq_verbs::async_event::AsyncEvent;
use cq_verbs::async_event::AsyncEvents;
use serde::de::DeserializeOwned;

pub use self::handles::{FarAh, FarChannel, FarCq, FarId, FarMr, FarMw, FarPd, FarQp, FarSrq};
use self::link::Link;
pub use self::link::serve_if_asked;
use self::wire::{Call, Id, Kind, NewQp};
use crate::device::{Access, Address, CqInit, Device, Limits, Made, QpInit, SrqInit};

/// A handle of an object in the far process.
#[derive(Debug)]
struct Handle {
    link: Shared<Link>,
    kind: Kind,
    id: Id,
    /// Whether the object exists.
    lives: bool,
}

impl Handle {
    fn new(link: &Shared<Link>, kind: Kind, id: Id) -> Self {
        Self { link: link.clone(), kind, id, lives: true }
    }

    fn ask<T: DeserializeOwned>(&self, call: &Call) -> T {
        self.ask_with(call, &[]).0
    }

    /// Executes a call that may wait so long.
    fn ask_waiting<T: DeserializeOwned>(&self, call: &Call, sleeps: Option<Duration>) -> T {
        let answer = self.link.ask(call, &[], sleeps);
        answer.unwrap_or_else(|why| panic!("{why}")).0
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
            // If the far process has exited, the object is gone, too. The next call reports it.
            let _ = self.link.ask::<()>(&call, &[], Some(Duration::ZERO));
        }
    }
}

/// The device `loop0`, opened in the far process.
#[derive(Debug)]
pub struct Far(Handle);

impl Far {
    fn made(&self, kind: Kind, id: Id) -> Handle {
        Handle::new(&self.0.link, kind, id)
    }

    /// Opens the device of this fabric in a new process.
    #[must_use]
    pub fn open_in(fabric: &str) -> Self {
        Self::at(Link::new(fabric))
    }

    fn at(link: Shared<Link>) -> Self {
        let opened = link.ask(&Call::Open, &[], Some(Duration::ZERO));
        let (id, _) = opened.unwrap_or_else(|why| panic!("{why}"));
        Self(Handle::new(&link, Kind::Device, id))
    }

    /// Kills the process in which the device was opened. Every later call to it panics.
    pub fn kill(&self) {
        self.0.link.kill();
    }
}

impl Device for Far {
    type Pd = FarPd;
    type Mr = FarMr;
    type Channel = FarChannel;
    type Cq = FarCq;
    type Srq = FarSrq;
    type Ah = FarAh;
    type Mw = FarMw;
    type Qp = FarQp;
    type Id = FarId;

    fn open() -> Self {
        Self::at(Link::now())
    }

    fn limits(&self) -> Limits {
        self.0.ask(&Call::Limits { device: self.0.id })
    }

    fn alloc_pd(&self) -> FarPd {
        FarPd(self.made(Kind::Pd, self.0.ask(&Call::AllocPd { device: self.0.id })))
    }

    fn register(&self, pd: &FarPd, len: usize, access: Access) -> Made<FarMr> {
        let (device, pd) = (self.0.id, pd.0.id);
        let made: Made<_> = self.0.ask(&Call::Register { device, pd, len, access });
        made.map(|(addr, lkey, rkey, id)| {
            let handle = self.made(Kind::Mr, id);
            FarMr { handle, addr, lkey, rkey }
        })
    }

    fn create_channel(&self) -> FarChannel {
        let id = self.0.ask(&Call::CreateChannel { device: self.0.id });
        FarChannel(self.made(Kind::Channel, id))
    }

    fn create_cq_with(&self, init: CqInit<'_, FarChannel>) -> Made<FarCq> {
        let CqInit { capacity, channel, ignores_overrun } = init;
        let (device, channel) = (self.0.id, channel.map(|channel| channel.0.id));
        let made: Made<_> =
            self.0.ask(&Call::CreateCq { device, capacity, channel, ignores_overrun });
        made.map(|(key, id)| FarCq { handle: self.made(Kind::Cq, id), key })
    }

    fn create_srq(&self, pd: &FarPd, init: &SrqInit) -> Made<FarSrq> {
        let (device, pd) = (self.0.id, pd.0.id);
        let made: Made<_> = self.0.ask(&Call::CreateSrq { device, pd, init: *init });
        made.map(|(number, caps, id)| {
            let handle = self.made(Kind::Srq, id);
            FarSrq { handle, number, caps }
        })
    }

    fn create_qp(&self, pd: &FarPd, init: &QpInit<'_, FarCq, FarSrq>) -> Made<FarQp> {
        let made: Made<_> = self.0.ask(&Call::CreateQp(NewQp {
            device: self.0.id,
            pd: pd.0.id,
            qp_type: init.qp_type,
            send_cq: init.send_cq.handle.id,
            recv_cq: init.recv_cq.handle.id,
            srq: init.srq.map(|srq| srq.handle.id),
            caps: init.caps,
            sq_sig_all: init.sq_sig_all,
        }));
        made.map(|(number, caps, id)| {
            let handle = self.made(Kind::Qp, id);
            FarQp { handle, number, caps }
        })
    }

    fn create_ah(&self, pd: &FarPd, to: Address) -> Made<FarAh> {
        let made: Made<_> = self.0.ask(&Call::CreateAh { device: self.0.id, pd: pd.0.id, to });
        made.map(|id| FarAh(self.made(Kind::Ah, id)))
    }

    fn ah_from_wc(&self, pd: &FarPd, wc: &Wc, grh: &[u8; 40]) -> Made<FarAh> {
        let call = Call::AhFromWc { device: self.0.id, pd: pd.0.id };
        let raw = [wc.to_bytes().as_slice(), grh].concat();
        let (made, _): (Result<_, _>, _) = self.0.ask_with(&call, &raw);
        made.map(|id| FarAh(self.made(Kind::Ah, id)))
    }

    fn alloc_mw(&self, pd: &FarPd) -> Made<FarMw> {
        let made: Made<_> = self.0.ask(&Call::AllocMw { device: self.0.id, pd: pd.0.id });
        made.map(|id| FarMw(self.made(Kind::Mw, id)))
    }

    fn create_id(&self) -> Made<FarId> {
        let made: Made<_> = self.0.ask(&Call::CreateId { device: self.0.id });
        made.map(|id| FarId(self.made(Kind::Id, id)))
    }

    fn pause(&self) {
        thread::sleep(Duration::from_micros(50));
    }
}

impl AsyncEvents for Far {
    fn take_async_event(&mut self) -> Result<Option<AsyncEvent>, EventError> {
        self.0.ask(&Call::NextAsync { device: self.0.id })
    }
}
