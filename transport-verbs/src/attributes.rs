//! The attributes of a device.

use std::ffi::c_int;

use cq_core::setup::{AtomicCap, DeviceAttr};
use rdma_sys::ibv_device_attr_ex;

/// The attributes, as libibverbs returned them.
pub fn of_raw(attr: &ibv_device_attr_ex) -> DeviceAttr {
    let basic = &attr.orig_attr;
    let mut to = DeviceAttr::new();
    to.max_qp = count(basic.max_qp);
    to.max_cq = count(basic.max_cq);
    to.max_mr = count(basic.max_mr);
    to.max_mw = count(basic.max_mw);
    to.max_pd = count(basic.max_pd);
    to.max_ah = count(basic.max_ah);
    to.max_srq = count(basic.max_srq);
    to.max_mr_size = basic.max_mr_size;
    to.max_cqe = count(basic.max_cqe);
    to.max_cq_count = attr.cq_mod_caps.max_cq_count;
    to.max_cq_period = attr.cq_mod_caps.max_cq_period;
    to.max_qp_wr = count(basic.max_qp_wr);
    to.max_sge = count(basic.max_sge);
    to.max_srq_wr = count(basic.max_srq_wr);
    to.max_srq_sge = count(basic.max_srq_sge);
    to.max_qp_rd_atom = small(basic.max_qp_rd_atom);
    to.max_qp_init_rd_atom = small(basic.max_qp_init_rd_atom);
    to.atomic_cap = AtomicCap(basic.atomic_cap);
    to.mem_window_type_2b = basic.device_cap_flags & MEM_WINDOW_TYPE_2B != 0;
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
