//! What `<rdma/rdma_cma.h>` and `<infiniband/verbs.h>` declare and this library shares with C programs: made by bindgen
//! from the headers of rdma-core 44, on 64-bit Linux, and here what is cq-core's, or in newer headers only.
//!
//! Enumerations are integers: programs write them, so any number is legal. A member of a union without a name is in
//! `anon_1` or `anon_2`.
#![allow(
    // As C has them.
    non_camel_case_types,
    non_snake_case,
    // C programs read and write them; not every one is named by a verb.
    dead_code
)]

#[allow(missing_docs, non_upper_case_globals)]
mod generated;

// What `generated` needs of here; the types of C's numbers are for all.
pub use core::ffi::{c_char, c_int, c_uchar, c_uint, c_ulong, c_ushort, c_void};
use libc::{pthread_cond_t, pthread_mutex_t};

use core::mem::offset_of;

pub use self::generated::*;

// cq-core has them as the header has them, which transport-verbs asserts.
pub use cq_core::wc::{Wc as ibv_wc, WcOpcode as ibv_wc_opcode, WcStatus as ibv_wc_status};
pub use cq_verbs::async_event::AsyncEventType as ibv_event_type;
pub use cq_verbs::wr::Sge as ibv_sge;

const _: () = assert!(
    size_of::<ibv_wc_fields>() == size_of::<ibv_wc>()
        && align_of::<ibv_wc_fields>() == align_of::<ibv_wc>()
);

// What only pointers are passed to: the device does not have it.
pub type ibv_ece = c_void;
pub type ibv_mw_bind = c_void;

/// The beginning of it: the header takes the one for the other.
pub type ibv_cq = ibv_cq_ex;

/// `ibv_context::abi_compat` of a context that is inside a [`verbs_context`].
pub const VERBS_ABI_IS_EXTENDED: *mut c_void = usize::MAX as *mut c_void;

/// How many bytes `ibv_query_port` writes as an exported function: `struct _compat_ibv_port_attr`, which is declared
/// nowhere, and was the whole structure when `port_cap_flags2` was not there yet.
pub const COMPAT_PORT_ATTR_LEN: usize = offset_of!(ibv_port_attr, port_cap_flags2);

const _: () = assert!(COMPAT_PORT_ATTR_LEN == offset_of!(ibv_port_attr, flags) + 1);

// Flags that `ibv_query_device_ex(3)` alone tells; they have no `IBV_` names.
pub const IB_UVERBS_DEVICE_FLUSH_GLOBAL: u64 = 1 << 38;
pub const IB_UVERBS_DEVICE_FLUSH_PERSISTENT: u64 = 1 << 39;
pub const IB_UVERBS_DEVICE_ATOMIC_WRITE: u64 = 1 << 40;

/// Operations that newer headers have.
pub const IBV_WR_FLUSH: ibv_wr_opcode = 14;
pub const IBV_QP_EX_WITH_FLUSH: u32 = 1 << 11;

/// Events and flags that newer headers have.
pub const RDMA_CM_EVENT_ADDRINFO_RESOLVED: rdma_cm_event_type = 16;
pub const RDMA_CM_EVENT_ADDRINFO_ERROR: rdma_cm_event_type = 17;
pub const RDMA_CM_EVENT_USER: rdma_cm_event_type = 18;
pub const RAI_SA: u32 = 0x10;
pub const RAI_DNS: u32 = 0x20;

// What a newer `ibv_mr_init_attr` has set.
pub const IBV_REG_MR_MASK_IOVA: u64 = 1 << 0;
pub const IBV_REG_MR_MASK_ADDR: u64 = 1 << 1;
pub const IBV_REG_MR_MASK_FD: u64 = 1 << 2;
pub const IBV_REG_MR_MASK_FD_OFFSET: u64 = 1 << 3;
pub const IBV_REG_MR_MASK_DMAH: u64 = 1 << 4;
pub const IBV_REG_MR_MASK_BUF: u64 = 1 << 5;

/// What `ibv_reg_mr_ex(3)` takes, as its first header has it.
#[repr(C)]
pub struct ibv_mr_init_attr {
    pub length: usize,
    pub access: c_int,
    pub comp_mask: u64,
    pub iova: u64,
    pub addr: *mut c_void,
    pub fd: c_int,
    pub fd_offset: u64,
    pub dmah: *mut c_void,
}

/// The same, as later headers have it.
#[repr(C)]
pub struct ibv_mr_init_attr_and_buf {
    pub attr: ibv_mr_init_attr,
    pub buf: *mut ibv_buf,
}

const _: () = assert!(
    offset_of!(ibv_mr_init_attr, iova) == 24
        && offset_of!(ibv_mr_init_attr, fd_offset) == 48
        && offset_of!(ibv_mr_init_attr_and_buf, buf) == 64
);

/// A buffer, of which programs know only the address.
#[repr(C)]
pub struct ibv_buf {
    pub pd: *mut ibv_pd,
}

/// A queue pair, with the function that newer headers have behind those of 44.
#[repr(C)]
pub struct ibv_qp_ex_and_flush {
    pub qp: ibv_qp_ex,
    /// rkey, remote address, length, `ibv_placement_type`, `ibv_selectivity_level`.
    pub wr_flush: Option<unsafe extern "C" fn(*mut ibv_qp_ex, u32, u64, usize, u8, u8)>,
}
