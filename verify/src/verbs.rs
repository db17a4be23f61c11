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
use cq_core::wr::{RecvWr, SendWr};
use transport_verbs::{
    self as verbs, AddressVector, CapacityError, CompletionChannel, Context, DeviceError,
    OpenError, OwnedRegion, Port, ProtectionDomain, QpState, QueuePair, RegisterError,
};

use crate::device::{self, Access, Attr, Cq, Device, Limits, Qp, QpCaps, QpInit, Refusal, State};
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

    fn create_qp(
        &self,
        pd: &ProtectionDomain,
        init: &QpInit<'_, verbs::Cq>,
    ) -> Result<VerbsQp, Refusal> {
        let QpInit { send_cq, recv_cq, caps, sq_sig_all } = *init;
        let init = verbs::QpInit { recv_cq, caps, sq_sig_all, ..verbs::QpInit::new(send_cq) };
        let qp = pd.create_qp(&init).map_err(|error| refusal(&error))?;
        Ok(VerbsQp { qp, port: self.port.clone() })
    }

    fn pause(&self) {
        thread::sleep(Duration::from_micros(50));
    }
}

impl AsyncEvents for Verbs {
    fn next_async(&mut self) -> Result<Option<AsyncEvent>, EventError> {
        self.context.next_async()
    }
}

same_words!(verbs, AddressVector);

impl Cq for verbs::Cq {
    fn capacity(&self) -> u32 {
        self.capacity()
    }

    fn resize(&mut self, capacity: u32) -> Result<u32, Refusal> {
        self.resize(capacity).map_err(|error| unfit(&error))
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

impl Qp for VerbsQp {
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

fn unfit(error: &CapacityError) -> Refusal {
    match error {
        CapacityError::Refused(error) => refusal(error),
        _ => Refusal::Invalid,
    }
}

fn refusal(error: &DeviceError) -> Refusal {
    if error.errno() == ENOMEM { Refusal::NoMemory } else { Refusal::Invalid }
}
