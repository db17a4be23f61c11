//! librdmacm's functions, by name.

use super::tables::functions;
use super::{plain, unsupported, zero};
use crate::errno::{Errno, minus_one, pointer};
use crate::raw::addr_info::Results;
use crate::raw::system::{Returned, uncancelled};
use crate::raw::{Argument, In, InOut, Memory, Out};
use crate::rdmacm::addr_info::{self, Unresolved};
use crate::rdmacm::{channel, connect, devices, ep, event, id, make, objects, qp, srq};
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
    rdma_query_addrinfo(id: *mut rdma_cm_id, info: *mut *mut rdma_addrinfo) -> c_int =
        zero(addr_info::query_addr_info);
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

// They may wait for a name server, and a thread may be cancelled meanwhile.
exported! {
    "C-unwind";
    rdma_getaddrinfo(
        node: *const c_char, service: *const c_char, hints: *const rdma_addrinfo,
        res: *mut *mut rdma_addrinfo
    ) -> c_int = resolved(addr_info::get_addr_info);
    rdma_resolve_addrinfo(
        id: *mut rdma_cm_id, node: *const c_char, service: *const c_char,
        hints: *const rdma_addrinfo
    ) -> c_int = zero(addr_info::resolve_addr_info);
}

/// `rdma_get_devices(3)`, with what the context carries.
fn get_devices(num_devices: Out<'_, c_int>) -> Result<*mut *mut ibv_context, Errno> {
    devices::get_devices(num_devices, functions())
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

exported! {
    "C";
    rdma_create_event_channel() -> *mut rdma_event_channel = pointer(create_event_channel);
    rdma_destroy_event_channel(channel: *mut rdma_event_channel) =
        plain(channel::destroy_event_channel);
    rdma_ack_cm_event(event: *mut rdma_cm_event) -> c_int = zero(objects::ack_cm_event);

    rdma_create_id(
        channel: *mut rdma_event_channel, id: *mut *mut rdma_cm_id, context: *mut c_void,
        ps: rdma_port_space
    ) -> c_int = zero(create_id);
    rdma_destroy_id(id: *mut rdma_cm_id) -> c_int = zero(make::destroy_id);
    rdma_create_ep(
        id: *mut *mut rdma_cm_id, res: *mut rdma_addrinfo, pd: *mut ibv_pd,
        qp_init_attr: *mut ibv_qp_init_attr
    ) -> c_int = zero(create_ep);
    rdma_destroy_ep(id: *mut rdma_cm_id) = plain(ep::destroy_ep);
    rdma_migrate_id(id: *mut rdma_cm_id, channel: *mut rdma_event_channel) -> c_int =
        zero(make::migrate_id);
    rdma_set_option(
        id: *mut rdma_cm_id, level: c_int, optname: c_int, optval: *mut c_void, optlen: usize
    ) -> c_int = zero(connect::set_option);

    rdma_bind_addr(id: *mut rdma_cm_id, addr: *mut sockaddr) -> c_int = zero(connect::bind_addr);
    rdma_listen(id: *mut rdma_cm_id, backlog: c_int) -> c_int = zero(connect::listen);
    rdma_write_cm_event(
        id: *mut rdma_cm_id, event: rdma_cm_event_type, status: c_int, arg: u64
    ) -> c_int = zero(connect::write_cm_event);
    rdma_establish(id: *mut rdma_cm_id) -> c_int = zero(connect::establish);
    rdma_reject(id: *mut rdma_cm_id, private_data: *const c_void, private_data_len: u8) -> c_int =
        zero(connect::reject);
    rdma_reject_ece(
        id: *mut rdma_cm_id, private_data: *const c_void, private_data_len: u8
    ) -> c_int = zero(connect::reject);
    rdma_notify(id: *mut rdma_cm_id, event: ibv_event_type) -> c_int = zero(connect::notify);
    rdma_init_qp_attr(
        id: *mut rdma_cm_id, qp_attr: *mut ibv_qp_attr, qp_attr_mask: *mut c_int
    ) -> c_int = zero(connect::init_qp_attr);
}

// They may wait for an event, those of a synchronous identifier, too; and a thread may be cancelled meanwhile.
exported! {
    "C-unwind";
    rdma_get_cm_event(channel: *mut rdma_event_channel, event: *mut *mut rdma_cm_event) -> c_int =
        zero(event::get_cm_event);
    rdma_resolve_addr(
        id: *mut rdma_cm_id, src_addr: *mut sockaddr, dst_addr: *mut sockaddr, timeout_ms: c_int
    ) -> c_int = zero(connect::resolve_addr);
    rdma_resolve_route(id: *mut rdma_cm_id, timeout_ms: c_int) -> c_int =
        zero(connect::resolve_route);
    rdma_get_request(listen: *mut rdma_cm_id, id: *mut *mut rdma_cm_id) -> c_int =
        zero(ep::get_request);
    rdma_connect(id: *mut rdma_cm_id, conn_param: *mut rdma_conn_param) -> c_int =
        zero(connect::connect);
    rdma_accept(id: *mut rdma_cm_id, conn_param: *mut rdma_conn_param) -> c_int =
        zero(connect::accept);
    rdma_disconnect(id: *mut rdma_cm_id) -> c_int = zero(connect::disconnect);
}

/// `rdma_create_event_channel(3)`, of the context that carries these functions.
fn create_event_channel() -> Result<*mut rdma_event_channel, Errno> {
    channel::create_event_channel(functions())
}

/// `rdma_create_id(3)`.
fn create_id(
    channel: *const rdma_event_channel,
    id: Out<'_, *mut rdma_cm_id>,
    context: Memory,
    ps: rdma_port_space,
) -> Result<(), Errno> {
    make::create_id(channel, id, context.pointer(), ps, functions())
}

/// `rdma_create_ep(3)`.
fn create_ep(
    id: Out<'_, *mut rdma_cm_id>,
    res: In<'_, rdma_addrinfo>,
    pd: *mut ibv_pd,
    init: InOut<'_, ibv_qp_init_attr>,
) -> Result<(), Errno> {
    ep::create_ep(id, res, pd, init, functions())
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;

    #[test]
    fn multicast_is_not_supported() {
        errno::set_errno(errno::Errno(0));
        // SAFETY: nothing is looked at.
        let told =
            unsafe { rdma_join_multicast(ptr::null_mut(), ptr::null_mut(), ptr::null_mut()) };
        assert_eq!((told, Errno::last()), (-1, Errno::OPNOTSUPP));
    }
}
