//! The functions that the header's inline functions call through tables.

use std::mem::offset_of;

use transport_rxe_loop::sanitizer;

use super::plain;
use crate::errno::{negative, pointer, status};
use crate::qp_ex::Qp;
use crate::raw::{Argument, Functions};
use crate::sys::*;
use crate::{cq, cq_ex, mw, port, post, qp_ex, query, srq};

/// Declares the functions of a table, and two tables: the second, of functions of the same names in a module, for programs
/// that ThreadSanitizer watches. `way` converts the result of the safe function to what C expects; `order` is the
/// annotation beside that which has the call ignored.
macro_rules! table {
    ($table:ident, $watched:ident in $module:ident: $of:ident = { $(
        $field:ident: $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? =
            $way:ident($safe:path) $(as $order:ident)?;
    )+ }) => {
        $(
            pub unsafe extern "C" fn $name($($argument: $type),*) $(-> $result)? {
                // SAFETY: the program passes what the manual page of the function requires.
                $way($safe($(unsafe { Argument::of_c($argument) }),*))
            }
        )+

        mod $module {
            use super::*;

            $(
                pub unsafe extern "C" fn $name($($argument: $type),*) $(-> $result)? {
                    // SAFETY: as above.
                    let call = || unsafe { super::$name($($argument),*) };
                    annotated!(call $($order)?)
                }
            )+
        }

        const $table: $of = $of { $($field: Some($name),)+ ..$of::ZEROED };
        const $watched: $of = $of { $($field: Some($module::$name),)+ ..$of::ZEROED };
    };
}

/// A call with its annotations for ThreadSanitizer.
macro_rules! annotated {
    ($call:ident) => {
        sanitizer::unseen($call)
    };
    // It hands something over.
    ($call:ident posting) => {{
        sanitizer::posted();
        sanitizer::unseen($call)
    }};
    // It gives how many completions came, or an error below 0.
    ($call:ident counting) => {{
        let came = sanitizer::unseen($call);
        if came > 0 {
            sanitizer::completed();
        }
        came
    }};
    // It gives 0 if a completion came.
    ($call:ident taking) => {{
        let status = sanitizer::unseen($call);
        if status == 0 {
            sanitizer::completed();
        }
        status
    }};
}

// Those of an open device that every header knows.
table! { OPS, WATCHED_OPS in watched_ops: ibv_context_ops = {
    alloc_mw: ibv_alloc_mw(pd: *mut ibv_pd, kind: ibv_mw_type) -> *mut ibv_mw =
        pointer(mw::alloc_mw);
    dealloc_mw: ibv_dealloc_mw(mw: *mut ibv_mw) -> c_int = status(mw::dealloc_mw);
    poll_cq: ibv_poll_cq(cq: *mut ibv_cq, num_entries: c_int, wc: *mut ibv_wc_fields) -> c_int =
        negative(cq::poll_cq) as counting;
    req_notify_cq: ibv_req_notify_cq(cq: *mut ibv_cq, solicited_only: c_int) -> c_int =
        status(cq::req_notify_cq);
    post_srq_recv: ibv_post_srq_recv(
        srq: *mut ibv_srq, wr: *mut ibv_recv_wr, bad_wr: *mut *mut ibv_recv_wr
    ) -> c_int = status(post::post_srq_recv) as posting;
    post_send: ibv_post_send(
        qp: *mut ibv_qp, wr: *mut ibv_send_wr, bad_wr: *mut *mut ibv_send_wr
    ) -> c_int = status(post::post_send) as posting;
    post_recv: ibv_post_recv(
        qp: *mut ibv_qp, wr: *mut ibv_recv_wr, bad_wr: *mut *mut ibv_recv_wr
    ) -> c_int = status(post::post_recv) as posting;
} }

