//! librdmacm's functions, by name. Those that need a connection manager fail with EOPNOTSUPP.

use super::tables::FUNCTIONS;
use super::{plain, unsupported, zero};
use crate::errno::{Errno, minus_one, pointer};
use crate::raw::addr_info::Results;
use crate::raw::system::Returned;
use crate::raw::{Argument, Out};
use crate::rdmacm::addr_info::{self, Unresolved};
use crate::rdmacm::{devices, id, qp, srq};
use crate::sys::*;
use crate::words;

/// 0, or one of `EAI_...`, or -1 and the number in `errno`.
fn resolved(result: Result<(), Unresolved>) -> c_int {
    match result {
        Ok(()) => 0,
        // Which is -1 as well.
        Err(Unresolved::Eai(libc::EAI_BADFLAGS)) => minus_one(Err(Errno::INVAL)),
        Err(Unresolved::Eai(error)) => error,
        Err(Unresolved::Errno(errno)) => minus_one(Err(errno)),
    }
}

exported! {
    "C";
    rdma_get_devices(num_devices: *mut c_int) -> *mut *mut ibv_context = pointer(get_devices);
    rdma_free_devices(list: *mut *mut ibv_context) = plain(Returned::free);
    rdma_event_str(event: rdma_cm_event_type) -> *const c_char = plain(words::cm_event_str);
    rdma_freeaddrinfo(res: *mut rdma_addrinfo) = plain(Results::free);
    rdma_get_src_port(id: *mut rdma_cm_id) -> u16 = plain(id::src_port);
    rdma_get_dst_port(id: *mut rdma_cm_id) -> u16 = plain(id::dst_port);

    rdma_create_qp(
        id: *mut rdma_cm_id, pd: *mut ibv_pd, qp_init_attr: *mut ibv_qp_init_attr
    ) -> c_int = zero(qp::create_qp);
    rdma_create_qp_ex(id: *mut rdma_cm_id, qp_init_attr: *mut ibv_qp_init_attr_ex) -> c_int =
        zero(qp::create_qp_ex);
    rdma_destroy_qp(id: *mut rdma_cm_id) = plain(qp::destroy_qp);
    rdma_create_srq(id: *mut rdma_cm_id, pd: *mut ibv_pd, attr: *mut ibv_srq_init_attr) -> c_int =
        zero(srq::create_srq);
    rdma_create_srq_ex(id: *mut rdma_cm_id, attr: *mut ibv_srq_init_attr_ex) -> c_int =
        zero(srq::create_srq_ex);
    rdma_destroy_srq(id: *mut rdma_cm_id) = plain(srq::destroy_srq);
}

// It may wait for a name server, and a thread may be cancelled meanwhile.
exported! {
    "C-unwind";
    rdma_getaddrinfo(
        node: *const c_char, service: *const c_char, hints: *const rdma_addrinfo,
        res: *mut *mut rdma_addrinfo
    ) -> c_int = resolved(addr_info::get_addr_info);
}

/// `rdma_get_devices(3)`, with what the context carries.
fn get_devices(num_devices: Out<'_, c_int>) -> Result<*mut *mut ibv_context, Errno> {
    devices::get_devices(num_devices, FUNCTIONS)
}

fixed! {
    /// `rdma_join_multicast(3)`.
    rdma_join_multicast(*mut rdma_cm_id, *mut sockaddr, *mut c_void) -> c_int =
        minus_one(unsupported());
    /// `rdma_join_multicast_ex(3)`.
    rdma_join_multicast_ex(*mut rdma_cm_id, *mut rdma_cm_join_mc_attr_ex, *mut c_void) -> c_int =
        minus_one(unsupported());
    /// `rdma_leave_multicast(3)`.
    rdma_leave_multicast(*mut rdma_cm_id, *mut sockaddr) -> c_int = minus_one(unsupported());
    /// `rdma_set_local_ece(3)`: nobody has to be agreed with about extensions of a connection.
    rdma_set_local_ece(*mut rdma_cm_id, *mut ibv_ece) -> c_int = minus_one(unsupported());
    /// `rdma_get_remote_ece(3)`.
    rdma_get_remote_ece(*mut rdma_cm_id, *mut ibv_ece) -> c_int = minus_one(unsupported());
}

