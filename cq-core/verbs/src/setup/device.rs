//! The attributes of a device.

cq_core::foreign_number! {
    /// `enum ibv_atomic_cap`: the scope in which COMP_SWAP and FETCH_ADD are atomic. Any number is legal
    /// ([C3](cq_core::contract#c3)).
    ///
    /// ```
    /// use cq_verbs::setup::{AtomicCap, DeviceAttr};
    ///
    /// /// Whether the program's own atomic instructions may be used on the same memory.
    /// fn is_atomic_to_all(attr: &DeviceAttr) -> bool {
    ///     attr.atomic_cap == AtomicCap::GLOB
    /// }
    /// assert!(!is_atomic_to_all(&DeviceAttr::default()));
    /// assert_eq!(AtomicCap::HCA.to_string(), "atomic among the queue pairs of the device");
    /// ```
    #[derive(Default)]
    AtomicCap("ibv_atomic_cap"), "unknown" {
        /// Atomics are not supported.
        NONE = 0, "no atomics";
        /// Among the queue pairs of the device.
        HCA = 1, "atomic among the queue pairs of the device";
        /// Among all accesses to the memory.
        GLOB = 2, "atomic among all accesses to the memory";
    }
}

/// The device's limits and capabilities: `struct ibv_device_attr`, and some of `ibv_device_attr_ex`. A `max_` field is a
/// maximum; what a device does not report is 0. Transports start from the default, which supports nothing.
///
/// ```
/// use cq_verbs::setup::{AtomicCap, DeviceAttr};
///
/// let mut attr = DeviceAttr::default();
/// attr.max_cqe = 4096;
/// assert_eq!((attr.atomic_cap, attr.max_qp), (AtomicCap::NONE, 0));
/// ```
#[doc(alias("ibv_device_attr", "ibv_device_attr_ex"))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct DeviceAttr {
    /// Queue pairs.
    pub max_qp: u32,
    /// Completion queues.
    pub max_cq: u32,
    /// Memory regions.
    pub max_mr: u32,
    /// Memory windows.
    pub max_mw: u32,
    /// Protection domains.
    pub max_pd: u32,
    /// Address handles.
    pub max_ah: u32,
    /// Shared receive queues.
    pub max_srq: u32,
    /// Bytes of a memory region.
    pub max_mr_size: u64,
    /// Entries of a completion queue.
    pub max_cqe: u32,
    /// Completions per event, for moderation; 0 if it is not supported.
    pub max_cq_count: u16,
    /// Microseconds that moderation delays an event.
    pub max_cq_period: u16,
    /// Work requests of a send or receive queue.
    pub max_qp_wr: u32,
    /// SGEs of a work request.
    pub max_sge: u32,
    /// Inline bytes of a work request; `None` if the device does not report it.
    pub max_inline: Option<u32>,
    /// Receives of a shared receive queue.
    pub max_srq_wr: u32,
    /// SGEs of a receive of a shared receive queue.
    pub max_srq_sge: u32,
    /// Outstanding READs and atomics of a queue pair's peer.
    pub max_qp_rd_atom: u8,
    /// Outstanding READs and atomics of a queue pair.
    pub max_qp_init_rd_atom: u8,
    /// The scope in which atomics are atomic.
    pub atomic_cap: AtomicCap,
    /// Whether memory windows of type 2B are supported: bound to a queue pair, within its protection domain.
    pub mem_window_type_2b: bool,
    /// Completion vectors. They are numbered from 0.
    pub num_comp_vectors: u32,
    /// Ports. They are numbered from 1.
    pub phys_port_cnt: u8,
}
