//! The loopback of one process as a [`Device`]: a translation, which decides nothing.
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
use cq_core::transport::{AsyncEvents, EventError};
use transport_rxe_loop::{
    self as rxe, CompletionChannel, Context, CreateError, OpenOptions, OwnedRegion,
    ProtectionDomain, QpState, QueuePair, RegisterError, ResizeError,
};

use crate::device::{Access, Attr, Cq, Device, Limits, Qp, QpCaps, QpInit, Refusal, State};
use crate::same_words::same_words;

/// What names the fabric in the environment.
pub const FABRIC: &str = "RXE_LOOP_FABRIC";

/// The fabric that this process uses: the one that its environment names, or one that no other uses.
#[must_use]
pub fn fabric() -> String {
    env::var(FABRIC).unwrap_or_else(|_| format!("verify-{}", process::id()))
}

/// The device `loop0`, in the process' [fabric](fabric()).
#[derive(Debug)]
pub struct Loopback(Context);

impl Device for Loopback {
    type Pd = ProtectionDomain;
    type Mr = OwnedRegion;
    type Channel = CompletionChannel;
    type Cq = rxe::Cq;
    type Qp = QueuePair;

    fn open() -> Self {
        let opened = OpenOptions::new().fabric(&fabric()).open("loop0");
        Self(opened.unwrap_or_else(|error| panic!("{error}")))
    }

    fn limits(&self) -> Limits {
        let most = self.0.attributes();
        Limits {
            max_cqe: most.max_cqe,
            max_qp_wr: most.max_qp_wr,
            max_sge: most.max_sge,
            max_inline: most.max_inline,
            max_rd_atomic: most.max_qp_init_rd_atom,
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
        pd.allocate(len, access).map_err(|error| match error {
            RegisterError::TableFull { .. } | RegisterError::NoMemory { .. } => Refusal::NoMemory,
            _ => Refusal::Invalid,
        })
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

    fn create_qp(
        &self,
        pd: &ProtectionDomain,
        init: &QpInit<'_, rxe::Cq>,
    ) -> Result<QueuePair, Refusal> {
        let QpInit { send_cq, recv_cq, caps, sq_sig_all } = *init;
        let usual = rxe::QpInit::new(send_cq);
        pd.create_qp(&rxe::QpInit { recv_cq, caps, sq_sig_all, ..usual }).map_err(refusal)
    }

    fn pause(&self) {
        thread::sleep(Duration::from_micros(50));
    }
}

impl AsyncEvents for Loopback {
    fn next_async(&mut self) -> Result<Option<AsyncEvent>, EventError> {
        self.0.next_async()
    }
}

same_words!(rxe, u8);

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
}

impl Qp for QueuePair {
    fn number(&self) -> u32 {
        self.number()
    }

    fn caps(&self) -> QpCaps {
        self.caps()
    }

    fn state(&self) -> State {
        State::ALL[self.state() as usize]
    }

    fn modify(&mut self, attr: &Attr) -> Result<(), Refusal> {
        let state = |state: State| QpState::ALL[state as usize];
        self.modify(&attributes(attr, state, |port| port)).map_err(|_| Refusal::Invalid)
    }
}

fn refusal(error: CreateError) -> Refusal {
    match error {
        CreateError::Zero(_) | CreateError::TooMany { .. } => Refusal::Invalid,
        _ => Refusal::NoMemory,
    }
}