// Those that came later.
table! { LATER, WATCHED_LATER in watched_later: verbs_context = {
    create_cq_ex: ibv_create_cq_ex(
        context: *mut ibv_context, init: *mut ibv_cq_init_attr_ex
    ) -> *mut ibv_cq_ex = pointer(cq_ex::create_cq_ex);
    create_qp_ex: ibv_create_qp_ex(
        context: *mut ibv_context, init: *mut ibv_qp_init_attr_ex
    ) -> *mut ibv_qp = pointer(qp_ex::create_qp_ex);
    get_srq_num: ibv_get_srq_num(srq: *mut ibv_srq, srq_num: *mut u32) -> c_int =
        status(srq::get_srq_num);
    modify_cq: ibv_modify_cq(cq: *mut ibv_cq, attr: *mut ibv_modify_cq_attr) -> c_int =
        status(cq::modify_cq);
    query_device_ex: ibv_query_device_ex(
        context: *mut ibv_context, input: *const ibv_query_device_ex_input,
        attr: *mut ibv_device_attr_ex, attr_size: usize
    ) -> c_int = status(query::query_device_ex);
    query_port: query_port(
        context: *mut ibv_context, port_num: u8, port_attr: *mut ibv_port_attr, port_attr_len: usize
    ) -> c_int = status(port::query_port);
} }

// Those of a completion queue.
table! { POLLING, WATCHED_POLLING in watched_polling: ibv_cq_ex = {
    start_poll: ibv_start_poll(cq: *mut ibv_cq_ex, attr: *mut ibv_poll_cq_attr) -> c_int =
        status(cq_ex::start_poll) as taking;
    next_poll: ibv_next_poll(cq: *mut ibv_cq_ex) -> c_int = status(cq_ex::next_poll) as taking;
    end_poll: ibv_end_poll(cq: *mut ibv_cq_ex) = plain(cq_ex::end_poll);
} }

/// Declares what reads a field of the completion that was polled last, and the table with that.
macro_rules! readers {
    ($table:ident = { $($name:ident: $type:ty = $field:ident: $of:ty;)+ }) => {
        $(unsafe extern "C" fn $name(cq: *mut ibv_cq_ex) -> $type {
            cq_ex::read::<$of>(cq, offset_of!(ibv_wc_fields, $field)).into()
        })+

        const $table: ibv_cq_ex = ibv_cq_ex { $($name: Some($name),)+ ..ibv_cq_ex::ZEROED };
    };
}

readers! { READING = {
    read_vendor_err: u32 = vendor_err: u32;
    read_byte_len: u32 = byte_len: u32;
    read_imm_data: u32 = anon_1: u32;
    read_qp_num: u32 = qp_num: u32;
    read_src_qp: u32 = src_qp: u32;
    read_wc_flags: c_uint = wc_flags: c_uint;
    read_slid: u32 = slid: u16;
    read_sl: u8 = sl: u8;
    read_dlid_path_bits: u8 = dlid_path_bits: u8;
} }

unsafe extern "C" fn read_opcode(cq: *mut ibv_cq_ex) -> ibv_wc_opcode {
    ibv_wc_opcode(cq_ex::read(cq, offset_of!(ibv_wc_fields, opcode)))
}

/// Reads a field that no queue is made with.
unsafe extern "C" fn read_nothing<T: Default>(_cq: *mut ibv_cq_ex) -> T {
    T::default()
}

