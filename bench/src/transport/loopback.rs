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

use transport_rxe_loop::{
    AtomicCap, CompletionChannel, Context, Cq, MemoryRegion, OpenError, OwnedRegion,
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
        let context = Context::open(device)?;
        let domain = context.alloc_pd();
        Ok(Self { context, domain })
    }
}

impl Transport for Loopback {
    const NAME: &'static str = "loop";

    fn device(&self) -> &str {
        self.context.name()
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
