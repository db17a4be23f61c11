//! The tables of functions that the header's inline functions call.
//!
//! What a table does not have is NULL, where those functions say EOPNOTSUPP by themselves.

use std::os::fd::AsFd;
use std::sync::Arc;

use transport_rxe_loop::Context;

use crate::context::{COMP_VECTORS, OPENINGS, Opening};
use crate::descriptor::Descriptor;
use crate::errno::Errno;
use crate::sys::{VERBS_ABI_IS_EXTENDED, ibv_context, ibv_context_ops, ibv_device, verbs_context};
use crate::{cq, cq_ex, mw, port, post, qp_ex, query, srq};

/// What all contexts have of functions that every header knows.
const OPS: ibv_context_ops = ibv_context_ops {
    alloc_mw: Some(mw::alloc_mw),
    bind_mw: Some(mw::bind_mw),
    dealloc_mw: Some(mw::dealloc_mw),
    poll_cq: Some(cq::poll_cq),
    req_notify_cq: Some(cq::req_notify_cq),
    post_srq_recv: Some(post::post_srq_recv),
    post_send: Some(post::post_send),
    post_recv: Some(post::post_recv),
    ..ibv_context_ops::ZEROED
};

/// What all contexts have of functions that came later.
const EXTENDED: verbs_context = verbs_context {
    create_cq_ex: Some(cq_ex::create_cq_ex),
    create_qp_ex: Some(qp_ex::create_qp_ex),
    get_srq_num: Some(srq::get_srq_num),
    modify_cq: Some(cq::modify_cq),
    query_device_ex: Some(query::query_device_ex),
    query_port: Some(port::query_port),
    sz: size_of::<verbs_context>(),
    ..verbs_context::ZEROED
};

/// Gives an opening of the device a place, and programs a pointer there.
///
/// # Errors
/// EMFILE, ENFILE, ENOMEM: no descriptor for its events, or no place.
pub fn publish(context: Context, device: *mut ibv_device) -> Result<*mut ibv_context, Errno> {
    let events = Descriptor::over(context.as_fd())?;
    let public = ibv_context {
        device,
        ops: OPS,
        // There is no other descriptor, and programs duplicate this one to import the device.
        cmd_fd: events.number(),
        async_fd: events.number(),
        num_comp_vectors: COMP_VECTORS,
        mutex: libc::PTHREAD_MUTEX_INITIALIZER,
        abi_compat: VERBS_ABI_IS_EXTENDED,
        ..ibv_context::ZEROED
    };
    let opening = Opening { device: context, names: Arc::default(), events };
    let slot = OPENINGS.insert(opening, |_| verbs_context { context: public, ..EXTENDED })?;
    Ok(slot.face())
}
