//! Real verbs as a [`Device`]: a translation, which decides nothing.
//!
//! The environment's `VERBS_DEVICE` names the device; otherwise it is the first that there is. Two ends are
//! queue pairs of the same port, which find each other by its address.
//!
//! ```no_run
//! use verify::device::{Cq, Device};
//! use verify::verbs::Verbs;
//!
//! let device = Verbs::open();
//! assert!(device.create_cq(16, None).unwrap().capacity() >= 16);
//! ```

use std::env;
use std::thread;
use std::time::Duration;

use cq_core::async_event::AsyncEvent;
use cq_core::transport::{AsyncEvents, EventError, Post, PostError};
use cq_core::wc::Wc;
use cq_core::wr::{RecvWr, SendWr};
use transport_verbs::{
    self as verbs, AddressHandle, AddressVector, CapacityError, CompletionChannel, Context,
    DeviceError, GlobalRoute, ModerateError, OpenError, OwnedRegion, Port, ProtectionDomain,
    QpState, QueuePair, RegisterError, SharedReceiveQueue,
};

use crate::device::{
    self, Absent, Access, Address, Attr, Cq, Destination, Device, Limits, Qp, QpCaps, QpInit,
    Refusal, SrqInit, State,
};
use crate::same_words::same_words;

/// ENOMEM, whatever else the number may mean.
const ENOMEM: i32 = 12;

/// A device of libibverbs, and its first port.
#[derive(Debug)]
pub struct Verbs {
    context: Context,
    port: Port,
}

/// A queue pair, with the port that it and its peer are on.
#[derive(Debug)]
pub struct VerbsQp {
    qp: QueuePair,
    port: Port,
}

/// Whether there is the device.
///
/// # Errors
/// It can't be opened: in words for the user.
pub fn check() -> Result<(), OpenError> {
    open().map(drop)
}

fn open() -> Result<Context, OpenError> {
    match env::var("VERBS_DEVICE") {
        Ok(name) => Context::open(&name),
        Err(_) => Context::open_first(),
    }
}

impl Device for Verbs {
    type Pd = ProtectionDomain;
    type Mr = OwnedRegion;
    type Channel = CompletionChannel;
    type Cq = verbs::Cq;
    type Srq = SharedReceiveQueue;
    type Ah = AddressHandle;
    // The binding has no way to bind one.
    type Mw = Absent;
    type Qp = VerbsQp;

    fn open() -> Self {
        let context = open().expect("there is a device");
        let port = context.port(1).expect("it has a port");
        Self { context, port }
    }

    fn limits(&self) -> Limits {
        let most = self.context.attributes();
        Limits {
            max_cqe: most.max_cqe,
            max_qp_wr: most.max_qp_wr,
            max_sge: most.max_sge,
            // No device tells. So many are taken everywhere.
            max_inline: device::SMALL_CAPS.max_inline,
            max_rd_atomic: most.max_qp_init_rd_atom,
            max_srq_wr: most.max_srq_wr,
            max_srq_sge: most.max_srq_sge,
        }
    }

    fn alloc_pd(&self) -> ProtectionDomain {
        self.context.alloc_pd().expect("there are domains left")
    }

    fn register(
        &self,
        pd: &ProtectionDomain,
        len: usize,
        access: Access,
    ) -> Result<OwnedRegion, Refusal> {
        pd.allocate(len, access).map_err(|error| match error {
            RegisterError::NoMemory { .. } => Refusal::NoMemory,
            RegisterError::Refused(error) => refusal(&error),
            _ => Refusal::Invalid,
        })
    }

    fn create_channel(&self) -> CompletionChannel {
        self.context.create_channel().expect("there are descriptors left")
    }

    fn create_cq(
        &self,
        capacity: u32,
        channel: Option<&CompletionChannel>,
    ) -> Result<verbs::Cq, Refusal> {
        self.context.create_cq(capacity, channel).map_err(|error| unfit(&error))
    }

    fn create_cq_ignoring_overrun(
        &self,
        _: u32,
        _: Option<&CompletionChannel>,
    ) -> Result<verbs::Cq, Refusal> {
        Err(Refusal::Unsupported) // it takes an extended call, which the binding misses
    }

    fn create_srq(
        &self,
        pd: &ProtectionDomain,
        init: &SrqInit,
    ) -> Result<SharedReceiveQueue, Refusal> {
        pd.create_srq(init).map_err(|error| refusal(&error))
    }

