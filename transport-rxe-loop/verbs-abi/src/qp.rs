//! Queue pairs: `ibv_create_qp(3)`, `ibv_create_qp_ex(3)`, and what is done with one but for
//! [posting](crate::post) and [modifying](crate::modify).

use std::ffi::c_int;
use std::mem::offset_of;
use std::ptr;
use std::sync::Arc;

use cq_core::setup::{QpCaps, QpType};
use transport_rxe_loop::{Cq, ProtectionDomain, QpInit, QueuePair, SharedReceiveQueue};

use crate::acks::Acks;
use crate::arg::{changed, put};
use crate::context::OPENINGS;
use crate::cq::{QUEUES, Queue};
use crate::errno::{Errno, pointer, status};
use crate::gate::Gate;
use crate::modify;
use crate::names::Names;
use crate::pd::DOMAINS;
use crate::qp_ex::{self, Draft};
use crate::srq::SHARED;
use crate::sys::{
    IBV_QP_INIT_ATTR_CREATE_FLAGS, IBV_QP_INIT_ATTR_PD, IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
    IBV_QPS_RESET, IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, ibv_ah_attr, ibv_context, ibv_pd, ibv_qp,
    ibv_qp_attr, ibv_qp_ex, ibv_qp_init_attr, ibv_qp_init_attr_ex, ibv_qp_type, ibv_srq,
};
use crate::table::{Kind, Slot, Table};

/// A queue pair.
pub struct Pair {
    pub qp: QueuePair,
    names: Arc<Names>,
    sq_sig_all: bool,
    /// The way to its peer, as it was given.
    pub path: ibv_ah_attr,
    /// What is posted through functions of its own.
    pub draft: Draft,
}

/// What is reached without it.
#[derive(Default)]
pub struct Side {
    /// Its asynchronous events.
    pub reports: Acks,
    /// Whose turn it is to post through its functions.
    pub gate: Gate,
}

impl Kind for Pair {
    type Public = ibv_qp_ex;
    type Face = ibv_qp;
    const HANDLE: Option<usize> = Some(offset_of!(ibv_qp_ex, qp_base.handle));
    type Side = Side;
}

/// Those of this process.
pub static PAIRS: Table<Pair> = Table::new();

/// What can be asked for by [`create_qp_ex`].
const KNOWN: u32 =
    IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;

/// `ibv_create_qp(3)`. EINVAL: capacities past the device's limits, or a queue of another fabric. ENOMEM: too many, or no
/// memory. EOPNOTSUPP: a type that the device does not have, or that has no shared receives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_create_qp(
    pd: *mut ibv_pd,
    init: *mut ibv_qp_init_attr,
) -> *mut ibv_qp {
    // SAFETY: C's word: what it makes the queue pair of is its own to read and write during the call.
    pointer(unsafe { changed(init) }.and_then(|init| create_qp(pd, init, None)))
}

/// `ibv_create_qp_ex(3)`. As above; EOPNOTSUPP: more is asked for than a protection domain and operations, or an
/// operation that the type does not have.
pub unsafe extern "C" fn create_qp_ex(
    context: *mut ibv_context,
    init: *mut ibv_qp_init_attr_ex,
) -> *mut ibv_qp {
    // SAFETY: as above.
    pointer(unsafe { changed(init) }.and_then(|init| create_with(context, init)))
}

fn create_with(
    context: *mut ibv_context,
    init: &mut ibv_qp_init_attr_ex,
) -> Result<*mut ibv_qp, Errno> {
    OPENINGS.find(context)?;
    let with_flags = init.comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS != 0;
    if init.comp_mask & !KNOWN != 0 || with_flags && init.create_flags != 0 {
        return Err(Errno::OPNOTSUPP);
    }
    if init.comp_mask & IBV_QP_INIT_ATTR_PD == 0 {
        return Err(Errno::INVAL);
    }
    if DOMAINS.find(init.pd)?.with(|domain| domain.opening.face())? != context {
        return Err(Errno::INVAL);
    }
    let with_ops = init.comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS != 0;
    let ops = with_ops.then_some(init.send_ops_flags);
    let pd = init.pd;
    // SAFETY: it begins as the shorter one does, as the header has it, too.
    create_qp(pd, unsafe { &mut *ptr::from_mut(init).cast() }, ops)
}

/// Makes a queue pair that has these operations as functions of its own, if it has such functions.
fn create_qp(
    pd: *mut ibv_pd,
    init: &mut ibv_qp_init_attr,
    ops: Option<u64>,
) -> Result<*mut ibv_qp, Errno> {
    let qp_type = type_of_c(init.qp_type)?;
    let draft = Draft::new(qp_type, ops)?;
    let caps = draft.suffice(modify::caps_of_c(init.cap));
    let domain = DOMAINS.find(pd)?;
    let (qp, names, opening) = domain.with(|domain| {
        let qp = create_in(&domain.pd, init, (qp_type, caps))?;
        Ok::<_, Errno>((qp, Arc::clone(&domain.names), domain.opening))
    })??;
    let (number, cap) = (qp.number(), modify::caps_to_c(qp.caps()));
    let (sq_sig_all, path) = (init.sq_sig_all != 0, ibv_ah_attr::ZEROED);
    let functions = if draft.has_ops() { qp_ex::FUNCTIONS } else { ibv_qp_ex::ZEROED };
    let pair = Pair { qp, names: Arc::clone(&names), sq_sig_all, path, draft };
    let slot = PAIRS.insert(pair, |handle| ibv_qp_ex {
        qp_base: ibv_qp {
            context: opening.face(),
            qp_context: init.qp_context,
            pd,
            send_cq: init.send_cq,
            recv_cq: init.recv_cq,
            srq: init.srq,
            handle,
            qp_num: number,
            state: IBV_QPS_RESET,
            qp_type: init.qp_type,
            ..ibv_qp::ZEROED
        },
        ..functions
    })?;
    names.qps.add(number, slot);
    init.cap = cap;
    Ok(slot.face())
}

