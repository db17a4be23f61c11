//! What a device can do at most.

use std::ffi::c_int;

use cq_core::foreign_number;
use rdma_sys::ibv_device_attr_ex;

foreign_number! {
    /// `enum ibv_atomic_cap`: among whom COMP_SWAP and FETCH_ADD are one step. Any number is legal (C3).
    AtomicCap {
        /// There are no atomics.
        NONE = 0, "no atomics";
        /// Among the queue pairs of the device.
        HCA = 1, "atomic among the queue pairs of the device";
        /// Among everybody who reaches the memory.
        GLOB = 2, "atomic among everybody who reaches the memory";
    }
}

impl std::fmt::Display for AtomicCap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.text().unwrap_or("unknown"))
    }
}

/// What the device can do at most: `struct ibv_device_attr`, and of `ibv_device_attr_ex` what serves here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceAttr {
    /// Queue pairs.
    pub max_qp: u32,
    /// Completion queues.
    pub max_cq: u32,
    /// Memory regions.
    pub max_mr: u32,
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
    /// Requests of a send or receive queue.
    pub max_qp_wr: u32,
    /// Pieces of a request.
    pub max_sge: u32,
    /// Requests of a shared receive queue.
    pub max_srq_wr: u32,
    /// Pieces of a request of a shared receive queue.
    pub max_srq_sge: u32,
    /// READs and atomics of the peer that a queue pair may have under way.
    pub max_qp_rd_atom: u8,
    /// READs and atomics of its own that a queue pair may have under way.
    pub max_qp_init_rd_atom: u8,
    /// Among whom atomics are atomic.
    pub atomic_cap: AtomicCap,
    /// Ports; they are numbered from 1.
    pub phys_port_cnt: u8,
    /// Completions that one event can be [moderated](crate::Cq::moderate) to stand for; 0 where there is no
    /// moderation.
    pub max_cq_count: u16,
    /// Microseconds that an event can be moderated to wait.
    pub max_cq_period: u16,
}

impl DeviceAttr {
    pub(crate) fn new(attr: &ibv_device_attr_ex) -> Self {
        let basic = &attr.orig_attr;
        Self {
            max_qp: count(basic.max_qp),
            max_cq: count(basic.max_cq),
            max_mr: count(basic.max_mr),
            max_pd: count(basic.max_pd),
            max_ah: count(basic.max_ah),
            max_srq: count(basic.max_srq),
            max_mr_size: basic.max_mr_size,
            max_cqe: count(basic.max_cqe),
            max_qp_wr: count(basic.max_qp_wr),
            max_sge: count(basic.max_sge),
            max_srq_wr: count(basic.max_srq_wr),
            max_srq_sge: count(basic.max_srq_sge),
            max_qp_rd_atom: small(basic.max_qp_rd_atom),
            max_qp_init_rd_atom: small(basic.max_qp_init_rd_atom),
            atomic_cap: AtomicCap(basic.atomic_cap),
            phys_port_cnt: basic.phys_port_cnt,
            max_cq_count: attr.cq_mod_caps.max_cq_count,
            max_cq_period: attr.cq_mod_caps.max_cq_period,
        }
    }
}

/// A count that a driver wrote; what is below 0 is none.
fn count(written: c_int) -> u32 {
    u32::try_from(written).unwrap_or(0)
}

/// A count that goes into a byte.
fn small(written: c_int) -> u8 {
    u8::try_from(written.max(0)).unwrap_or(u8::MAX)
}