    fn create_qp(
        &self,
        pd: &ProtectionDomain,
        init: &QpInit<'_, verbs::Cq, SharedReceiveQueue>,
    ) -> Result<VerbsQp, Refusal> {
        let QpInit { qp_type, send_cq, recv_cq, srq, caps, sq_sig_all } = *init;
        let init = verbs::QpInit { qp_type, send_cq, recv_cq, srq, caps, sq_sig_all };
        let qp = pd.create_qp(&init).map_err(|error| refusal(&error))?;
        Ok(VerbsQp { qp, port: self.port.clone() })
    }

    fn create_ah(&self, pd: &ProtectionDomain, to: Address) -> Result<AddressHandle, Refusal> {
        let port = &self.port;
        let route = GlobalRoute {
            gid: port.gid(),
            sgid_index: port.gid_index(),
            hop_limit: 64,
            traffic_class: 0,
            flow_label: 0,
        };
        let there = AddressVector {
            port: to.port,
            lid: port.lid(),
            sl: 0,
            route: to.global.then_some(route),
        };
        pd.create_ah(&there).map_err(|error| refusal(&error))
    }

    fn ah_from_wc(
        &self,
        pd: &ProtectionDomain,
        wc: &Wc,
        grh: &[u8; 40],
    ) -> Result<AddressHandle, Refusal> {
        pd.ah_from_wc(&self.port, wc, grh).map_err(|error| refusal(&error))
    }

    fn alloc_mw(&self, _: &ProtectionDomain) -> Result<Absent, Refusal> {
        Err(Refusal::Unsupported)
    }

    fn pause(&self) {
        thread::sleep(Duration::from_micros(50));
    }
}

impl AsyncEvents for Verbs {
    fn take_async_event(&mut self) -> Result<Option<AsyncEvent>, EventError> {
        self.context.take_async_event()
    }
}

same_words!(verbs, AddressVector, limit, |error| refusal(&error));

impl Cq for verbs::Cq {
    fn capacity(&self) -> u32 {
        self.capacity()
    }

    fn resize(&mut self, capacity: u32) -> Result<u32, Refusal> {
        self.resize(capacity).map_err(|error| unfit(&error))
    }

    fn moderate(&mut self, count: u16, period: u16) -> Result<(), Refusal> {
        self.moderate(count, period).map_err(|error| match error {
            ModerateError::Refused(error) => refusal(&error),
            _ => Refusal::Unsupported,
        })
    }
}

impl Post for VerbsQp {
    fn post_send(&mut self, list: &[SendWr<'_>]) -> Result<(), PostError> {
        self.qp.post_send(list)
    }

    fn post_recv(&mut self, list: &[RecvWr<'_>]) -> Result<(), PostError> {
        self.qp.post_recv(list)
    }
}

impl Qp<AddressHandle> for VerbsQp {
    fn post_to(
        &mut self,
        to: &Destination<'_, AddressHandle>,
        list: &[SendWr<'_>],
    ) -> Result<(), PostError> {
        self.qp.to(to).post_send(list)
    }

    fn number(&self) -> u32 {
        self.qp.number()
    }

    fn caps(&self) -> QpCaps {
        self.qp.caps()
    }

    fn state(&self) -> State {
        let state = self.qp.state().expect("the device tells");
        let known = State::ALL.into_iter().find(|known| *known as u32 == state.0);
        known.unwrap_or_else(|| panic!("{state} is no state of the specification"))
    }

    fn modify(&mut self, attr: &Attr) -> Result<(), Refusal> {
        let port = &self.port;
        let same_port = |_| AddressVector::of(port, port.gid(), port.lid());
        let attributes = attributes(attr, |state| QpState(state as u32), same_port);
        self.qp.modify(&attributes).map_err(|_| Refusal::Invalid)
    }
}

fn limit(srq: &SharedReceiveQueue) -> u32 {
    srq.limit().expect("the device tells")
}

fn unfit(error: &CapacityError) -> Refusal {
    match error {
        CapacityError::Refused(error) => refusal(error),
        _ => Refusal::Invalid,
    }
}

fn refusal(error: &DeviceError) -> Refusal {
    if error.errno() == ENOMEM { Refusal::NoMemory } else { Refusal::Invalid }
}
