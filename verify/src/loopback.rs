//! The loopback of one process as a [`Device`], and as one that imitates Soft-RoCE: a translation, which decides
//! nothing.
//!
//! ```
//! use verify::device::{Cq, Device};
//! use verify::loopback::Loopback;
//!
//! let device = Loopback::open();
//! assert_eq!(device.create_cq(16, None).unwrap().capacity(), 16);
//! ```

use std::env;
use std::process;
use std::thread;
use std::time::Duration;

use cq_core::async_event::AsyncEvent;
use cq_core::causes::Causes;
use cq_core::transport::{AsyncEvents, EventError, Post, PostError};
use cq_core::wc::Wc;
use cq_core::wr::SendWr;
use transport_rxe_loop::{
    self as rxe, AddressHandle, AddressVector, CompletionChannel, Context, CqInit, CreateError,
    GlobalRoute, MemoryWindow, OpenOptions, OwnedRegion, ProtectionDomain, QpState, QueuePair,
    RegisterError, ResizeError, SharedReceiveQueue,
};

use crate::device::{
    Access, Address, Attr, Cq, Destination, Device, Limits, Mw, Qp, QpCaps, QpInit, Refusal,
    SrqInit, State,
};
use crate::same_words::same_words;

/// What names the fabric in the environment.
pub const FABRIC: &str = "RXE_LOOP_FABRIC";

/// The fabric that this process uses: the one that its environment names, or one that no other uses.
#[must_use]
pub fn fabric() -> String {
    env::var(FABRIC).unwrap_or_else(|_| format!("verify-{}", process::id()))
}

/// The device `loop0`, in the process' [fabric](fabric()), or in one beside it where it is like Soft-RoCE.
#[derive(Debug)]
pub struct Opening<const LIKE_RXE: bool>(Context);

/// The device as it is.
pub type Loopback = Opening<false>;

/// The device as Soft-RoCE.
pub type LikeRxe = Opening<true>;

impl Loopback {
    /// Opens it in this fabric.
    #[must_use]
    pub fn open_in(fabric: &str) -> Self {
        Self::with(&OpenOptions::new().fabric(fabric))
    }
}

impl<const LIKE_RXE: bool> Opening<LIKE_RXE> {
    fn with(options: &OpenOptions) -> Self {
        Self(options.open("loop0").unwrap_or_else(|error| panic!("{}", Causes(&error))))
    }
}

impl<const LIKE_RXE: bool> Device for Opening<LIKE_RXE> {
    type Pd = ProtectionDomain;
    type Mr = OwnedRegion;
    type Channel = CompletionChannel;
    type Cq = rxe::Cq;
    type Srq = SharedReceiveQueue;
    type Ah = AddressHandle;
    type Mw = MemoryWindow;
    type Qp = QueuePair;

    fn open() -> Self {
        Self::with(&match LIKE_RXE {
            false => OpenOptions::new().fabric(&fabric()),
            true => OpenOptions::new().fabric(&format!("{}-like-rxe", fabric())).imitate_rxe(),
        })
    }

    fn limits(&self) -> Limits {
        let most = self.0.attributes();
        Limits {
            max_cqe: most.max_cqe,
            max_qp_wr: most.max_qp_wr,
            max_sge: most.max_sge,
            max_inline: most.max_inline,
            max_rd_atomic: most.max_qp_init_rd_atom,
            max_srq_wr: most.max_srq_wr,
            max_srq_sge: most.max_srq_sge,
        }
    }

    fn alloc_pd(&self) -> ProtectionDomain {
        self.0.alloc_pd()
    }

    fn register(
        &self,
        pd: &ProtectionDomain,
        len: usize,
        access: Access,
    ) -> Result<OwnedRegion, Refusal> {
        pd.allocate(len, access).map_err(unregistered)
    }

    fn create_channel(&self) -> CompletionChannel {
        self.0.create_channel().expect("there are channels left")
    }

    fn create_cq(
        &self,
        capacity: u32,
        channel: Option<&CompletionChannel>,
    ) -> Result<rxe::Cq, Refusal> {
        self.0.create_cq(capacity, channel).map_err(refusal)
    }