// What needs a connection manager.
fixed! {
    /// `rdma_create_event_channel(3)`.
    rdma_create_event_channel() -> *mut rdma_event_channel = pointer(unsupported());
    /// `rdma_destroy_event_channel(3)`, of what was never created.
    rdma_destroy_event_channel(*mut rdma_event_channel) = ();
    /// `rdma_get_cm_event(3)`.
    rdma_get_cm_event(*mut rdma_event_channel, *mut *mut rdma_cm_event) -> c_int =
        minus_one(unsupported());
    /// `rdma_ack_cm_event(3)`.
    rdma_ack_cm_event(*mut rdma_cm_event) -> c_int = minus_one(unsupported());

    /// `rdma_create_id(3)`.
    rdma_create_id(
        *mut rdma_event_channel, *mut *mut rdma_cm_id, *mut c_void, rdma_port_space
    ) -> c_int = minus_one(unsupported());
    /// `rdma_destroy_id(3)`.
    rdma_destroy_id(*mut rdma_cm_id) -> c_int = minus_one(unsupported());
    /// `rdma_create_ep(3)`.
    rdma_create_ep(
        *mut *mut rdma_cm_id, *mut rdma_addrinfo, *mut ibv_pd, *mut ibv_qp_init_attr
    ) -> c_int = minus_one(unsupported());
    /// `rdma_destroy_ep(3)`, of what was never created.
    rdma_destroy_ep(*mut rdma_cm_id) = ();
    /// `rdma_migrate_id(3)`.
    rdma_migrate_id(*mut rdma_cm_id, *mut rdma_event_channel) -> c_int = minus_one(unsupported());
    /// `rdma_set_option(3)`.
    rdma_set_option(*mut rdma_cm_id, c_int, c_int, *mut c_void, usize) -> c_int =
        minus_one(unsupported());

    /// `rdma_bind_addr(3)`.
    rdma_bind_addr(*mut rdma_cm_id, *mut sockaddr) -> c_int = minus_one(unsupported());
    /// `rdma_resolve_addr(3)`.
    rdma_resolve_addr(*mut rdma_cm_id, *mut sockaddr, *mut sockaddr, c_int) -> c_int =
        minus_one(unsupported());
    /// `rdma_resolve_route(3)`.
    rdma_resolve_route(*mut rdma_cm_id, c_int) -> c_int = minus_one(unsupported());
    /// `rdma_listen(3)`.
    rdma_listen(*mut rdma_cm_id, c_int) -> c_int = minus_one(unsupported());
    /// `rdma_get_request(3)`.
    rdma_get_request(*mut rdma_cm_id, *mut *mut rdma_cm_id) -> c_int = minus_one(unsupported());

    /// `rdma_connect(3)`.
    rdma_connect(*mut rdma_cm_id, *mut rdma_conn_param) -> c_int = minus_one(unsupported());
    /// `rdma_establish(3)`.
    rdma_establish(*mut rdma_cm_id) -> c_int = minus_one(unsupported());
    /// `rdma_accept(3)`.
    rdma_accept(*mut rdma_cm_id, *mut rdma_conn_param) -> c_int = minus_one(unsupported());
    /// `rdma_reject(3)`.
    rdma_reject(*mut rdma_cm_id, *const c_void, u8) -> c_int = minus_one(unsupported());
    /// As `rdma_reject`.
    rdma_reject_ece(*mut rdma_cm_id, *const c_void, u8) -> c_int = minus_one(unsupported());
    /// `rdma_disconnect(3)`.
    rdma_disconnect(*mut rdma_cm_id) -> c_int = minus_one(unsupported());
    /// `rdma_notify(3)`.
    rdma_notify(*mut rdma_cm_id, ibv_event_type) -> c_int = minus_one(unsupported());
    /// `rdma_init_qp_attr(3)`.
    rdma_init_qp_attr(*mut rdma_cm_id, *mut ibv_qp_attr, *mut c_int) -> c_int =
        minus_one(unsupported());
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;

    #[test]
    fn what_needs_a_connection_manager_is_not_supported() {
        let (id, null) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: nothing is looked at.
        let told: [&dyn Fn() -> c_int; 4] = unsafe {
            [
                &|| rdma_create_id(ptr::null_mut(), ptr::null_mut(), null, RDMA_PS_TCP),
                &|| rdma_listen(id, 1),
                &|| rdma_connect(id, ptr::null_mut()),
                &|| rdma_join_multicast(id, ptr::null_mut(), null),
            ]
        };
        for tell in told {
            errno::set_errno(errno::Errno(0));
            assert_eq!((tell(), Errno::last()), (-1, Errno::OPNOTSUPP));
        }
        errno::set_errno(errno::Errno(0));
        // SAFETY: as above.
        assert!(unsafe { rdma_create_event_channel() }.is_null());
        assert_eq!(Errno::last(), Errno::OPNOTSUPP);
    }
}
