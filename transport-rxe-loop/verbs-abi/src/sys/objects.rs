//! What the handles of a program point to, the open device with its functions, work requests, and events: each refers
//! to the others.

use core::ffi::{c_int, c_uint, c_void};

use libc::{pthread_cond_t, pthread_mutex_t};

use super::device::ibv_device;
use super::numbers::{ibv_mw_type, ibv_qp_state, ibv_qp_type, ibv_wr_opcode};
use super::{Unsupported, ibv_event_type, ibv_sge, ibv_wc};

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

    struct ibv_pd {
        context: *mut ibv_context,
        handle: u32,
    }

    struct ibv_mr {
        context: *mut ibv_context,
        pd: *mut ibv_pd,
        addr: *mut c_void,
        length: usize,
        handle: u32,
        lkey: u32,
        rkey: u32,
    }

    struct ibv_mw {
        context: *mut ibv_context,
        pd: *mut ibv_pd,
        rkey: u32,
        handle: u32,
        r#type: ibv_mw_type,
    }

    struct ibv_ah {
        context: *mut ibv_context,
        pd: *mut ibv_pd,
        handle: u32,
    }

    struct ibv_srq {
        context: *mut ibv_context,
        srq_context: *mut c_void,
        pd: *mut ibv_pd,
        handle: u32,
        mutex: pthread_mutex_t,
        cond: pthread_cond_t,
        events_completed: u32,
    }

    struct ibv_qp {
        context: *mut ibv_context,
        qp_context: *mut c_void,
        pd: *mut ibv_pd,
        send_cq: *mut ibv_cq,
        recv_cq: *mut ibv_cq,
        srq: *mut ibv_srq,
        handle: u32,
        qp_num: u32,
        state: ibv_qp_state,
        qp_type: ibv_qp_type,
        mutex: pthread_mutex_t,
        cond: pthread_cond_t,
        events_completed: u32,
    }

    struct ibv_comp_channel {
        context: *mut ibv_context,
        fd: c_int,
        refcnt: c_int,
    }

    struct ibv_cq {
        context: *mut ibv_context,
        channel: *mut ibv_comp_channel,
        cq_context: *mut c_void,
        handle: u32,
        cqe: c_int,
        mutex: pthread_mutex_t,
        cond: pthread_cond_t,
        comp_events_completed: u32,
        async_events_completed: u32,
    }

    union ibv_async_event_element = "__typeof__(((struct ibv_async_event *)0)->element)" {
        cq: *mut ibv_cq,
        qp: *mut ibv_qp,
        srq: *mut ibv_srq,
        wq: *mut c_void,
        port_num: c_int,
    }

    struct ibv_async_event {
        element: ibv_async_event_element,
        event_type: ibv_event_type,
        padding: u32,
    }

    struct ibv_mw_bind_info {
        mr: *mut ibv_mr,
        addr: u64,
        length: u64,
        mw_access_flags: c_uint,
    }

    struct ibv_mw_bind {
        wr_id: u64,
        send_flags: c_uint,
        bind_info: ibv_mw_bind_info,
    }

    struct ibv_data_buf {
        addr: *mut c_void,
        length: usize,
    }

    struct ibv_send_wr_rdma = "__typeof__(((struct ibv_send_wr *)0)->wr.rdma)" {
        remote_addr: u64,
        rkey: u32,
    }

    struct ibv_send_wr_atomic = "__typeof__(((struct ibv_send_wr *)0)->wr.atomic)" {
        remote_addr: u64,
        compare_add: u64,
        swap: u64,
        rkey: u32,
    }

    struct ibv_send_wr_ud = "__typeof__(((struct ibv_send_wr *)0)->wr.ud)" {
        ah: *mut ibv_ah,
        remote_qpn: u32,
        remote_qkey: u32,
    }

    union ibv_send_wr_wr = "__typeof__(((struct ibv_send_wr *)0)->wr)" {
        rdma: ibv_send_wr_rdma,
        atomic: ibv_send_wr_atomic,
        ud: ibv_send_wr_ud,
    }

    struct ibv_send_wr_qp_type = "__typeof__(((struct ibv_send_wr *)0)->qp_type.xrc)" {
        remote_srqn: u32,
    }

    struct ibv_send_wr_bind_mw = "__typeof__(((struct ibv_send_wr *)0)->bind_mw)" {
        mw: *mut ibv_mw,
        rkey: u32,
        bind_info: ibv_mw_bind_info,
    }

    struct ibv_send_wr {
        wr_id: u64,
        next: *mut ibv_send_wr,
        sg_list: *mut ibv_sge,
        num_sge: c_int,
        opcode: ibv_wr_opcode,
        send_flags: c_uint,
        /// Immediate data in network byte order, or `invalidate_rkey` in this machine's.
        imm_data: u32,
        wr: ibv_send_wr_wr,
        qp_type: ibv_send_wr_qp_type,
        /// Shares its place with `tso`.
        bind_mw: ibv_send_wr_bind_mw,
    }

    struct ibv_recv_wr {
        wr_id: u64,
        next: *mut ibv_recv_wr,
        sg_list: *mut ibv_sge,
        num_sge: c_int,
    }
}
