//! A device of libibverbs.
//!
//! ```no_run
//! use bench::transport::Transport;
//! use bench::transport::verbs::Verbs;
//!
//! let transport = Verbs::open(Some("rxe0"), None)?;
//! println!("messages of up to {} bytes", transport.limits().message);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use transport_verbs::{
    AtomicCap, CompletionChannel, Context, Cq, DeviceError, Endpoint, MemoryRegion, OpenError,
    OwnedRegion, Port, PortState, ProtectionDomain, QpCaps, QpInit, QueuePair,
};

use cq_core::wr::{RemoteAddr, Sge};

use super::heap::{Heap, Messages, Registration};
use super::same_words::{self, CONNECT};
use super::{Attempt, End, Limits, Memory, MemoryKind, Needs, SetUpError, Transport};

/// A device of libibverbs, open, and one of its ports.
#[derive(Debug)]
pub struct Verbs {
    context: Context,
    domain: ProtectionDomain,
    port: Port,
}

impl Verbs {
    /// Opens the device of this name, or the first one, on its first active port. The queue pairs go by
    /// this entry of the port's GID table, or the one that suits best.
    ///
    /// # Errors
    /// There is no such device, no active port, no such entry, or what the device said.
    pub fn open(device: Option<&str>, gid: Option<u8>) -> Result<Self, VerbsError> {
        let context = device.map_or_else(Context::open_first, Context::open)?;
        let port = active_port(&context)?;
        let port = match gid {
            Some(index) => with_gid(&context, &port, index)?,
            None => port,
        };
        let domain = context.alloc_pd()?;
        Ok(Self { context, domain, port })
    }
}

fn with_gid(context: &Context, port: &Port, index: u8) -> Result<Port, VerbsError> {
    let there: Vec<u8> = context.gids(port.number())?.iter().map(|&(index, _)| index).collect();
    if !there.contains(&index) {
        return Err(VerbsError::NoGid { device: context.name().to_owned(), index, there });
    }
    Ok(port.with_gid(index)?)
}

fn active_port(context: &Context) -> Result<Port, VerbsError> {
    let mut failure = None;
    for number in 1..=context.attributes().phys_port_cnt {
        match context.port(number) {
            Ok(port) if port.state() == PortState::ACTIVE => return Ok(port),
            Ok(_) => {}
            // One that is down may have no GID; another one may be up.
            Err(why) => failure = failure.or(Some(why)),
        }
    }
    let none = || VerbsError::NoActivePort { device: context.name().to_owned() };
    Err(failure.map_or_else(none, VerbsError::Device))
}

impl Transport for Verbs {
    const NAME: &'static str = "verbs";

    fn device(&self) -> &str {
        self.context.name()
    }

    fn limits(&self) -> Limits {
        let device = self.context.attributes();
        Limits {
            message: self.port.max_msg_size(),
            requests: device.max_qp_wr.min(device.max_cqe / 2),
            atomics: device.atomic_cap != AtomicCap::NONE,
        }
    }

    fn address(&self, pair: &QueuePair) -> Result<Vec<u8>, SetUpError> {
        Ok(pair.endpoint(&self.port).to_bytes().to_vec())
    }

    fn connect(&self, pair: &mut QueuePair, peer: &[u8]) -> Result<(), SetUpError> {
        let bytes = peer.try_into().attempt(CONNECT)?;
        let peer = Endpoint::from_bytes(bytes).attempt(CONNECT)?;
        pair.connect(&self.port, &peer).attempt(CONNECT)
    }

    same_words::end!();
}

same_words::memory!();

/// Why a device can't be had.
#[derive(Debug, thiserror::Error)]
pub enum VerbsError {
    /// It can't be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It is open, and says no.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The GID table has no such entry.
    #[error("the GID table of {device}'s port has no entry {index}: it has {there:?}")]
    NoGid {
        /// The device.
        device: String,
        /// What was asked for.
        index: u8,
        /// What there is.
        there: Vec<u8>,
    },
    /// No port of it is up.
    #[error("{device} has no active port: `rdma link` and `ibv_devinfo` show why")]
    NoActivePort {
        /// The device.
        device: String,
    },
}
