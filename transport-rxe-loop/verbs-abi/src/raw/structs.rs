//! Structures of C's as values: zeroed ones, members of unions, tables of functions.

use core::mem::zeroed;

use crate::sys::*;

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
    ibv_device_attr ibv_device_attr_ex ibv_global_route ibv_port_attr ibv_qp ibv_qp_attr ibv_qp_ex
    ibv_qp_ex_and_flush ibv_qp_init_attr_ex ibv_sa_path_rec ibv_srq ibv_wc_fields rdma_addrinfo rdma_cm_id sockaddr_storage
    verbs_context
}

// What programs alone fill in.
#[cfg(test)]
zeroed! {
    ibv_gid_entry ibv_grh ibv_qp_init_attr ibv_recv_wr ibv_send_wr ibv_srq_init_attr_ex rdma_conn_param
}
