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

use cq_core::setup::Gid;

use crate::api::attr::MAX_RD_ATOMIC;
use crate::api::channel::CompletionChannel;
use crate::api::cq::{Cq, CqInit};
use crate::api::limits::{Limits, OtherLimits};
use crate::api::pd::ProtectionDomain;
use crate::api::srq::MAX_SRQ_WR;
use crate::completion::channel::EventChannel;
use crate::completion::queue::MAX_CQE;
use crate::engine::requester::MTU;
use crate::engine::ring::{MAX_INLINE, MAX_MSG_SIZE, MAX_QP_WR};
use crate::error::CreateError;
use crate::lifecycle::Device;
use crate::memory::sge::MAX_SGE;
use crate::policy::faults::{Injected, Injector};

pub(crate) const NAME: &str = "loop0";

/// The names of the devices that there are.
#[must_use]
pub fn devices() -> Vec<&'static str> {
    vec![NAME]
}

/// An open device. Everybody who opens it in the same [fabric](crate::OpenOptions#fabrics) shares it: queue pairs of
/// different contexts, and of different processes, connect by their numbers. Its [asynchronous
/// events](cq_core::transport::AsyncEvents) are those of what was made through it, and a clone is the same
/// opening: each event goes to one of them.
///
/// A process is attached to a fabric from the first opening of it to the end of the process.
#[derive(Clone, Debug)]
pub struct Context {
    device: &'static Device,
    /// Where its asynchronous events are read. Everything made through it keeps it.
    events: Arc<EventChannel>,
    other_limits: Option<OtherLimits>,
}

/// `enum ibv_atomic_cap`: among whom COMP_SWAP, FETCH_ADD and atomic writes are one step.
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

/// Which memory windows a device has; among `enum ibv_device_cap_flags`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MemoryWindows {
    /// Those of type 2 that belong to a queue pair and its protection domain; none of type 1.
    Type2B,
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
    /// Memory windows, one less than there are regions: no window has the place of the first. Regions and windows
    /// together are no more than `max_mr`.
    pub max_mw: u32,
    /// Which kind of windows there is.
    pub memory_windows: MemoryWindows,
    /// Shared receive queues.
    pub max_srq: u32,
    /// Completion channels and open contexts.
    pub max_channels: u32,
    /// Entries of a completion queue.
    pub max_cqe: u32,
    /// Completions that one event can be [moderated](crate::Cq::moderate) to stand for.
    pub max_cq_count: u16,
    /// Microseconds that an event can be moderated to wait.
    pub max_cq_period: u16,
    /// Requests of a send or receive queue.
    pub max_qp_wr: u32,
    /// Pieces of a request.
    pub max_sge: u32,
    /// Receives of a shared receive queue.
    pub max_srq_wr: u32,
    /// Pieces of a receive of a shared receive queue.
    pub max_srq_sge: u32,
    /// Inline bytes of a request.
    pub max_inline: u32,
    /// Bytes of a message.
    pub max_msg_size: u64,
    /// Bytes of a packet of the device's port: of a datagram, which is one.
    pub max_mtu: u32,
    /// Local identifier of the port.
    pub lid: u16,
    /// Global identifier of the port.
    pub gid: Gid,
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
    pub(super) fn new(
        device: &'static Device,
        events: Arc<EventChannel>,
        asked: Option<Limits>,
    ) -> Self {
        let other_limits = asked.and_then(|asked| asked.others_than(device.shm.shape()));
        Self { device, events, other_limits }
    }

    /// Where its asynchronous events are read.
    pub(crate) const fn events(&self) -> &Arc<EventChannel> {
        &self.events
    }

    /// What it has opened.
    pub(crate) const fn device(&self) -> &'static Device {
        self.device
    }

    /// The device's name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        NAME
    }

    /// The device's limits, which are those of its fabric. Queues also share its [bytes](crate#limits).
    #[must_use]
    pub fn attributes(&self) -> DeviceAttr {
        let limits = Limits::from(self.device.shm.shape());
        DeviceAttr {
            max_qp: limits.queue_pairs,
            max_cq: limits.completion_queues,
            max_mr: limits.memory_regions,
            max_mw: limits.memory_regions - 1,
            memory_windows: MemoryWindows::Type2B,
            max_srq: limits.shared_receive_queues,
            max_channels: limits.channels,
            max_cqe: MAX_CQE,
            max_cq_count: u16::MAX,
            max_cq_period: u16::MAX,
            max_qp_wr: MAX_QP_WR,
            max_sge: MAX_SGE as u32,
            max_srq_wr: MAX_SRQ_WR,
            max_srq_sge: MAX_SGE as u32,
            max_inline: MAX_INLINE,
            max_msg_size: MAX_MSG_SIZE,
            max_mtu: MTU,
            lid: self.device.engine.port.lid,
            gid: self.device.engine.port.gid,
            max_qp_rd_atom: MAX_RD_ATOMIC,
            max_qp_init_rd_atom: MAX_RD_ATOMIC,
            atomic_cap: AtomicCap::Hca,
            max_processes: limits.processes,
            fabric_bytes: limits.bytes,
        }
    }

    /// What is in force, if this opening asked for [other limits](crate::OpenOptions::limits): the fabric was there, and is as
    /// the first process that opened it asked for.
    ///
    /// ```
    /// use transport_rxe_loop::{Limits, OpenOptions};
    ///
    /// let name = format!("first-{}", std::process::id());
    /// let asking = |queue_pairs| OpenOptions::new().fabric(&name).limits(Limits { queue_pairs, ..Limits::default() });
    /// let first = asking(64).open("loop0")?;
    /// assert_eq!(first.other_limits(), None);
    /// let other = asking(2048).open("loop0")?.other_limits().unwrap();
    /// assert_eq!((other.asked.queue_pairs, other.in_force.queue_pairs), (2048, 64));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn other_limits(&self) -> Option<OtherLimits> {
        self.other_limits
    }

    /// What went wrong so far in this process because it was [asked to](crate::OpenOptions::faults); `None` if nothing
    /// was asked for, or this is a forked child.
    #[must_use]
    pub fn injected(&self) -> Option<Injected> {
        self.device
            .engine
            .policy
            .faults
            .as_ref()
            .filter(|_| self.device.shm.is_ours())
            .map(Injector::injected)
    }

    /// A channel to sleep on.
    ///
    /// # Errors
    /// Too many channels, or no descriptor.
    pub fn create_channel(&self) -> Result<CompletionChannel, CreateError> {
        CompletionChannel::new(self.device)
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
        self.create_cq_with(&CqInit { capacity, channel, ignore_overrun: false })
    }

    /// A completion queue with everything that can be said of it.
    ///
    /// # Errors
    /// As for [`create_cq`](Self::create_cq).
    pub fn create_cq_with(&self, init: &CqInit<'_>) -> Result<Cq, CreateError> {
        Cq::new(self.device, &self.events, init)
    }

    /// A protection domain. A process has 16,777,216 at most: what is made in one more is refused.
    #[must_use]
    pub fn alloc_pd(&self) -> ProtectionDomain {
        ProtectionDomain::new(self.device, &self.events)
    }
}
