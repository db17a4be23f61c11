//! The attributes of a device.

use std::ffi::c_int;

use cq_verbs::setup::{AtomicCap, DeviceAttr};
use rdma_sys::ibv_device_attr_ex;

/// The attributes, as libibverbs returned them, with those of the context.
pub fn of_raw(attr: &ibv_device_attr_ex, vectors: c_int) -> DeviceAttr {
    let basic = &attr.orig_attr;
    let mut to = DeviceAttr::default();
    macro_rules! counts {
        ($($field:ident),+) => { $(to.$field = count(basic.$field);)+ };
    }
    counts!(max_qp, max_cq, max_mr, max_mw, max_pd, max_ah, max_srq);
    counts!(max_cqe, max_qp_wr, max_sge, max_srq_wr, max_srq_sge);
    to.max_mr_size = basic.max_mr_size;
    to.max_cq_count = attr.cq_mod_caps.max_cq_count;
    to.max_cq_period = attr.cq_mod_caps.max_cq_period;
    to.max_qp_rd_atom = small(basic.max_qp_rd_atom);
    to.max_qp_init_rd_atom = small(basic.max_qp_init_rd_atom);
    to.atomic_cap = AtomicCap(basic.atomic_cap);
    to.mem_window_type_2b = basic.device_cap_flags & MEM_WINDOW_TYPE_2B != 0;
    to.num_comp_vectors = count(vectors);
    to.phys_port_cnt = basic.phys_port_cnt;
    to
}

/// `IBV_DEVICE_MEM_WINDOW_TYPE_2B`.
const MEM_WINDOW_TYPE_2B: u32 = 1 << 24;

/// A count that a driver wrote; what is below 0 is none.
fn count(written: c_int) -> u32 {
    u32::try_from(written).unwrap_or(0)
}

/// A count that goes into a byte.
fn small(written: c_int) -> u8 {
    u8::try_from(written.max(0)).unwrap_or(u8::MAX)
}
