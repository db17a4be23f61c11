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

    /// What drivers once called to be known, which has no effect in libibverbs either.
    ibv_register_driver(*const c_char, *mut Nothing) = ();
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;
    use crate::errno::Errno;

    #[test]
    fn each_says_so_in_the_way_of_its_page() {
        let null = ptr::null_mut();
        // SAFETY: nothing is looked at.
        let numbers = unsafe {
            [
                ibv_dealloc_dmah(null),
                _ibv_query_comp_cntr_caps(ptr::null_mut(), null, 16),
                ibv_destroy_comp_cntr(null),
                ibv_set_comp_cntr(null, 0),
                ibv_inc_err_comp_cntr(null, 0),
                ibv_read_comp_cntr(null, ptr::null_mut()),
                ibv_qp_attach_comp_cntr(ptr::null_mut(), null, null),
            ]
        };
        assert_eq!(numbers, [libc::EOPNOTSUPP; 7]);
        let told = |is_it: bool| {
            assert!(is_it);
            assert_eq!(Errno::last(), Errno::OPNOTSUPP);
            errno::set_errno(errno::Errno(0));
        };
        errno::set_errno(errno::Errno(0));
        // SAFETY: as above.
        unsafe {
            told(ibv_alloc_dmah(ptr::null_mut(), null).is_null());
            told(ibv_create_comp_cntr(ptr::null_mut(), null).is_null());
            told(ibv_dm_export_dmabuf_fd(null) == -1);
        }
    }
}
