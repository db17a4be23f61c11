//! An open device: the tables of functions that the header's inline functions call.

use core::ffi::{c_int, c_void};

use libc::pthread_mutex_t;

use super::attributes::{ibv_cq_init_attr_ex, ibv_modify_cq_attr, ibv_qp_init_attr_ex};
use super::device::{ibv_device, ibv_device_attr_ex, ibv_port_attr, ibv_query_device_ex_input};
use super::extended::ibv_cq_ex;
use super::ibv_wc;
use super::numbers::ibv_mw_type;
use super::objects::{ibv_cq, ibv_mw, ibv_pd, ibv_qp, ibv_srq};
use super::work::{ibv_mw_bind, ibv_recv_wr, ibv_send_wr};

/// A function that is never there: NULL, where the header's inline functions find that it is not supported.
pub type Unsupported = Option<unsafe extern "C" fn()>;

/// `ibv_context::abi_compat` of a context that is inside a [`verbs_context`].
pub const VERBS_ABI_IS_EXTENDED: *mut c_void = usize::MAX as *mut c_void;

structures! {
    struct ibv_context_ops {
        _compat_query_device: Unsupported,
        _compat_query_port: Unsupported,
        _compat_alloc_pd: Unsupported,
        _compat_dealloc_pd: Unsupported,
        _compat_reg_mr: Unsupported,
        _compat_rereg_mr: Unsupported,
        _compat_dereg_mr: Unsupported,
        alloc_mw: Option<unsafe extern "C" fn(*mut ibv_pd, ibv_mw_type) -> *mut ibv_mw>,
        bind_mw: Option<unsafe extern "C" fn(*mut ibv_qp, *mut ibv_mw, *mut ibv_mw_bind) -> c_int>,
        dealloc_mw: Option<unsafe extern "C" fn(*mut ibv_mw) -> c_int>,
        _compat_create_cq: Unsupported,
        poll_cq: Option<unsafe extern "C" fn(*mut ibv_cq, c_int, *mut ibv_wc) -> c_int>,
        req_notify_cq: Option<unsafe extern "C" fn(*mut ibv_cq, c_int) -> c_int>,
        _compat_cq_event: Unsupported,
        _compat_resize_cq: Unsupported,
        _compat_destroy_cq: Unsupported,
        _compat_create_srq: Unsupported,
        _compat_modify_srq: Unsupported,
        _compat_query_srq: Unsupported,
        _compat_destroy_srq: Unsupported,
        post_srq_recv: Option<
            unsafe extern "C" fn(*mut ibv_srq, *mut ibv_recv_wr, *mut *mut ibv_recv_wr) -> c_int,
        >,
        _compat_create_qp: Unsupported,
        _compat_query_qp: Unsupported,
        _compat_modify_qp: Unsupported,
        _compat_destroy_qp: Unsupported,
        post_send: Option<
            unsafe extern "C" fn(*mut ibv_qp, *mut ibv_send_wr, *mut *mut ibv_send_wr) -> c_int,
        >,
        post_recv: Option<
            unsafe extern "C" fn(*mut ibv_qp, *mut ibv_recv_wr, *mut *mut ibv_recv_wr) -> c_int,
        >,
        _compat_create_ah: Unsupported,
        _compat_destroy_ah: Unsupported,
        _compat_attach_mcast: Unsupported,
        _compat_detach_mcast: Unsupported,
        _compat_async_event: Unsupported,
    }

    struct ibv_context {
        device: *mut ibv_device,
        ops: ibv_context_ops,
        cmd_fd: c_int,
        async_fd: c_int,
        num_comp_vectors: c_int,
        mutex: pthread_mutex_t,
        abi_compat: *mut c_void,
    }

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