/// A type, as C gives it.
///
/// # Errors
/// EOPNOTSUPP: the device does not have it.
pub const fn type_of_c(qp_type: ibv_qp_type) -> Result<QpType, Errno> {
    match qp_type {
        IBV_QPT_RC => Ok(QpType::Rc),
        IBV_QPT_UC => Ok(QpType::Uc),
        IBV_QPT_UD => Ok(QpType::Ud),
        _ => Err(Errno::OPNOTSUPP),
    }
}

/// The device's queue pair.
fn create_in(
    pd: &ProtectionDomain,
    init: &ibv_qp_init_attr,
    (qp_type, caps): (QpType, QpCaps),
) -> Result<QueuePair, Errno> {
    let (send, recv) = (QUEUES.find(init.send_cq)?, QUEUES.find(init.recv_cq)?);
    let sq_sig_all = init.sq_sig_all != 0;
    with_srq(init.srq, |srq| {
        with_cqs(send, recv, |send_cq, recv_cq| {
            let init = QpInit { qp_type, send_cq, recv_cq, srq, caps, sq_sig_all };
            Ok(pd.create_qp(&init)?)
        })?
    })?
}

/// Works with the shared receive queue, if there is to be one.
fn with_srq<R>(
    srq: *const ibv_srq,
    work: impl FnOnce(Option<&SharedReceiveQueue>) -> R,
) -> Result<R, Errno> {
    if srq.is_null() {
        return Ok(work(None));
    }
    SHARED.find(srq)?.with(|shared| work(Some(shared.queue())))
}

/// Works with two completion queues, which may be the same. Their locks are taken in the order of their
/// addresses.
fn with_cqs<R>(
    send: &Slot<Queue>,
    recv: &Slot<Queue>,
    work: impl FnOnce(&Cq, &Cq) -> R,
) -> Result<R, Errno> {
    if ptr::eq(send, recv) {
        return send.with(|queue| work(&queue.cq, &queue.cq));
    }
    let send_first = send.face() < recv.face();
    let (first, second) = if send_first { (send, recv) } else { (recv, send) };
    first.with(|first| {
        second.with(|second| {
            if send_first { work(&first.cq, &second.cq) } else { work(&second.cq, &first.cq) }
        })
    })?
}

/// `ibv_destroy_qp(3)`, once every event of it is acknowledged (N7). Windows that are bound to it lose their keys.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_destroy_qp(qp: *mut ibv_qp) -> c_int {
    status(destroy_qp(qp))
}

fn destroy_qp(qp: *const ibv_qp) -> Result<(), Errno> {
    let slot = PAIRS.find(qp)?;
    let (number, names) = slot.with(|pair| (pair.qp.number(), Arc::clone(&pair.names)))?;
    slot.take()?.qp.destroy();
    names.qps.remove(&number);
    slot.side().reports.wait();
    // Whoever was in the middle of posting will never be done with it.
    slot.side().gate.leave();
    PAIRS.free(slot);
    Ok(())
}

/// `ibv_query_qp(3)`: everything, whatever is asked for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_query_qp(
    qp: *mut ibv_qp,
    attr: *mut ibv_qp_attr,
    _attr_mask: c_int,
    init_attr: *mut ibv_qp_init_attr,
) -> c_int {
    status(query_qp(qp).and_then(|(found, init)| {
        // SAFETY: C's word: there is room for both.
        unsafe { put(attr, found).and_then(|()| put(init_attr, init)) }
    }))
}

fn query_qp(qp: *const ibv_qp) -> Result<(ibv_qp_attr, ibv_qp_init_attr), Errno> {
    let slot = PAIRS.find(qp)?;
    slot.with(|pair| {
        // SAFETY: the public part, which this library changes under the lock only, and C does not.
        let ibv_qp { qp_context, send_cq, recv_cq, srq, qp_type, .. } = unsafe { *slot.face() };
        let attr = modify::to_c(pair);
        // SAFETY: its state, a number that C and this library write.
        unsafe { (&raw mut (*slot.face()).state).write_volatile(attr.qp_state) };
        let init = ibv_qp_init_attr {
            qp_context,
            send_cq,
            recv_cq,
            srq,
            cap: attr.cap,
            qp_type,
            sq_sig_all: pair.sq_sig_all.into(),
            padding: 0,
        };
        (attr, init)
    })
}

/// `ibv_qp_to_qp_ex(3)`: null, if it was made without functions of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_qp_to_qp_ex(qp: *mut ibv_qp) -> *mut ibv_qp_ex {
    let found = PAIRS.find(qp).and_then(|slot| {
        slot.with(|pair| if pair.draft.has_ops() { slot.public() } else { ptr::null_mut() })
    });
    pointer(found)
}

#[cfg(test)]
mod tests;
