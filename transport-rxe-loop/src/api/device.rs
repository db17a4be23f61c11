//! Contexts: the open device, its attributes, and the objects made from it.

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

/// The names of the devices: `loop0`.
#[must_use]
pub fn devices() -> Vec<&'static str> {
    vec![NAME]
}

/// An open device. All contexts of a [fabric](crate::OpenOptions#fabrics) share it: queue pairs of different contexts
/// and processes connect by their numbers. A context receives the [asynchronous events](Self::wait_async) of the
/// objects that were made through it. Clones share them: each event is delivered to one of the clones.
///
/// ```
/// use transport_rxe_loop::{Context, devices};
///
/// assert_eq!(devices(), ["loop0"]);
/// let context = Context::open("loop0")?;
/// let cq = context.create_cq(100, None)?;
/// assert_eq!(cq.capacity(), 100);
/// assert!(Context::open("mlx5_0").is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A process is attached to a fabric from the first time it opens it until the process ends. The [manual](crate::manual)
/// has what several processes meet: deaths, suspension, forks.
#[derive(Clone, Debug)]
pub struct Context {
    device: &'static Device,
    /// The channel of its asynchronous events. All objects made through it keep the channel.
    events: Arc<EventChannel>,
    other_limits: Option<OtherLimits>,
}

/// `enum ibv_atomic_cap`: the scope in which COMP_SWAP, FETCH_ADD and atomic writes are atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum AtomicCap {
    /// Atomics are not supported.
    None = 0,
    /// Among the queue pairs of the device, in all processes. No specification promises more. Here, atomic instructions
    /// on memory [of the device](crate::ProtectionDomain::allocate) are included. On other memory they are included
    /// only with respect to operations that the owning process carries out itself: other processes read the eight bytes
    /// and write them back, under a lock that the processes share. Memory that is registered in two ways, or shared by
    /// other means than the device, counts as different memory.
    Hca = 1,
    /// Among all accesses to the memory.
    Global = 2,
}

/// The types of memory windows that a device supports; part of `enum ibv_device_cap_flags`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MemoryWindows {
    /// Type 2B: bound to a queue pair, within its protection domain. Type 1 is not supported.
    Type2B,
}

/// The device's limits and capabilities: `struct ibv_device_attr`. A `max_` field is a maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceAttr {
    /// Queue pairs.
    pub max_qp: u32,
    /// Completion queues.
    pub max_cq: u32,
    /// Memory regions.
    pub max_mr: u32,
    /// Memory windows: `max_mr` - 1, as no window uses the first table entry. Regions and windows share the table:
    /// together there are at most `max_mr`.
    pub max_mw: u32,
    /// The supported type of windows.
    pub memory_windows: MemoryWindows,
    /// Shared receive queues.
    pub max_srq: u32,
    /// Completion channels and open contexts.
    pub max_channels: u32,
    /// Entries of a completion queue.
    pub max_cqe: u32,
    /// Completions per event, for [moderation](crate::Cq::moderate).
    pub max_cq_count: u16,
    /// Microseconds that moderation delays an event.
    pub max_cq_period: u16,
    /// Work requests of a send or receive queue.
    pub max_qp_wr: u32,
    /// SGEs of a work request.
    pub max_sge: u32,
    /// Receives of a shared receive queue.
    pub max_srq_wr: u32,
    /// SGEs of a receive of a shared receive queue.
    pub max_srq_sge: u32,
    /// Inline bytes of a request.
    pub max_inline: u32,
    /// Bytes of a message.
    pub max_msg_size: u64,
    /// MTU of the port, in bytes: the size of a datagram.
    pub max_mtu: u32,
    /// Local identifier of the port.
    pub lid: u16,
    /// Global identifier of the port.
    pub gid: Gid,
    /// Outstanding READs and atomics of a queue pair's peer.
    pub max_qp_rd_atom: u8,
    /// Outstanding READs and atomics of a queue pair.
    pub max_qp_init_rd_atom: u8,
    /// The scope in which atomics are atomic.
    pub atomic_cap: AtomicCap,
    /// Processes attached to the fabric.
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

    /// The channel of its asynchronous events.
    pub(crate) const fn events(&self) -> &Arc<EventChannel> {
        &self.events
    }

    /// The device.
    pub(crate) const fn device(&self) -> &'static Device {
        self.device
    }

    /// The device's name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        NAME
    }

    /// The device's attributes. The limits are those of its fabric, whose [bytes](Limits::bytes) all queues share.
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

    /// The limits in force, if this context requested [other limits](crate::OpenOptions::limits). The first process
    /// that opens a fabric determines its limits.
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

    /// The [faults](crate::OpenOptions::faults) that were injected in this process so far. `None` if no faults were
    /// requested, or in a forked child.
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

    /// Creates a completion channel.
    ///
    /// # Errors
    /// There are too many channels, no descriptor is available, or this is a forked child.
    pub fn create_channel(&self) -> Result<CompletionChannel, CreateError> {
        CompletionChannel::new(self.device)
    }

    /// Creates a completion queue that holds `capacity` completions (O1). With a channel it can be armed.
    ///
    /// # Errors
    /// The capacity is 0 or exceeds the device's limit, there are too many queues, there is no memory, or the channel
    /// belongs to another fabric.
    pub fn create_cq(
        &self,
        capacity: u32,
        channel: Option<&CompletionChannel>,
    ) -> Result<Cq, CreateError> {
        self.create_cq_with(&CqInit { capacity, channel, ignore_overrun: false })
    }

    /// Creates a completion queue with all attributes.
    ///
    /// # Errors
    /// As for [`create_cq`](Self::create_cq).
    pub fn create_cq_with(&self, init: &CqInit<'_>) -> Result<Cq, CreateError> {
        Cq::new(self.device, &self.events, init)
    }

    /// Allocates a protection domain. A process has at most 16,777,216; creating objects in a further one fails.
    #[must_use]
    pub fn alloc_pd(&self) -> ProtectionDomain {
        ProtectionDomain::new(self.device, &self.events)
    }
}
