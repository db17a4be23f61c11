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
    OwnedRegion, Port, ProtectionDomain, QpAttr, QpCaps, QpState, QueuePair, RegisterError,
};

use crate::device::{
    Access, Attr, Caps, Cq, Destroy, Device, Limits, Mr, Qp, QpInit, Refusal, State,
};

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

impl Device for Verbs {
    type Pd = ProtectionDomain;
    type Mr = OwnedRegion;
    type Channel = CompletionChannel;
    type Cq = verbs::Cq;
    type Qp = VerbsQp;

    fn open() -> Self {
        let context = match env::var("VERBS_DEVICE") {
            Ok(name) => Context::open(&name),
            Err(_) => Context::open_first(),
        };
        let context = context.expect("there is a device");
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
            max_inline: Caps::SMALL.max_inline,
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
        pd.allocate(len, rights(access)).map_err(|error| match error {
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
        let QpInit { send_cq, recv_cq, sq_sig_all, caps } = *init;
        let Caps { max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline } = caps;
        let caps = QpCaps { max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline };
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

impl Destroy for ProtectionDomain {
    fn destroy(self) -> Result<(), Self> {
        Self::destroy(self).map_err(|in_use| in_use.handle)
    }
}

impl Destroy for CompletionChannel {
    fn destroy(self) -> Result<(), Self> {
        Self::destroy(self).map_err(|in_use| in_use.handle)
    }
}

impl Destroy for verbs::Cq {
    fn destroy(self) -> Result<(), Self> {
        Self::destroy(self).map_err(|in_use| in_use.handle)
    }
}

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

    fn caps(&self) -> Caps {
        let QpCaps { max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline } =
            self.qp.caps();
        Caps { max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline }
    }

    fn state(&self) -> State {
        let state = self.qp.state().expect("the device tells");
        let known = State::ALL.into_iter().find(|known| *known as u32 == state.0);
        known.unwrap_or_else(|| panic!("{state} is no state of the specification"))
    }

    fn modify(&mut self, attr: &Attr) -> Result<(), Refusal> {
        self.qp.modify(&attributes(attr, &self.port)).map_err(|_| Refusal::Invalid)
    }
}

impl Mr for OwnedRegion {
    fn addr(&self) -> u64 {
        self.addr()
    }

    fn lkey(&self) -> u32 {
        self.lkey()
    }

    fn rkey(&self) -> u32 {
        self.rkey()
    }

    fn read(&self, offset: usize, to: &mut [u8]) {
        self.read(offset, to).expect("it is inside");
    }

    fn write(&self, offset: usize, from: &[u8]) {
        self.write(offset, from).expect("it is inside");
    }
}

/// The same rights: the numbers are the header's on both sides.
const fn rights(access: Access) -> verbs::Access {
    verbs::Access::from_bits_retain(access.bits())
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

fn attributes(attr: &Attr, port: &Port) -> QpAttr {
    let state = |state: State| QpState(state as u32);
    let same_port = |_| AddressVector::of(port, port.gid(), port.lid());
    let mut to = QpAttr::new();
    macro_rules! give {
        ($($field:ident => $setter:ident $(by $translate:expr)?;)+) => {$(
            if let Some(value) = attr.$field {
                to = to.$setter($($translate)?(value));
            }
        )+};
    }
    give! {
        state => state by state;
        cur_state => cur_state by state;
        sqd_async_notify => en_sqd_async_notify;
        access => access by rights;
        pkey_index => pkey_index;
        port => port;
        av => av by same_port;
        path_mtu => path_mtu;
        dest_qp_num => dest_qp_num;
        rq_psn => rq_psn;
        sq_psn => sq_psn;
        max_dest_rd_atomic => max_dest_rd_atomic;
        max_rd_atomic => max_rd_atomic;
        min_rnr_timer => min_rnr_timer;
        timeout => timeout;
        retry_cnt => retry_cnt;
        rnr_retry => rnr_retry;
    }
    to
}
