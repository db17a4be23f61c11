//! The loopback device in user space.
//!
//! ```
//! use bench::transport::Transport;
//! use bench::transport::loopback::Loopback;
//!
//! let transport = Loopback::open()?;
//! assert_eq!(transport.device(), "loop0");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! It lies in the fabric that `RXE_LOOP_FABRIC` names, or in one of this process' own, so that nothing else
//! disturbs what is measured. Who starts a process that is to reach it passes
//! [`environment`](Transport::environment) on.

use std::env;
use std::process;

use transport_rxe_loop::{
    AtomicCap, CompletionChannel, Context, Cq, MemoryRegion, OpenError, OpenOptions, OwnedRegion,
    ProtectionDomain, QpCaps, QpInit, QueuePair,
};

use cq_core::wr::{RemoteAddr, Sge};

use super::heap::{Heap, Messages, Registration};
use super::same_words::{self, CONNECT};
use super::{Attempt, End, Limits, Memory, MemoryKind, Needs, SetUpError, Transport};

/// The loopback's device, open.
#[derive(Debug)]
pub struct Loopback {
    context: Context,
    domain: ProtectionDomain,
}

impl Loopback {
    /// The name of the device: there is one.
    pub const DEVICE: &'static str = "loop0";

    /// Opens the device.
    ///
    /// # Errors
    /// There is no memory for it, or too many have opened it.
    pub fn open() -> Result<Self, OpenError> {
        Self::named(Self::DEVICE)
    }

    /// Opens the device of this name.
    ///
    /// # Errors
    /// There is none, no memory for it, or too many have opened it.
    pub fn named(device: &str) -> Result<Self, OpenError> {
        let options = OpenOptions::new();
        let context = match own_fabric() {
            Some(name) => options.fabric(&name).open(device)?,
            None => options.open(device)?,
        };
        let domain = context.alloc_pd();
        Ok(Self { context, domain })
    }
}

/// Names the fabric.
const FABRIC: &str = "RXE_LOOP_FABRIC";

/// The fabric of this process' own, unless another one is named.
fn own_fabric() -> Option<String> {
    env::var_os(FABRIC).is_none().then(|| format!("bench-{}", process::id()))
}

impl Transport for Loopback {
    const NAME: &'static str = "loop";

    fn device(&self) -> &str {
        self.context.name()
    }

    fn environment(&self) -> Option<(&'static str, String)> {
        own_fabric().map(|name| (FABRIC, name))
    }

    fn limits(&self) -> Limits {
        let device = self.context.attributes();
        Limits {
            message: device.max_msg_size,
            requests: device.max_qp_wr.min(device.max_cqe / 2),
            atomics: device.atomic_cap != AtomicCap::None,
        }
    }

    fn address(&self, pair: &QueuePair) -> Result<Vec<u8>, SetUpError> {
        Ok(pair.number().to_le_bytes().to_vec())
    }

    fn connect(&self, pair: &mut QueuePair, peer: &[u8]) -> Result<(), SetUpError> {
        let number = peer.try_into().map(u32::from_le_bytes).attempt(CONNECT)?;
        pair.connect(number).attempt(CONNECT)
    }

    same_words::end!();
}

same_words::memory!();
