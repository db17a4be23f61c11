//! The extended part of an open device: the functions that came later.

use core::ffi::{c_int, c_void};

use super::Unsupported;
use super::attributes::{ibv_cq_init_attr_ex, ibv_modify_cq_attr, ibv_qp_init_attr_ex};
use super::device::{ibv_device_attr_ex, ibv_port_attr, ibv_query_device_ex_input};
use super::extended::ibv_cq_ex;
use super::objects::{ibv_context, ibv_cq, ibv_qp, ibv_srq};

/// `ibv_context::abi_compat` of a context that is inside a [`verbs_context`].
pub const VERBS_ABI_IS_EXTENDED: *mut c_void = usize::MAX as *mut c_void;

structures! {
    /// New functions go to its front; `sz` says how many of them there are.
    struct verbs_context in AtFront {
        query_port:
            Option<unsafe extern "C" fn(*mut ibv_context, u8, *mut ibv_port_attr, usize) -> c_int>,
        advise_mr: Unsupported,
        alloc_null_mr: Unsupported,
        read_counters: Unsupported,
        attach_counters_point_flow: Unsupported,
        create_counters: Unsupported,
        destroy_counters: Unsupported,
        reg_dm_mr: Unsupported,
        alloc_dm: Unsupported,
        free_dm: Unsupported,
        modify_flow_action_esp: Unsupported,
        destroy_flow_action: Unsupported,
        create_flow_action_esp: Unsupported,
        modify_qp_rate_limit: Unsupported,
        alloc_parent_domain: Unsupported,
        dealloc_td: Unsupported,
        alloc_td: Unsupported,
        modify_cq: Option<unsafe extern "C" fn(*mut ibv_cq, *mut ibv_modify_cq_attr) -> c_int>,
        post_srq_ops: Unsupported,
        destroy_rwq_ind_table: Unsupported,
        create_rwq_ind_table: Unsupported,
        destroy_wq: Unsupported,
        modify_wq: Unsupported,
        create_wq: Unsupported,
        query_rt_values: Unsupported,
        create_cq_ex: Option<
            unsafe extern "C" fn(*mut ibv_context, *mut ibv_cq_init_attr_ex) -> *mut ibv_cq_ex,
        >,
        /// libibverbs' own.
        r#priv: *mut c_void,
        query_device_ex: Option<
            unsafe extern "C" fn(
                *mut ibv_context,
                *const ibv_query_device_ex_input,
                *mut ibv_device_attr_ex,
                usize,
            ) -> c_int,
        >,
        ibv_destroy_flow: Unsupported,
        ABI_placeholder2: Unsupported,
        ibv_create_flow: Unsupported,
        ABI_placeholder1: Unsupported,
        open_qp: Unsupported,
        create_qp_ex:
            Option<unsafe extern "C" fn(*mut ibv_context, *mut ibv_qp_init_attr_ex) -> *mut ibv_qp>,
        get_srq_num: Option<unsafe extern "C" fn(*mut ibv_srq, *mut u32) -> c_int>,
        create_srq_ex: Unsupported,
        open_xrcd: Unsupported,
        close_xrcd: Unsupported,
        _ABI_placeholder3: u64,
        sz: usize,
        context: ibv_context,
    }
}
