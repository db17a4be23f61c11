//! Open devices, and the tables of functions that the header's inline functions call.
//!
//! What a table does not have is NULL, where those functions say EOPNOTSUPP by themselves.

use std::ffi::c_int;
use std::mem::offset_of;
use std::os::fd::AsFd;
use std::sync::Arc;

use transport_rxe_loop::Context;

use crate::descriptor::Descriptor;
use crate::errno::Errno;
use crate::names::Names;
use crate::sys::{VERBS_ABI_IS_EXTENDED, ibv_context, ibv_context_ops, ibv_device, verbs_context};
use crate::table::{Kind, Table};
use crate::{cq, cq_ex, mw, port, post, qp, query, srq};

/// An opening of the device. What is made through it keeps what it needs of it, so that it may be closed first.
pub struct Opening {
    /// What it opened.
    pub device: Context,
    /// What its events name.
    pub names: Arc<Names>,
    /// `async_fd`: readable while there are asynchronous events.
    pub events: Descriptor,
}

impl Kind for Opening {
    type Public = verbs_context;
    type Face = ibv_context;
    const FACE: usize = offset_of!(verbs_context, context);
    const HANDLE: Option<usize> = None;
    type Side = ();
}

/// Those of this process.
pub static OPENINGS: Table<Opening> = Table::new();

/// How many completion vectors there are: nobody is interrupted, so one stands for all.
pub const COMP_VECTORS: c_int = 1;

/// What all contexts have of functions that every header knows.
const OPS: ibv_context_ops = ibv_context_ops {
    alloc_mw: Some(mw::alloc_mw),
    bind_mw: Some(mw::bind_mw),
    dealloc_mw: Some(mw::dealloc_mw),
    poll_cq: Some(cq::poll_cq),
    req_notify_cq: Some(cq::req_notify_cq),
    post_srq_recv: Some(srq::post_srq_recv),
    post_send: Some(post::post_send),
    post_recv: Some(post::post_recv),
    ..ibv_context_ops::ZEROED
};

/// What all contexts have of functions that came later.
const EXTENDED: verbs_context = verbs_context {
    create_cq_ex: Some(cq_ex::create_cq_ex),
    create_qp_ex: Some(qp::create_qp_ex),
    get_srq_num: Some(srq::get_srq_num),
    modify_cq: Some(cq::modify_cq),
    query_device_ex: Some(query::query_device_ex),
    query_port: Some(port::query_port),
    sz: size_of::<verbs_context>(),
    ..verbs_context::ZEROED
};

impl Opening {
    /// Gives it a place, and programs a pointer there.
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
        };
        let opening = Self { device: context, names: Arc::default(), events };
        let slot = OPENINGS.insert(opening, |_| verbs_context { context: public, ..EXTENDED })?;
        Ok(slot.face())
    }
}
