//! What is declared in newer headers than those of [`sys`](crate::sys), and not supported.

use super::unsupported;
use crate::errno::{minus_one, pointer, status};
use crate::sys::*;

/// An object that there is none of.
type Nothing = c_void;

fixed! {
    /// `ibv_alloc_dmah(3)`.
    ibv_alloc_dmah(*mut ibv_context, *mut Nothing) -> *mut Nothing = pointer(unsupported());
    /// `ibv_dealloc_dmah(3)`.
    ibv_dealloc_dmah(*mut Nothing) -> c_int = status(unsupported());
    /// `ibv_dm_export_dmabuf_fd(3)`.
    ibv_dm_export_dmabuf_fd(*mut Nothing) -> c_int = minus_one(unsupported());

    /// `ibv_query_comp_cntr_caps(3)`.
    _ibv_query_comp_cntr_caps(*mut ibv_context, *mut Nothing, usize) -> c_int =
        status(unsupported());
    /// `ibv_create_comp_cntr(3)`.
    ibv_create_comp_cntr(*mut ibv_context, *mut Nothing) -> *mut Nothing = pointer(unsupported());
    /// `ibv_destroy_comp_cntr(3)`.
    ibv_destroy_comp_cntr(*mut Nothing) -> c_int = status(unsupported());
    /// `ibv_set_comp_cntr(3)`.
    ibv_set_comp_cntr(*mut Nothing, u64) -> c_int = status(unsupported());
    /// `ibv_set_err_comp_cntr(3)`.
    ibv_set_err_comp_cntr(*mut Nothing, u64) -> c_int = status(unsupported());
    /// `ibv_inc_comp_cntr(3)`.
    ibv_inc_comp_cntr(*mut Nothing, u64) -> c_int = status(unsupported());
    /// `ibv_inc_err_comp_cntr(3)`.
    ibv_inc_err_comp_cntr(*mut Nothing, u64) -> c_int = status(unsupported());
    /// `ibv_read_comp_cntr(3)`.
    ibv_read_comp_cntr(*mut Nothing, *mut u64) -> c_int = status(unsupported());
    /// `ibv_read_err_comp_cntr(3)`.
    ibv_read_err_comp_cntr(*mut Nothing, *mut u64) -> c_int = status(unsupported());
    /// `ibv_qp_attach_comp_cntr(3)`.
    ibv_qp_attach_comp_cntr(*mut ibv_qp, *mut Nothing, *mut Nothing) -> c_int =
        status(unsupported());

    /// `ibv_alloc_buf(3)`.
    ibv_alloc_buf(*mut ibv_pd, usize, *mut *mut Nothing) -> *mut c_void = pointer(unsupported());
    /// `ibv_free_buf(3)`, of what was never allocated.
    ibv_free_buf(*mut Nothing) = ();
    /// `ibv_reg_buf_mr(3)`.
    ibv_reg_buf_mr(*mut ibv_pd, *mut Nothing, *mut c_void, usize, c_int) -> *mut ibv_mr =
        pointer(unsupported());
    /// `ibv_export_buf_dmabuf_fd(3)`.
    ibv_export_buf_dmabuf_fd(*mut Nothing) -> c_int = minus_one(unsupported());
    /// `ibv_reg_mr_ex(3)`.
    ibv_reg_mr_ex(*mut ibv_pd, *mut Nothing) -> *mut ibv_mr = pointer(unsupported());
    /// `ibv_query_port_speed(3)`.
    ibv_query_port_speed(*mut ibv_context, u32, *mut u64) -> c_int = status(unsupported());

    /// `rdma_resolve_addrinfo(3)`.
    rdma_resolve_addrinfo(
        *mut rdma_cm_id, *const c_char, *const c_char, *const rdma_addrinfo
    ) -> c_int = minus_one(unsupported());
    /// `rdma_query_addrinfo(3)`.
    rdma_query_addrinfo(*mut rdma_cm_id, *mut *mut rdma_addrinfo) -> c_int =
        minus_one(unsupported());
    /// `rdma_write_cm_event(3)`.
    rdma_write_cm_event(*mut rdma_cm_id, rdma_cm_event_type, c_int, u64) -> c_int =
        minus_one(unsupported());

    /// What drivers once called to be known, which has no effect in libibverbs either.
    ibv_register_driver(*const c_char, *mut Nothing) = ();
}
