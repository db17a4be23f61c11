//! What libibverbs has and this device has not. It is exported all the same: a call that reached the real library
//! would take this library's objects for its own.
//!
//! What libibverbs exports beside the verbs, for drivers and for librdmacm (`ibv_get_sysfs_path`,
//! `ibv_read_sysfs_file`, `ibv_register_driver`, `ibv_copy_qp_attr_from_kern` and its like), takes no object of
//! these, and is left to it.

use std::ffi::{c_int, c_void};

use crate::errno::{Errno, minus_one, pointer, status};
use crate::sys::{
    ibv_ah_attr, ibv_context, ibv_ece, ibv_gid, ibv_mr, ibv_pd, ibv_qp, ibv_wr_opcode,
};

/// Declares functions that only answer EOPNOTSUPP, each in the way of its manual page.
macro_rules! unsupported {
    ($($(#[$doc:meta])* $name:ident($($argument:ty),*) => $answer:ident -> $result:ty;)+) => {
        $(
            $(#[$doc])*
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($(_: $argument),*) -> $result {
                $answer(Err(Errno::OPNOTSUPP))
            }
        )+
    };
}

unsupported! {
    /// `ibv_set_ece(3)`: nobody has to be agreed with about extensions of a connection.
    ibv_set_ece(*mut ibv_qp, *mut ibv_ece) => status -> c_int;
    /// `ibv_query_ece(3)`.
    ibv_query_ece(*mut ibv_qp, *mut ibv_ece) => status -> c_int;
    /// `ibv_attach_mcast(3)`.
    ibv_attach_mcast(*mut ibv_qp, *const ibv_gid, u16) => status -> c_int;
    /// `ibv_detach_mcast(3)`.
    ibv_detach_mcast(*mut ibv_qp, *const ibv_gid, u16) => status -> c_int;
    /// Where on Ethernet an address is; the port is InfiniBand's.
    ibv_resolve_eth_l2_from_gid(*mut ibv_context, *mut ibv_ah_attr, *mut u8, *mut u16) => minus_one -> c_int;
    /// `ibv_rereg_mr(3)`. The number is `IBV_REREG_MR_ERR_INPUT`: the region is as good as before.
    ibv_rereg_mr(*mut ibv_mr, c_int, *mut ibv_pd, *mut c_void, usize, c_int) => minus_one -> c_int;
    /// `ibv_reg_dmabuf_mr(3)`.
    ibv_reg_dmabuf_mr(*mut ibv_pd, u64, usize, u64, c_int, c_int) => pointer -> *mut ibv_mr;
    /// `ibv_import_device(3)`: processes share the device by opening it.
    ibv_import_device(c_int) => pointer -> *mut ibv_context;
    /// `ibv_import_pd(3)`.
    ibv_import_pd(*mut ibv_context, u32) => pointer -> *mut ibv_pd;
    /// `ibv_import_mr(3)`.
    ibv_import_mr(*mut ibv_pd, u32) => pointer -> *mut ibv_mr;
    /// `ibv_import_dm(3)`.
    ibv_import_dm(*mut ibv_context, u32) => pointer -> *mut c_void;
}

/// `ibv_unimport_pd(3)`, of what was never imported.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_unimport_pd(_pd: *mut ibv_pd) {}

/// `ibv_unimport_mr(3)`, of what was never imported.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_unimport_mr(_mr: *mut ibv_mr) {}

/// `ibv_unimport_dm(3)`, of what was never imported.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_unimport_dm(_dm: *mut c_void) {}

/// `ibv_query_qp_data_in_order(3)`: that bytes arrive in order is promised of no operation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_query_qp_data_in_order(
    _qp: *mut ibv_qp,
    _op: ibv_wr_opcode,
    _flags: u32,
) -> c_int {
    0
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;

    #[test]
    fn what_is_not_supported_says_so_in_the_way_of_its_page() {
        let qp = ptr::null_mut();
        // SAFETY: nothing is looked at.
        unsafe {
            assert_eq!(ibv_query_ece(qp, ptr::null_mut()), libc::EOPNOTSUPP);
            assert_eq!(ibv_attach_mcast(qp, ptr::null(), 1), libc::EOPNOTSUPP);
            assert!(ibv_import_device(3).is_null());
            assert_eq!(Errno::last(), Errno::OPNOTSUPP);
            assert_eq!(
                ibv_rereg_mr(ptr::null_mut(), 0, ptr::null_mut(), ptr::null_mut(), 0, 0),
                -1
            );
            assert_eq!(Errno::last(), Errno::OPNOTSUPP);
            assert_eq!(ibv_query_qp_data_in_order(qp, 0, 0), 0);
        }
    }
}
