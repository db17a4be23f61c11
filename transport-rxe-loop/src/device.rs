//! The device: opening it, what it can do at most, and what is made of it.
//!
//! ```
//! use transport_rxe_loop::{Context, devices};
//!
//! assert_eq!(devices(), ["loop0"]);
//! let context = Context::open("loop0")?;
//! let cq = context.create_cq(100, None)?;
//! assert_eq!(cq.capacity(), 100);
//! assert!(Context::open("mlx5_0").is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::sync::Arc;

use crate::bell::Bell;
use crate::channel::CompletionChannel;
use crate::cq::Cq;
use crate::error::{CreateError, OpenError};
use crate::fabric::Fabric;
use crate::memory::MAX_SGE;
use crate::open::OpenOptions;
use crate::pd::ProtectionDomain;

pub(crate) const NAME: &str = "loop0";

/// Entries of a completion queue at most.
pub(crate) const MAX_CQE: u32 = 1 << 16;
/// Requests of a queue at most.
pub(crate) const MAX_QP_WR: u32 = 1 << 14;
/// Inline bytes of a request at most.
pub(crate) const MAX_INLINE: u32 = 256;
/// READs and atomics under way at most, either way.
pub(crate) const MAX_RD_ATOMIC: u8 = 16;
/// Bytes of a message at most.
pub(crate) const MAX_MSG_SIZE: u64 = 1 << 31;

/// The names of the devices that there are.
#[must_use]
pub fn devices() -> Vec<&'static str> {
    vec![NAME]
}

/// An open device. Everybody who opens it in the same [fabric](OpenOptions#fabrics) shares it: queue pairs of
/// different contexts, and of different processes, connect by their numbers. Its [asynchronous
/// events](cq_core::transport::AsyncEvents) are those of what was made through it, and a clone is the same
/// opening: each event goes to one of them.
///
/// A process is attached to a fabric from the first opening of it to the end of the process.
#[derive(Clone, Debug)]
pub struct Context {
    fabric: &'static Fabric,
    /// Where its asynchronous events are read. Everything made through it keeps it.
    bell: Arc<Bell>,
}

/// `enum ibv_atomic_cap`: among whom COMP_SWAP and FETCH_ADD are one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum AtomicCap {
    /// There are no atomics.
    None = 0,
    /// Among the queue pairs of the device, of all processes. No specification promises more; here, who uses
    /// atomic instructions on memory [of the device's](crate::ProtectionDomain::allocate) is among them, too.
    /// On other memory only those of its own process are, and only among what that does itself: another one
    /// reads the eight bytes and writes them, under a lock that the processes share. Memory that is registered
    /// in two ways, or shared by other means than the device, counts as different memory.
    Hca = 1,
    /// Among everybody who reaches the memory.
    Global = 2,
}

/// What the device can do at most: `struct ibv_device_attr`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceAttr {
    /// Queue pairs.
    pub max_qp: u32,
    /// Completion queues.
    pub max_cq: u32,
    /// Memory regions.
    pub max_mr: u32,
    /// Completion channels and open contexts.
    pub max_channels: u32,
    /// Entries of a completion queue.
    pub max_cqe: u32,
    /// Requests of a send or receive queue.
    pub max_qp_wr: u32,
    /// Pieces of a request.
    pub max_sge: u32,
    /// Inline bytes of a request.
    pub max_inline: u32,
    /// Bytes of a message.
    pub max_msg_size: u64,
    /// READs and atomics of the peer that a queue pair may have under way.
    pub max_qp_rd_atom: u8,
    /// READs and atomics of its own that a queue pair may have under way.
    pub max_qp_init_rd_atom: u8,
    /// Among whom atomics are atomic.
    pub atomic_cap: AtomicCap,
    /// Processes that have the fabric open.
    pub max_processes: u32,
    /// Bytes of the fabric: tables, rings and queues of all processes.
    pub fabric_bytes: u64,
}

impl Context {
    /// Opens a device by its name, in the fabric that the environment names: [`OpenOptions`] has more.
    ///
    /// # Errors
    /// As for [`OpenOptions::open`].
    pub fn open(name: &str) -> Result<Self, OpenError> {
        OpenOptions::new().open(name)
    }

    pub(crate) const fn new(fabric: &'static Fabric, bell: Arc<Bell>) -> Self {
        Self { fabric, bell }
    }

    pub(crate) const fn bell(&self) -> &Arc<Bell> {
        &self.bell
    }

    /// The device's name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        NAME
    }

    /// The device's limits, which are those of its fabric. Queues also share its [bytes](crate#limits).
    #[must_use]
    pub const fn attributes(&self) -> DeviceAttr {
        let limits = self.fabric.limits();
        DeviceAttr {
            max_qp: limits.queue_pairs,
            max_cq: limits.completion_queues,
            max_mr: limits.memory_regions,
            max_channels: limits.channels,
            max_cqe: MAX_CQE,
            max_qp_wr: MAX_QP_WR,
            max_sge: MAX_SGE as u32,
            max_inline: MAX_INLINE,
            max_msg_size: MAX_MSG_SIZE,
            max_qp_rd_atom: MAX_RD_ATOMIC,
            max_qp_init_rd_atom: MAX_RD_ATOMIC,
            atomic_cap: AtomicCap::Hca,
            max_processes: limits.processes,
            fabric_bytes: limits.bytes,
        }
    }

    /// A channel to sleep on.
    ///
    /// # Errors
    /// Too many channels, or no descriptor.
    pub fn create_channel(&self) -> Result<CompletionChannel, CreateError> {
        CompletionChannel::new(self.fabric)
    }

    /// A completion queue that holds `capacity` completions (O1). With a channel it can be armed.
    ///
    /// # Errors
    /// A capacity of 0 or past the device's limit, too many queues, no memory.
    pub fn create_cq(
        &self,
        capacity: u32,
        channel: Option<&CompletionChannel>,
    ) -> Result<Cq, CreateError> {
        Cq::new(&self.bell, capacity, channel)
    }

    /// A protection domain.
    #[must_use]
    pub fn alloc_pd(&self) -> ProtectionDomain {
        ProtectionDomain::new(&self.bell)
    }
}
