//! `rdma_create_qp(3)` and `rdma_destroy_qp(3)`: the queue pair of an identifier, with completion queues where the program
//! gives none.

use std::mem::{self, offset_of};
use std::ptr;

use cq_verbs::cm::ConnParam;
use cq_verbs::setup::{QpAttr, QpState};
use transport_rxe_loop::cm::CmId;

use crate::errno::Errno;
use crate::modify;
use crate::qp::{self, PAIRS};
use crate::qp_ex;
use crate::raw::{InOut, Slot};
use crate::rdmacm::devices::{bound, domain};
use crate::rdmacm::id::{IDS, Id, OwnQueue, qp_of};
use crate::srq::SHARED;
use crate::sys::*;

const QP: usize = offset_of!(rdma_cm_id, qp);
const PD: usize = offset_of!(rdma_cm_id, pd);

/// Where an identifier has its completion queue and its channel, for sends and for receives.
const QUEUES: [(usize, usize); 2] = [
    (offset_of!(rdma_cm_id, send_cq), offset_of!(rdma_cm_id, send_cq_channel)),
    (offset_of!(rdma_cm_id, recv_cq), offset_of!(rdma_cm_id, recv_cq_channel)),
];

/// `rdma_create_qp(3)`. -1 with EINVAL: the identifier is not bound to a device, has a queue pair, or is of a port space
/// that has no queue pairs of this type; a domain of another context. EINVAL, ENOENT: no identifier. Else as for
/// `ibv_create_qp` and `ibv_create_cq`.
pub fn create_qp(
    id: *const rdma_cm_id,
    pd: *mut ibv_pd,
    init: InOut<'_, ibv_qp_init_attr>,
) -> Result<(), Errno> {
    create_with(id, pd, init.changed()?)
}

/// Does what `rdma_create_qp` does.
pub fn create_with(
    id: *const rdma_cm_id,
    pd: *mut ibv_pd,
    init: &mut ibv_qp_init_attr,
) -> Result<(), Errno> {
    let mut extended = ibv_qp_init_attr_ex {
        qp_context: init.qp_context,
        send_cq: init.send_cq,
        recv_cq: init.recv_cq,
        srq: init.srq,
        cap: init.cap,
        qp_type: init.qp_type,
        sq_sig_all: init.sq_sig_all,
        comp_mask: IBV_QP_INIT_ATTR_PD,
        pd,
        ..ibv_qp_init_attr_ex::ZEROED
    };
    create(id, &mut extended)?;
    (init.send_cq, init.recv_cq) = (extended.send_cq, extended.recv_cq);
    (init.srq, init.cap) = (extended.srq, extended.cap);
    Ok(())
}

/// `rdma_create_qp_ex`, which no page documents: as `rdma_create_qp`, of what `ibv_create_qp_ex` takes.
pub fn create_qp_ex(
    id: *const rdma_cm_id,
    init: InOut<'_, ibv_qp_init_attr_ex>,
) -> Result<(), Errno> {
    let init = init.changed()?;
    let given = (init.comp_mask, init.pd, init.srq, init.send_cq, init.recv_cq);
    create(id, init).inspect_err(|_| {
        // What was made for it is gone again.
        (init.comp_mask, init.pd, init.srq, init.send_cq, init.recv_cq) = given;
    })
}

/// Makes the queue pair, and tells what it is made of: to the program in its attributes, to all in the identifier.
fn create(id: *const rdma_cm_id, init: &mut ibv_qp_init_attr_ex) -> Result<(), Errno> {
    let slot = IDS.find(id)?;
    slot.with(|made| {
        let context = bound(slot)?;
        let qp_type = slot.load::<ibv_qp_type>(offset_of!(rdma_cm_id, qp_type));
        if !qp_of(slot).is_null() || qp_type != init.qp_type {
            return Err(Errno::INVAL);
        }
        let given = init.comp_mask & IBV_QP_INIT_ATTR_PD != 0;
        init.pd = domain(slot, if given { init.pd } else { ptr::null_mut() })?;
        init.comp_mask |= IBV_QP_INIT_ATTR_PD;
        if init.srq.is_null() {
            init.srq = slot.load(offset_of!(rdma_cm_id, srq));
        }
        let queues = complete(slot, context, init)?;
        let qp = qp_ex::create(context, init)?;
        if let Err(errno) = prepare(made.cm()?, qp, qp_type) {
            let _ = qp::destroy_qp(qp);
            return Err(errno);
        }
        slot.store(QP, qp);
        slot.store(PD, init.pd);
        tell(slot, &queues);
        made.queues = queues;
        Ok(())
    })?
}

