//! The functions that C calls, each in the way that its manual page has it: what goes in becomes what safe code takes
//! ([`Argument`]), and what comes out a number or a pointer.
//!
//! Those that the header's inline functions call are in tables, others are exported by name. What a table does not have is
//! NULL, where the inline functions say EOPNOTSUPP by themselves.
//!
//! What libibverbs and librdmacm have and this device has not is exported all the same: a call that reached the real
//! library would take this library's objects for its own. `names.txt` lists what there is, with the versions that the linker
//! gives these names.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod dlopen;
mod tables;

#[cfg(any(test, fuzzing))]
pub use self::rdmacm::*;
use self::tables::functions;
#[cfg(any(test, fuzzing))]
pub use self::tables::*;
use crate::errno::{Errno, minus_one, negative, pointer, status};
use crate::raw::Argument;
use crate::raw::system::{Returned, uncancelled};
use crate::sys::*;
use crate::{
    ah, buf, channel, cq, cq_ex, device, events, modify, mr, pd, port, qp, query, rate, srq, sysfs,
    words,
};

/// The answer as it is.
const fn plain<T>(answer: T) -> T {
    answer
}

/// A pointer to what C does not write.
fn const_pointer<T>(result: Result<*mut T, Errno>) -> *const T {
    pointer(result)
}

/// 0, or -1 and the number in `errno`.
fn zero(result: Result<(), Errno>) -> c_int {
    minus_one(result.map(|()| 0))
}

/// How many, or the errno's number below 0.
fn count(result: Result<c_int, Errno>) -> isize {
    negative(result) as isize
}

/// Declares functions that are exported by name: `way` converts the result of the safe function to what C expects. No thread
/// is cancelled in those of the ABI "C"; those of "C-unwind" see to it themselves, but where they wait.
macro_rules! exported {
    ("C"; $($name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? = $way:ident($safe:path);)+) => {
        $(
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($argument: $type),*) $(-> $result)? {
                // SAFETY: the program passes what the manual page of the function requires.
                $way(uncancelled(|| $safe($(unsafe { Argument::of_c($argument) }),*)))
            }
        )+
    };
    ("C-unwind"; $(
        $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? = $way:ident($safe:path);
    )+) => {
        $(
            #[unsafe(no_mangle)]
            pub unsafe extern "C-unwind" fn $name($($argument: $type),*) $(-> $result)? {
                // SAFETY: the program passes what the manual page of the function requires.
                $way($safe($(unsafe { Argument::of_c($argument) }),*))
            }
        )+
    };
}

