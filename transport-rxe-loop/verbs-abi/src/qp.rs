//! Queue pairs: `ibv_create_qp(3)`, and what is done with one but for
//! [posting](crate::post) and [modifying](crate::modify).

use std::mem::offset_of;
use std::ptr;

use cq_verbs::async_event::Element;
use cq_verbs::setup::{QpCaps, QpType};
use transport_rxe_loop::{ProtectionDomain, QueuePair, SharedReceiveQueue};

use crate::cq::QUEUES;
use crate::draft::Draft;
use crate::errno::Errno;
use crate::pd::make_in;
use crate::raw::{InOut, Key, Kind, Table};
use crate::srq::SHARED;
use crate::sys::*;

/// A queue pair.
pub struct Pair {
    pub qp: QueuePair,
    /// The opening's number.
    id: u64,
    /// Whether every send completes with an entry.
    pub sq_sig_all: bool,
    /// The way to its peer, as it was given.
    pub path: ibv_ah_attr,
    /// What is posted through functions of its own.
    pub draft: Draft,
}

impl Kind for Pair {
    type Public = ibv_qp_ex_and_flush;
    type Face = ibv_qp;
    const HANDLE: Option<usize> = Some(offset_of!(ibv_qp_ex_and_flush, qp.qp_base.handle));

    fn key(&self) -> Option<Key> {
        Some((self.id, Element::Qp(self.qp.number())))
    }
}

/// Those of this process.
pub static PAIRS: Table<Pair> = Table::new();

/// `ibv_create_qp(3)`. EINVAL: capacities past the device's limits, or a queue of another fabric. ENOMEM: too many, or no
/// memory. EOPNOTSUPP: a type that the device does not have, or that has no shared receives.
pub fn create_qp(pd: *mut ibv_pd, init: InOut<'_, ibv_qp_init_attr>) -> Result<*mut ibv_qp, Errno> {
    create(pd, init.changed()?, None)
}

/// Makes a queue pair that has functions of its own for these operations, if there are any.
///
/// # Errors
/// As for [`create_qp`].
pub fn create(
    pd: *mut ibv_pd,
    init: &mut ibv_qp_init_attr,
    ops: Option<u32>,
) -> Result<*mut ibv_qp, Errno> {
    let qp_type = QpType(init.qp_type);
    let draft = Draft::new(qp_type, ops)?;
    let caps = draft.suffice(caps_of_c(init.cap));
    let ((qp, id, functions), context) = make_in(pd, |domain| {
        let qp = create_in(&domain.pd, init, (qp_type, caps));
        qp.map(|qp| (qp, domain.id, domain.functions))
    })?;
    let functions = if ops.is_some() { &functions.qp } else { &ibv_qp_ex_and_flush::ZEROED };
    let (number, cap) = (qp.number(), caps_to_c(qp.caps()));
    let (sq_sig_all, path) = (init.sq_sig_all != 0, ibv_ah_attr::ZEROED);
    let pair = Pair { qp, id, sq_sig_all, path, draft };
    let slot = PAIRS.insert(pair, |handle| {
        let qp_base = ibv_qp {
            context,
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
        };
        ibv_qp_ex_and_flush { qp: ibv_qp_ex { qp_base, ..functions.qp }, ..*functions }
    })?;
    init.cap = cap;
    Ok(slot.face())
}

/// Capacities, as C gives them.
pub const fn caps_of_c(cap: ibv_qp_cap) -> QpCaps {
    QpCaps::USUAL
        .max_send_wr(cap.max_send_wr)
        .max_recv_wr(cap.max_recv_wr)
        .max_send_sge(cap.max_send_sge)
        .max_recv_sge(cap.max_recv_sge)
        .max_inline(cap.max_inline_data)
}

/// Capacities, for C.
pub const fn caps_to_c(caps: QpCaps) -> ibv_qp_cap {
    ibv_qp_cap {
        max_send_wr: caps.max_send_wr,
        max_recv_wr: caps.max_recv_wr,
        max_send_sge: caps.max_send_sge,
        max_recv_sge: caps.max_recv_sge,
        max_inline_data: caps.max_inline,
    }
}

/// The device's queue pair. Its completion queues are used by their handles: others go on polling them.
fn create_in(
    pd: &ProtectionDomain,
    init: &ibv_qp_init_attr,
    (qp_type, caps): (QpType, QpCaps),
) -> Result<QueuePair, Errno> {
    let handle = |cq| QUEUES.find(cq)?.with(|queue| queue.cq.handle());
    let (send_cq, recv_cq) = (&handle(init.send_cq)?, &handle(init.recv_cq)?);
    let sq_sig_all = init.sq_sig_all != 0;
    let create = |srq: Option<&SharedReceiveQueue>| {
        let init = pd.qp(send_cq).recv_cq(recv_cq).srq(srq).qp_type(qp_type).caps(caps);
        Ok(init.sq_sig_all(sq_sig_all).create()?)
    };
    match init.srq.is_null() {
        true => create(None),
        false => SHARED.find(init.srq)?.with(|shared| create(Some(&shared.srq)))?,
    }
}

/// `ibv_destroy_qp(3)`, once every event of it is acknowledged (N7). Windows that are bound to it lose their keys.
pub fn destroy_qp(qp: *const ibv_qp) -> Result<(), Errno> {
    PAIRS.remove(qp)
}

/// `ibv_qp_to_qp_ex(3)`: null, if it was made without functions of its own.
pub fn qp_to_qp_ex(qp: *const ibv_qp) -> Result<*mut ibv_qp_ex, Errno> {
    let slot = PAIRS.find(qp)?;
    slot.with(|pair| if pair.draft.has_ops() { slot.public().cast() } else { ptr::null_mut() })
}

#[cfg(test)]
mod tests;