/// Makes the completion queues that the attributes lack, large enough for all that can be outstanding.
fn complete(
    slot: &Slot<Id>,
    context: *const ibv_context,
    init: &mut ibv_qp_init_attr_ex,
) -> Result<[Option<OwnQueue>; 2], Errno> {
    let make = |cqe: u32| OwnQueue::new(slot, context, cqe.max(1)).map(Some);
    let mut queues = [None, None];
    if init.send_cq.is_null() {
        queues[0] = make(init.cap.max_send_wr)?;
    }
    if init.recv_cq.is_null() {
        let receives = match init.srq.is_null() {
            true => init.cap.max_recv_wr,
            false => SHARED.find(init.srq)?.with(|shared| shared.srq.caps().max_wr)?,
        };
        queues[1] = make(receives)?;
    }
    for (queue, to) in queues.iter().zip([&mut init.send_cq, &mut init.recv_cq]) {
        if let Some(queue) = queue {
            *to = queue.cq.face();
        }
    }
    Ok(queues)
}

/// Lets programs see the queues that were made, or are there no more.
fn tell(slot: &Slot<Id>, queues: &[Option<OwnQueue>; 2]) {
    for (queue, (cq, channel)) in queues.iter().zip(QUEUES) {
        let (queue, its_channel) = match queue {
            Some(queue) => (queue.cq.face(), queue.channel.face()),
            None => (ptr::null_mut(), ptr::null_mut()),
        };
        slot.store(cq, queue);
        slot.store(channel, its_channel);
    }
}

/// Brings a new queue pair of an identifier to where `rdma_create_qp(3)` leaves it. A connected one is in INIT then, where
/// receives can be posted: what connects continues from there. One for datagrams is in RTS.
fn prepare(cm: &CmId, qp: *const ibv_qp, qp_type: ibv_qp_type) -> Result<(), Errno> {
    let steps = [QpState::INIT, QpState::RTR, QpState::RTS];
    let count = if qp_type == IBV_QPT_UD { steps.len() } else { 1 };
    steps[..count].iter().try_for_each(|&to| change(qp, &cm.qp_attr(to)?))
}

/// Gives a queue pair these attributes.
fn change(qp: *const ibv_qp, attr: &QpAttr) -> Result<(), Errno> {
    let mut given = ibv_qp_attr::ZEROED;
    modify::put(attr, &mut given);
    modify::modify(PAIRS.find(qp)?, &given, attr.mask())
}

/// Changes the queue pair of an identifier to a state, with the attributes that the connection manager has.
///
/// # Errors
/// EINVAL: there is none, or the peer has not sent what it needs. As for `ibv_modify_qp`.
pub fn enter(id: &Slot<Id>, to: QpState, rd_atomic: Option<u8>) -> Result<(), Errno> {
    let attr = id.with(|id| Ok::<_, Errno>(id.cm()?.qp_attr(to)?))??;
    let attr = match rd_atomic {
        Some(of_the_peer) if to == QpState::RTR => attr.max_dest_rd_atomic(of_the_peer),
        Some(own) if to == QpState::RTS => attr.max_rd_atomic(own),
        _ => attr,
    };
    change(qp_of(id), &attr)
}

/// Changes it to ERR, if there is one.
pub fn fail(id: &Slot<Id>) {
    // One that is in RESET stays.
    let _ = change(qp_of(id), &QpAttr::new().state(QpState::ERR));
}

/// Brings it to RTS, to answer a request with these parameters.
///
/// # Errors
/// As for [`enter`].
pub fn answer(id: &Slot<Id>, param: &ConnParam<&[u8]>) -> Result<(), Errno> {
    let limit = |wanted: u8| (wanted != ConnParam::MOST).then_some(wanted);
    enter(id, QpState::RTR, limit(param.responder_resources))?;
    enter(id, QpState::RTS, limit(param.initiator_depth))
}

/// Changes it to ERR, if there is one, and rejects: the peer receives REJECTED.
pub fn fail_and_reject(id: &Slot<Id>) {
    if !qp_of(id).is_null() {
        fail(id);
        // There is nothing to reject if the peer has given up, or the identifier is being destroyed.
        let _ = id.with(|id| id.cm().map(|cm| cm.reject(&[])));
    }
}

/// Its number, and whether it takes from a shared receive queue; `None` if there is none.
pub fn number_and_srq(id: &Slot<Id>) -> Option<(u32, bool)> {
    let slot = PAIRS.find(qp_of(id)).ok()?;
    let srq = slot.load::<*mut ibv_srq>(offset_of!(ibv_qp_ex_and_flush, qp.qp_base.srq));
    Some((slot.with(|pair| pair.qp.number()).ok()?, !srq.is_null()))
}

/// `rdma_destroy_qp(3)`, with the completion queues that were made for it, once their events are acknowledged (N7).
/// Nothing happens where there is none.
pub fn destroy_qp(id: *const rdma_cm_id) {
    let Ok(slot) = IDS.find(id) else { return };
    let taken = slot.with(|made| {
        let qp = slot.load::<*mut ibv_qp>(QP);
        slot.store(QP, ptr::null_mut::<ibv_qp>());
        tell(slot, &[None, None]);
        (qp, mem::take(&mut made.queues))
    });
    if let Ok((qp, queues)) = taken {
        // The program may have destroyed it.
        let _ = qp::destroy_qp(qp);
        drop(queues);
    }
}

#[cfg(test)]
mod tests;