/// Declares functions that look at nothing, and always answer the same.
macro_rules! fixed {
    ($($(#[$doc:meta])* $name:ident($($argument:ty),*) $(-> $result:ty)? = $answer:expr;)+) => {
        $(
            $(#[$doc])*
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($(_: $argument),*) $(-> $result)? {
                $answer
            }
        )+
    };
}

// Behind the macros that they use.
mod newer;
mod rdmacm;
mod rsockets;

exported! {
    "C";
    ibv_get_device_list(num_devices: *mut c_int) -> *mut *mut ibv_device =
        pointer(device::get_device_list);
    ibv_free_device_list(list: *mut *mut ibv_device) = plain(Returned::free);
    ibv_get_device_name(device: *mut ibv_device) -> *const c_char =
        const_pointer(device::get_device_name);
    ibv_get_device_guid(device: *mut ibv_device) -> u64 = plain(device::get_device_guid);
    ibv_open_device(device: *mut ibv_device) -> *mut ibv_context = pointer(open_device);
    ibv_close_device(context: *mut ibv_context) -> c_int = zero(device::close_device);

    ibv_query_device(context: *mut ibv_context, device_attr: *mut ibv_device_attr) -> c_int =
        status(query::query_device);
    ibv_query_port(
        context: *mut ibv_context, port_num: u8, port_attr: *mut ibv_port_attr
    ) -> c_int = status(port::query_old_port);
    ibv_query_port_speed(context: *mut ibv_context, port_num: u32, port_speed: *mut u64) -> c_int =
        status(port::query_port_speed);
    ibv_query_gid(
        context: *mut ibv_context, port_num: u8, index: c_int, gid: *mut ibv_gid
    ) -> c_int = zero(port::query_gid);
    _ibv_query_gid_ex(
        context: *mut ibv_context, port_num: u32, gid_index: u32, entry: *mut ibv_gid_entry,
        flags: u32, entry_size: usize
    ) -> c_int = status(port::query_gid_ex);
    _ibv_query_gid_table(
        context: *mut ibv_context, entries: *mut ibv_gid_entry, max_entries: usize, flags: u32,
        entry_size: usize
    ) -> isize = count(port::query_gid_table);
    ibv_query_gid_type(
        context: *mut ibv_context, port_num: u8, index: c_uint, kind: *mut c_uint
    ) -> c_int = zero(port::query_gid_type);
    ibv_query_pkey(context: *mut ibv_context, port_num: u8, index: c_int, pkey: *mut u16) -> c_int =
        zero(port::query_pkey);
    ibv_get_pkey_index(context: *mut ibv_context, port_num: u8, pkey: u16) -> c_int =
        minus_one(port::get_pkey_index);

    ibv_alloc_pd(context: *mut ibv_context) -> *mut ibv_pd = pointer(pd::alloc_pd);
    ibv_dealloc_pd(pd: *mut ibv_pd) -> c_int = status(pd::dealloc_pd);
    ibv_reg_mr(pd: *mut ibv_pd, addr: *mut c_void, length: usize, access: c_uint) -> *mut ibv_mr =
        pointer(mr::reg_mr);
    ibv_reg_mr_iova(
        pd: *mut ibv_pd, addr: *mut c_void, length: usize, iova: u64, access: c_uint
    ) -> *mut ibv_mr = pointer(mr::reg_mr_iova);
    ibv_reg_mr_iova2(
        pd: *mut ibv_pd, addr: *mut c_void, length: usize, iova: u64, access: c_uint
    ) -> *mut ibv_mr = pointer(mr::reg_mr_iova);
    ibv_reg_mr_ex(pd: *mut ibv_pd, attr: *mut ibv_mr_init_attr) -> *mut ibv_mr =
        pointer(mr::reg_mr_ex);
    ibv_reg_buf_mr(
        pd: *mut ibv_pd, buf: *mut ibv_buf, addr: *mut c_void, length: usize, access: c_int
    ) -> *mut ibv_mr = pointer(mr::reg_buf_mr);
    ibv_alloc_buf(pd: *mut ibv_pd, size: usize, buf: *mut *mut ibv_buf) -> *mut c_void =
        pointer(buf::alloc_buf);
    ibv_free_buf(buf: *mut ibv_buf) = plain(buf::free_buf);
    ibv_export_buf_dmabuf_fd(buf: *mut ibv_buf) -> c_int = minus_one(buf::export_buf_dmabuf_fd);
    ibv_dereg_mr(mr: *mut ibv_mr) -> c_int = status(mr::dereg_mr);
    ibv_create_ah(pd: *mut ibv_pd, attr: *mut ibv_ah_attr) -> *mut ibv_ah = pointer(ah::create_ah);
    ibv_init_ah_from_wc(
        context: *mut ibv_context, port_num: u8, wc: *mut ibv_wc, grh: *mut ibv_grh,
        ah_attr: *mut ibv_ah_attr
    ) -> c_int = zero(ah::init_ah_from_wc);
    ibv_create_ah_from_wc(
        pd: *mut ibv_pd, wc: *mut ibv_wc, grh: *mut ibv_grh, port_num: u8
    ) -> *mut ibv_ah = pointer(ah::create_ah_from_wc);
    ibv_destroy_ah(ah: *mut ibv_ah) -> c_int = status(ah::destroy_ah);

    ibv_create_comp_channel(context: *mut ibv_context) -> *mut ibv_comp_channel =
        pointer(channel::create_comp_channel);
    ibv_destroy_comp_channel(channel: *mut ibv_comp_channel) -> c_int =
        status(channel::destroy_comp_channel);
    ibv_create_cq(
        context: *mut ibv_context, cqe: c_int, cq_context: *mut c_void,
        channel: *mut ibv_comp_channel, comp_vector: c_int
    ) -> *mut ibv_cq = pointer(cq_ex::create_cq);
    ibv_resize_cq(cq: *mut ibv_cq, cqe: c_int) -> c_int = status(cq::resize_cq);
    ibv_destroy_cq(cq: *mut ibv_cq) -> c_int = status(cq::destroy_cq);
    ibv_ack_cq_events(cq: *mut ibv_cq, nevents: c_uint) = plain(cq::ack_cq_events);
    ibv_ack_async_event(event: *mut ibv_async_event) = plain(events::ack_async_event);

    ibv_create_srq(pd: *mut ibv_pd, init: *mut ibv_srq_init_attr) -> *mut ibv_srq =
        pointer(srq::create_srq);
    ibv_modify_srq(srq: *mut ibv_srq, attr: *mut ibv_srq_attr, attr_mask: c_int) -> c_int =
        status(srq::modify_srq);
    ibv_query_srq(srq: *mut ibv_srq, attr: *mut ibv_srq_attr) -> c_int = status(srq::query_srq);
    ibv_destroy_srq(srq: *mut ibv_srq) -> c_int = status(srq::destroy_srq);
    ibv_create_qp(pd: *mut ibv_pd, init: *mut ibv_qp_init_attr) -> *mut ibv_qp =
        pointer(qp::create_qp);
    ibv_modify_qp(qp: *mut ibv_qp, attr: *mut ibv_qp_attr, attr_mask: c_int) -> c_int =
        status(modify::modify_qp);
    ibv_query_qp(
        qp: *mut ibv_qp, attr: *mut ibv_qp_attr, attr_mask: c_int, init_attr: *mut ibv_qp_init_attr
    ) -> c_int = status(modify::query_qp);
    ibv_destroy_qp(qp: *mut ibv_qp) -> c_int = status(qp::destroy_qp);
    ibv_qp_to_qp_ex(qp: *mut ibv_qp) -> *mut ibv_qp_ex = pointer(qp::qp_to_qp_ex);

    ibv_wc_status_str(status: ibv_wc_status) -> *const c_char = plain(words::wc_status_str);
    ibv_event_type_str(event: ibv_event_type) -> *const c_char = plain(words::event_type_str);
    ibv_wr_opcode_str(opcode: ibv_wr_opcode) -> *const c_char = plain(words::wr_opcode_str);
    ibv_node_type_str(node_type: ibv_node_type) -> *const c_char = plain(words::node_type_str);
    ibv_port_state_str(port_state: ibv_port_state) -> *const c_char = plain(words::port_state_str);
    ibv_rate_to_mult(rate: ibv_rate) -> c_int = plain(rate::to_mult);
    mult_to_ibv_rate(mult: c_int) -> ibv_rate = plain(rate::of_mult);
    ibv_rate_to_mbps(rate: ibv_rate) -> c_int = plain(rate::to_mbps);
    mbps_to_ibv_rate(mbps: c_int) -> ibv_rate = plain(rate::of_mbps);

    ibv_get_sysfs_path() -> *const c_char = plain(sysfs::path);
    ibv_read_sysfs_file(
        dir: *const c_char, file: *const c_char, buf: *mut c_char, size: usize
    ) -> c_int = minus_one(sysfs::read_file);
}

// These wait, and a thread may be cancelled meanwhile.
exported! {
    "C-unwind";
    ibv_get_cq_event(
        channel: *mut ibv_comp_channel, cq: *mut *mut ibv_cq, cq_context: *mut *mut c_void
    ) -> c_int = zero(events::get_cq_event);
    ibv_get_async_event(context: *mut ibv_context, event: *mut ibv_async_event) -> c_int =
        zero(events::get_async_event);
}

/// `ibv_open_device(3)`, with what its objects carry.
fn open_device(device: *const ibv_device) -> Result<*mut ibv_context, Errno> {
    device::open_device(device, functions())
}

/// The device does not have this.
fn unsupported<T>() -> Result<T, Errno> {
    Err(Errno::OPNOTSUPP)
}

fixed! {
    /// `ibv_get_device_index(3)`: none, since the system has not numbered it.
    ibv_get_device_index(*mut ibv_device) -> c_int = -1;
    /// `ibv_fork_init(3)`. Nothing has to be prepared.
    ibv_fork_init() -> c_int = 0;
    /// `ibv_is_fork_initialized(3)`.
    ibv_is_fork_initialized() -> ibv_fork_status = IBV_FORK_UNNEEDED;
    /// What `<infiniband/driver.h>` has to keep memory from a child. There is no need to.
    ibv_dontfork_range(*mut c_void, usize) -> c_int = 0;
    /// What undoes it.
    ibv_dofork_range(*mut c_void, usize) -> c_int = 0;
    /// `ibv_query_qp_data_in_order(3)`: that bytes arrive in order is promised of no operation.
    ibv_query_qp_data_in_order(*mut ibv_qp, ibv_wr_opcode, u32) -> c_int = 0;
    /// `ibv_unimport_pd(3)`, of what was never imported.
    ibv_unimport_pd(*mut ibv_pd) = ();
    /// `ibv_unimport_mr(3)`, of what was never imported.
    ibv_unimport_mr(*mut ibv_mr) = ();
    /// `ibv_unimport_dm(3)`, of what was never imported.
    ibv_unimport_dm(*mut c_void) = ();

    /// `ibv_set_ece(3)`: nobody has to be agreed with about extensions of a connection.
    ibv_set_ece(*mut ibv_qp, *mut ibv_ece) -> c_int = status(unsupported());
    /// `ibv_query_ece(3)`.
    ibv_query_ece(*mut ibv_qp, *mut ibv_ece) -> c_int = status(unsupported());
    /// `ibv_attach_mcast(3)`.
    ibv_attach_mcast(*mut ibv_qp, *const ibv_gid, u16) -> c_int = status(unsupported());
    /// `ibv_detach_mcast(3)`.
    ibv_detach_mcast(*mut ibv_qp, *const ibv_gid, u16) -> c_int = status(unsupported());
    /// Where on Ethernet an address is; the port is InfiniBand's.
    ibv_resolve_eth_l2_from_gid(*mut ibv_context, *mut ibv_ah_attr, *mut u8, *mut u16) -> c_int =
        minus_one(unsupported());
    /// `ibv_rereg_mr(3)`. The number is `IBV_REREG_MR_ERR_INPUT`: the region is as good as before.
    ibv_rereg_mr(*mut ibv_mr, c_int, *mut ibv_pd, *mut c_void, usize, c_int) -> c_int =
        minus_one(unsupported());
    /// `ibv_reg_dmabuf_mr(3)`.
    ibv_reg_dmabuf_mr(*mut ibv_pd, u64, usize, u64, c_int, c_int) -> *mut ibv_mr =
        pointer(unsupported());
    /// `ibv_import_device(3)`: processes share the device by opening it.
    ibv_import_device(c_int) -> *mut ibv_context = pointer(unsupported());
    /// `ibv_import_pd(3)`.
    ibv_import_pd(*mut ibv_context, u32) -> *mut ibv_pd = pointer(unsupported());
    /// `ibv_import_mr(3)`.
    ibv_import_mr(*mut ibv_pd, u32) -> *mut ibv_mr = pointer(unsupported());
    /// `ibv_import_dm(3)`.
    ibv_import_dm(*mut ibv_context, u32) -> *mut c_void = pointer(unsupported());
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
            let null = ptr::null_mut();
            assert_eq!(ibv_rereg_mr(ptr::null_mut(), 0, ptr::null_mut(), null, 0, 0), -1);
            assert_eq!(Errno::last(), Errno::OPNOTSUPP);
            assert_eq!(ibv_query_qp_data_in_order(qp, 0, 0), 0);
            assert_eq!((ibv_fork_init(), ibv_is_fork_initialized()), (0, IBV_FORK_UNNEEDED));
        }
    }
}