// Those of a queue pair.
table! { QP, WATCHED_QP in watched_qp: ibv_qp_ex = {
    wr_start: ibv_wr_start(qp: Qp) = plain(qp_ex::wr_start);
    wr_complete: ibv_wr_complete(qp: Qp) -> c_int = status(qp_ex::wr_complete) as posting;
    wr_abort: ibv_wr_abort(qp: Qp) = plain(qp_ex::wr_abort);
    wr_send: ibv_wr_send(qp: Qp) = plain(qp_ex::wr_send);
    wr_send_imm: ibv_wr_send_imm(qp: Qp, imm_data: u32) = plain(qp_ex::wr_send_imm);
    wr_send_inv: ibv_wr_send_inv(qp: Qp, rkey: u32) = plain(qp_ex::wr_send_inv);
    wr_send_tso: ibv_wr_send_tso(qp: Qp, hdr: *mut c_void, hdr_size: u16, mss: u16) =
        plain(qp_ex::wr_send_tso);
    wr_rdma_read: ibv_wr_rdma_read(qp: Qp, rkey: u32, addr: u64) = plain(qp_ex::wr_rdma_read);
    wr_rdma_write: ibv_wr_rdma_write(qp: Qp, rkey: u32, addr: u64) = plain(qp_ex::wr_rdma_write);
    wr_rdma_write_imm: ibv_wr_rdma_write_imm(qp: Qp, rkey: u32, addr: u64, imm_data: u32) =
        plain(qp_ex::wr_rdma_write_imm);
    wr_atomic_cmp_swp: ibv_wr_atomic_cmp_swp(
        qp: Qp, rkey: u32, addr: u64, compare: u64, swap: u64
    ) = plain(qp_ex::wr_atomic_cmp_swp);
    wr_atomic_fetch_add: ibv_wr_atomic_fetch_add(qp: Qp, rkey: u32, addr: u64, add: u64) =
        plain(qp_ex::wr_atomic_fetch_add);
    wr_atomic_write: ibv_wr_atomic_write(qp: Qp, rkey: u32, addr: u64, bytes: *const c_void) =
        plain(qp_ex::wr_atomic_write);
    wr_bind_mw: ibv_wr_bind_mw(qp: Qp, mw: *mut ibv_mw, rkey: u32, info: *const ibv_mw_bind_info) =
        plain(qp_ex::wr_bind_mw);
    wr_local_inv: ibv_wr_local_inv(qp: Qp, rkey: u32) = plain(qp_ex::wr_local_inv);
    wr_set_ud_addr: ibv_wr_set_ud_addr(qp: Qp, ah: *mut ibv_ah, remote_qpn: u32, remote_qkey: u32) =
        plain(qp_ex::wr_set_ud_addr);
    wr_set_xrc_srqn: ibv_wr_set_xrc_srqn(qp: Qp, remote_srqn: u32) = plain(qp_ex::wr_set_xrc_srqn);
    wr_set_inline_data: ibv_wr_set_inline_data(qp: Qp, addr: *mut c_void, length: usize) =
        plain(qp_ex::wr_set_inline_data);
    wr_set_inline_data_list: ibv_wr_set_inline_data_list(
        qp: Qp, num_buf: usize, buf_list: *const ibv_data_buf
    ) = plain(qp_ex::wr_set_inline_data_list);
    wr_set_sge: ibv_wr_set_sge(qp: Qp, lkey: u32, addr: u64, length: u32) =
        plain(qp_ex::wr_set_sge);
    wr_set_sge_list: ibv_wr_set_sge_list(qp: Qp, num_sge: usize, sg_list: *const ibv_sge) =
        plain(qp_ex::wr_set_sge_list);
} }

/// `ibv_bind_mw(3)`. EOPNOTSUPP: it is for windows of type 1; for all others the header says EINVAL without asking.
/// Requests bind those of type 2.
pub unsafe extern "C" fn ibv_bind_mw(_: *mut ibv_qp, _: *mut ibv_mw, _: *mut ibv_mw_bind) -> c_int {
    status(super::unsupported())
}

/// The table of an open device: those that every header knows, and those that came later.
const fn context(ops: ibv_context_ops, later: verbs_context) -> verbs_context {
    verbs_context {
        sz: size_of::<verbs_context>(),
        context: ibv_context {
            ops: ibv_context_ops { bind_mw: Some(ibv_bind_mw), ..ops },
            ..ibv_context::ZEROED
        },
        ..later
    }
}

/// The table of a completion queue: those that poll, and those that read what was polled.
const fn cq(polling: ibv_cq_ex) -> ibv_cq_ex {
    ibv_cq_ex {
        start_poll: polling.start_poll,
        next_poll: polling.next_poll,
        end_poll: polling.end_poll,
        read_opcode: Some(read_opcode),
        read_completion_ts: Some(read_nothing),
        read_cvlan: Some(read_nothing),
        read_flow_tag: Some(read_nothing),
        read_completion_wallclock_ns: Some(read_nothing),
        ..READING
    }
}

// That of newer headers.
table! { FLUSH, WATCHED_FLUSH in watched_flush: ibv_qp_ex_and_flush = {
    wr_flush: ibv_wr_flush(
        qp: Qp, rkey: u32, addr: u64, length: usize, placement: u8, selectivity: u8
    ) = plain(qp_ex::wr_flush);
} }

static FUNCTIONS: Functions = Functions {
    context: context(OPS, LATER),
    cq: cq(POLLING),
    qp: ibv_qp_ex_and_flush { qp: QP, ..FLUSH },
};

static WATCHED: Functions = Functions {
    context: context(WATCHED_OPS, WATCHED_LATER),
    cq: cq(WATCHED_POLLING),
    qp: ibv_qp_ex_and_flush { qp: WATCHED_QP, ..WATCHED_FLUSH },
};

/// The tables of an open device and its objects.
pub(super) fn functions() -> &'static Functions {
    if sanitizer::watches() { &WATCHED } else { &FUNCTIONS }
}
