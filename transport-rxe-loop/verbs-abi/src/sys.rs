//! What `<infiniband/verbs.h>` declares and this library shares with C programs: made by bindgen from the header of
//! libibverbs 44, on 64-bit Linux, and here what is cq-core's, or in newer headers only.
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
pub use core::ffi::{c_char, c_int, c_uint, c_void};
use libc::{pthread_cond_t, pthread_mutex_t};

use core::mem::{offset_of, zeroed};

pub use self::generated::*;

// cq-core has them as the header has them, which transport-verbs asserts.
pub use cq_core::async_event::AsyncEventType as ibv_event_type;
pub use cq_core::wc::{Wc as ibv_wc, WcOpcode as ibv_wc_opcode, WcStatus as ibv_wc_status};
pub use cq_core::wr::Sge as ibv_sge;

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

/// An operation that newer headers have.
pub const IBV_QP_EX_WITH_FLUSH: u32 = 1 << 11;

/// A queue pair, with the function that newer headers have behind those of 44.
#[repr(C)]
pub struct ibv_qp_ex_and_flush {
    pub qp: ibv_qp_ex,
    /// rkey, remote address, length, `ibv_placement_type`, `ibv_selectivity_level`.
    pub wr_flush: Option<unsafe extern "C" fn(*mut ibv_qp_ex, u32, u64, usize, u8, u8)>,
}

impl ibv_async_event_element {
    /// What it is about, if it is about any of these.
    pub const fn pointers(&self) -> (*mut ibv_cq, *mut ibv_qp, *mut ibv_srq) {
        // SAFETY: memory of C's, whose bytes have values; any bits are a raw pointer, which is looked up and not followed.
        unsafe { (self.cq, self.qp, self.srq) }
    }
}

impl ibv_send_wr {
    /// Immediate data in network byte order, or `invalidate_rkey` in this machine's.
    #[inline]
    pub const fn imm_or_rkey(&self) -> u32 {
        // SAFETY: as above.
        unsafe { self.anon_1.imm_data }
    }

    /// For binding a window.
    pub const fn bind_mw(&self) -> &ibv_send_wr_bind_mw {
        // SAFETY: as above.
        unsafe { &self.anon_2.bind_mw }
    }
}

impl ibv_send_wr_wr {
    /// For a WRITE, a READ, and an atomic WRITE.
    #[inline]
    pub const fn rdma(&self) -> &ibv_send_wr_rdma {
        // SAFETY: as above.
        unsafe { &self.rdma }
    }

    /// For an atomic.
    #[inline]
    pub const fn atomic(&self) -> &ibv_send_wr_atomic {
        // SAFETY: as above.
        unsafe { &self.atomic }
    }

    /// For a datagram.
    pub const fn ud(&self) -> &ibv_send_wr_ud {
        // SAFETY: as above.
        unsafe { &self.ud }
    }
}

impl ibv_gid {
    /// All of it, in network byte order.
    pub const fn bytes(&self) -> [u8; 16] {
        // SAFETY: bytes are all of it, of any value.
        unsafe { self.raw }
    }
}

/// What C finds the functions of an open device, and of its objects, in.
pub struct Functions {
    pub context: verbs_context,
    pub cq: ibv_cq_ex,
    pub qp: ibv_qp_ex_and_flush,
}

// SAFETY: functions; the other pointers are null, and nobody writes here.
unsafe impl Sync for Functions {}

/// Gives structures a value that is 0 in every byte.
macro_rules! zeroed {
    ($($name:ident)+) => {
        $(impl $name {
            /// Zero, in every byte.
            // SAFETY: its fields are numbers, raw pointers, optional functions, what the C library has, and
            // structures of these; all of them may be zero. The compiler refuses a constant that is no value.
            pub const ZEROED: Self = unsafe { zeroed() };
        })+
    };
}

zeroed! {
    ibv_ah_attr ibv_async_event ibv_context ibv_context_ops ibv_cq_ex ibv_cq_init_attr_ex ibv_device
    ibv_device_attr ibv_device_attr_ex ibv_gid_entry ibv_global_route ibv_grh ibv_port_attr ibv_qp
    ibv_qp_attr ibv_qp_ex ibv_qp_ex_and_flush ibv_qp_init_attr ibv_qp_init_attr_ex ibv_recv_wr
    ibv_send_wr ibv_srq ibv_wc_fields verbs_context
}