    fn create_cq_ignoring_overrun(
        &self,
        capacity: u32,
        channel: Option<&CompletionChannel>,
    ) -> Result<rxe::Cq, Refusal> {
        let init = CqInit { capacity, channel, ignore_overrun: true };
        self.0.create_cq_with(&init).map_err(refusal)
    }

    fn create_srq(
        &self,
        pd: &ProtectionDomain,
        init: &SrqInit,
    ) -> Result<SharedReceiveQueue, Refusal> {
        pd.create_srq(init).map_err(refusal)
    }

    fn create_ah(&self, pd: &ProtectionDomain, to: Address) -> Result<AddressHandle, Refusal> {
        let here = self.0.attributes();
        let (hop_limit, traffic_class, flow_label) = (64, 0, 0);
        let route =
            GlobalRoute { gid: here.gid, sgid_index: 0, hop_limit, traffic_class, flow_label };
        let route = to.global.then_some(route);
        let there = AddressVector { port: to.port, lid: here.lid, sl: 0, route };
        pd.create_ah(&there).map_err(|_| Refusal::Invalid)
    }

    fn ah_from_wc(
        &self,
        pd: &ProtectionDomain,
        wc: &Wc,
        grh: &[u8; 40],
    ) -> Result<AddressHandle, Refusal> {
        pd.ah_from_wc(wc, grh).map_err(|_| Refusal::Invalid)
    }

    fn alloc_mw(&self, pd: &ProtectionDomain) -> Result<MemoryWindow, Refusal> {
        pd.alloc_mw().map_err(unregistered)
    }

    fn create_qp(
        &self,
        pd: &ProtectionDomain,
        init: &QpInit<'_, rxe::Cq, SharedReceiveQueue>,
    ) -> Result<QueuePair, Refusal> {
        let QpInit { qp_type, send_cq, recv_cq, srq, caps, sq_sig_all } = *init;
        let init = rxe::QpInit { qp_type, send_cq, recv_cq, srq, caps, sq_sig_all };
        pd.create_qp(&init).map_err(refusal)
    }

    fn pause(&self) {
        thread::sleep(Duration::from_micros(50));
    }
}

impl<const LIKE_RXE: bool> AsyncEvents for Opening<LIKE_RXE> {
    fn take_async_event(&mut self) -> Result<Option<AsyncEvent>, EventError> {
        self.0.take_async_event()
    }
}

same_words!(rxe, u8, rxe::SharedReceiveQueue::limit, |_| Refusal::Invalid);

impl Cq for rxe::Cq {
    fn capacity(&self) -> u32 {
        self.capacity()
    }

    fn resize(&mut self, capacity: u32) -> Result<u32, Refusal> {
        self.resize(capacity).map_err(|error| match error {
            ResizeError::Refused(error) => refusal(error),
            _ => Refusal::Invalid,
        })
    }

    fn moderate(&mut self, count: u16, period: u16) -> Result<(), Refusal> {
        self.moderate(count, period).map_err(|_| Refusal::Invalid)
    }
}

impl Mw for MemoryWindow {
    fn rkey(&self) -> u32 {
        self.rkey()
    }
}

impl Qp<AddressHandle> for QueuePair {
    fn post_to(
        &mut self,
        to: &Destination<'_, AddressHandle>,
        list: &[SendWr<'_>],
    ) -> Result<(), PostError> {
        self.to(to).post_send(list)
    }

    fn number(&self) -> u32 {
        self.number()
    }

    fn caps(&self) -> QpCaps {
        self.caps()
    }

    fn state(&self) -> State {
        State::ALL[self.state().0 as usize]
    }

    fn modify(&mut self, attr: &Attr) -> Result<(), Refusal> {
        let state = |state: State| QpState(state as u32);
        self.modify(&attributes(attr, state, |port| port)).map_err(|_| Refusal::Invalid)
    }
}

fn refusal(error: CreateError) -> Refusal {
    match error {
        CreateError::Zero(_) | CreateError::TooMany { .. } | CreateError::OwnReceives => {
            Refusal::Invalid
        }
        _ => Refusal::NoMemory,
    }
}

fn unregistered(error: RegisterError) -> Refusal {
    match error {
        RegisterError::TableFull { .. } | RegisterError::NoMemory { .. } => Refusal::NoMemory,
        _ => Refusal::Invalid,
    }
}
