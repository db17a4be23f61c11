//! Queue pairs and completion queues that carry the functions to post and to poll with.

use core::ffi::{c_int, c_uint, c_void};

use libc::{pthread_cond_t, pthread_mutex_t};

use super::objects::{
    ibv_ah, ibv_comp_channel, ibv_context, ibv_data_buf, ibv_mw, ibv_mw_bind_info, ibv_qp,
};
use super::{Unsupported, ibv_sge, ibv_wc_opcode, ibv_wc_status};

/// A function of a queue pair.
macro_rules! of_qp {
    ($($argument:ty),* $(=> $result:ty)?) => {
        Option<unsafe extern "C" fn(*mut ibv_qp_ex $(, $argument)*) $(-> $result)?>
    };
}

/// A function of a completion queue.
macro_rules! of_cq {
    ($($argument:ty),* $(=> $result:ty)?) => {
        Option<unsafe extern "C" fn(*mut ibv_cq_ex $(, $argument)*) $(-> $result)?>
    };
}

structures! {
    struct ibv_qp_ex in AtEnd {
        qp_base: ibv_qp,
        comp_mask: u64,
        wr_id: u64,
        wr_flags: c_uint,
        /// rkey, remote address, compare, swap.
        wr_atomic_cmp_swp: of_qp!(u32, u64, u64, u64),
        /// rkey, remote address, what to add.
        wr_atomic_fetch_add: of_qp!(u32, u64, u64),
        /// Window, the key that it is to have, what it opens on.
        wr_bind_mw: of_qp!(*mut ibv_mw, u32, *const ibv_mw_bind_info),
        /// rkey.
        wr_local_inv: of_qp!(u32),
        /// rkey, remote address.
        wr_rdma_read: of_qp!(u32, u64),
        /// rkey, remote address.
        wr_rdma_write: of_qp!(u32, u64),
        /// rkey, remote address, immediate data in network byte order.
        wr_rdma_write_imm: of_qp!(u32, u64, u32),
        wr_send: of_qp!(),
        /// Immediate data in network byte order.
        wr_send_imm: of_qp!(u32),
        /// rkey.
        wr_send_inv: of_qp!(u32),
        /// Header, its length, largest segment.
        wr_send_tso: of_qp!(*mut c_void, u16, u16),
        /// Address, queue pair number, queue key.
        wr_set_ud_addr: of_qp!(*mut ibv_ah, u32, u32),
        /// Number of a shared receive queue.
        wr_set_xrc_srqn: of_qp!(u32),
        /// Bytes, how many.
        wr_set_inline_data: of_qp!(*mut c_void, usize),
        /// How many pieces, pieces.
        wr_set_inline_data_list: of_qp!(usize, *const ibv_data_buf),
        /// lkey, address, length.
        wr_set_sge: of_qp!(u32, u64, u32),
        /// How many pieces, pieces.
        wr_set_sge_list: of_qp!(usize, *const ibv_sge),
        wr_start: of_qp!(),
        wr_complete: of_qp!(=> c_int),
        wr_abort: of_qp!(),
        /// rkey, remote address, eight bytes.
        wr_atomic_write: of_qp!(u32, u64, *const c_void),
    } + outside {
        /// rkey, remote address, length, `ibv_placement_type`, `ibv_selectivity_level`.
        wr_flush: of_qp!(u32, u64, usize, u8, u8),
    }

    /// What `struct ibv_wc` is made of.
    struct ibv_wc_fields = "struct ibv_wc" {
        wr_id: u64,
        status: ibv_wc_status,
        opcode: ibv_wc_opcode,
        vendor_err: u32,
        byte_len: u32,
        /// In network byte order, or `invalidated_rkey` in this machine's.
        imm_data: u32,
        qp_num: u32,
        src_qp: u32,
        wc_flags: c_uint,
        pkey_index: u16,
        slid: u16,
        sl: u8,
        dlid_path_bits: u8,
    }

    struct ibv_poll_cq_attr {
        comp_mask: u32,
    }

    struct ibv_cq_ex in AtEnd {
        context: *mut ibv_context,
        channel: *mut ibv_comp_channel,
        cq_context: *mut c_void,
        handle: u32,
        cqe: c_int,
        mutex: pthread_mutex_t,
        cond: pthread_cond_t,
        comp_events_completed: u32,
        async_events_completed: u32,
        comp_mask: u32,
        status: ibv_wc_status,
        wr_id: u64,
        start_poll: of_cq!(*mut ibv_poll_cq_attr => c_int),
        next_poll: of_cq!(=> c_int),
        end_poll: of_cq!(),
        read_opcode: of_cq!(=> ibv_wc_opcode),
        read_vendor_err: of_cq!(=> u32),
        read_byte_len: of_cq!(=> u32),
        /// Immediate data in network byte order, or the invalidated rkey in this machine's.
        read_imm_data: of_cq!(=> u32),
        read_qp_num: of_cq!(=> u32),
        read_src_qp: of_cq!(=> u32),
        read_wc_flags: of_cq!(=> c_uint),
        read_slid: of_cq!(=> u32),
        read_sl: of_cq!(=> u8),
        read_dlid_path_bits: of_cq!(=> u8),
        read_completion_ts: of_cq!(=> u64),
        read_cvlan: of_cq!(=> u16),
        read_flow_tag: of_cq!(=> u32),
        read_tm_info: Unsupported,
        read_completion_wallclock_ns: of_cq!(=> u64),
    }
}
