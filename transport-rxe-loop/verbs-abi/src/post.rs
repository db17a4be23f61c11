//! Posting: C's lists of requests, as the device takes them (Q4).
//!
//! Sends are put into the queue one by one as they are translated, and posted when the list ends; receives are
//! translated into an array first, a chunk at a time. Nothing is allocated.

use cq_verbs::post::PostError;
use cq_verbs::wr::{Data, RecvWr, SendOp, SendWr};
use heapless::Vec;
use transport_rxe_loop::{Batch, QpType, QueuePair};

use crate::ah::ADDRESSES;
use crate::convert::{To, bind, flags, operation, put_to, renew};
use crate::errno::Errno;
use crate::mw::{Posted, WINDOWS};
use crate::qp::PAIRS;
use crate::raw::{Linked, List, Out};
use crate::srq::{SHARED, Shared};
use crate::sys::*;

/// Receives that are handed over together.
const CHUNK: usize = 16;
/// Receives that any queue takes at most. Where they are flushed as fast as they come, a list that leads to itself
/// ends with that.
const MAX_LIST: usize = 1 << 14;

/// `ibv_post_send(3)`. ENOMEM: the queue is full (Q5). EINVAL: the state, the operation, or what it is made of.
/// ENOENT: an address, a window or a region that is none. `bad_wr` is the first that was refused; what came
/// before it runs.
#[inline(always)]
pub fn post_send(
    qp: *const ibv_qp,
    wr: List<'_, ibv_send_wr>,
    bad_wr: Out<'_, *mut ibv_send_wr>,
) -> Result<(), Errno> {
    telling(wr, bad_wr, |at| PAIRS.find(qp)?.with(|pair| sends(at, &mut pair.qp))?)
}

/// `ibv_post_recv(3)`. ENOMEM: the queue is full. EINVAL: the state, too many SGEs, or a shared receive queue.
#[inline(always)]
pub fn post_recv(
    qp: *const ibv_qp,
    wr: List<'_, ibv_recv_wr>,
    bad_wr: Out<'_, *mut ibv_recv_wr>,
) -> Result<(), Errno> {
    telling(wr, bad_wr, |at| {
        PAIRS.find(qp)?.with(|pair| {
            let max_sge = pair.qp.caps().max_recv_sge;
            receives(at, max_sge, |list| pair.qp.post_recv(list))
        })?
    })
}

/// `ibv_post_srq_recv(3)`. ENOMEM: the queue is full. EINVAL: too many SGEs.
pub fn post_srq_recv(
    srq: *const ibv_srq,
    wr: List<'_, ibv_recv_wr>,
    bad_wr: Out<'_, *mut ibv_recv_wr>,
) -> Result<(), Errno> {
    telling(wr, bad_wr, |at| {
        SHARED.find(srq)?.with(|Shared { srq, .. }| {
            let max_sge = srq.caps().max_sge;
            receives(at, max_sge, |list| srq.post_recv(list))
        })?
    })
}

/// Posts a list, and tells C where that stopped, if it did.
#[inline]
fn telling<'a, W: Linked>(
    mut at: List<'a, W>,
    bad: Out<'_, *mut W>,
    post: impl FnOnce(&mut List<'a, W>) -> Result<(), Errno>,
) -> Result<(), Errno> {
    bad.check()?;
    post(&mut at).inspect_err(|_| {
        // There is room.
        let _ = bad.put(at.pointer());
    })
}

/// Posts the receives of a list, from `at` on, which is left at the first that was refused.
///
/// # Errors
/// Why it was. EINVAL: there is no list. ENOMEM: it is longer than any queue.
#[inline]
fn receives(
    at: &mut List<'_, ibv_recv_wr>,
    max_sge: u32,
    mut post: impl FnMut(&[RecvWr<'_>]) -> Result<(), PostError>,
) -> Result<(), Errno> {
    at.first()?;
    let mut left = MAX_LIST;
    while !at.is_empty() {
        let mut chunk = Vec::<RecvWr<'_>, CHUNK>::new();
        let mut next = *at;
        // As many as the chunk holds, and why one can't be translated, if it can't.
        let translated = loop {
            let Ok(wr) = next.first() else { break Ok(()) };
            match next.sges(max_sge) {
                Err(why) => break Err(why),
                Ok(sges) if chunk.push(RecvWr::new(wr.wr_id, sges.list())).is_err() => break Ok(()),
                Ok(_) => next = next.next(),
            }
        };
        left = left.checked_sub(chunk.len()).ok_or(Errno::NOMEM)?;
        if let Err(PostError { posted, why }) = post(&chunk) {
            *at = at.after(posted);
            return Err(why.into());
        }
        *at = next;
        translated?;
    }
    Ok(())
}

/// Posts the sends of a list, from `at` on, which is left at the first that was refused.
// Called, it would cost seventeen instructions more.
#[inline(always)]
fn sends(at: &mut List<'_, ibv_send_wr>, qp: &mut QueuePair) -> Result<(), Errno> {
    let (max_sge, qp_type) = (qp.caps().max_send_sge, qp.qp_type());
    let mut batch = qp.batch();
    let result = loop {
        if let Err(why) = add(&mut batch, *at, max_sge, qp_type) {
            break Err(why);
        }
        let next = at.next();
        if next.is_empty() {
            break Ok(());
        }
        *at = next;
    };
    batch.post();
    result
}

/// Translates the first send of a list, and adds it.
#[inline]
fn add(
    batch: &mut Batch<'_>,
    at: List<'_, ibv_send_wr>,
    max_sge: u32,
    qp_type: QpType,
) -> Result<(), Errno> {
    let wr = at.first()?;
    if matches!(wr.opcode, IBV_WR_BIND_MW | IBV_WR_LOCAL_INV) {
        return add_local(batch, wr);
    }
    let sges = at.sges(max_sge)?;
    let gathered;
    let data = match sges.list() {
        sges if wr.send_flags & IBV_SEND_INLINE == 0 => Data::Sges(sges),
        [] => Data::Inline(&[]),
        [_] => Data::Inline(sges.first_bytes()?),
        _ => {
            gathered = sges.gather()?;
            Data::Inline(&gathered)
        }
    };
    let (wr_id, flags) = (wr.wr_id, flags(wr.send_flags)?);
    operation(
        wr,
        #[inline(always)]
        |op| {
            let request = SendWr { wr_id, op, flags, data };
            if qp_type != QpType::UD || !matches!(op, SendOp::Send { .. }) {
                return Ok(batch.put(&request)?);
            }
            put_to(batch, &request, destination(wr)?)
        },
    )
}

/// Where a datagram goes.
fn destination(wr: &ibv_send_wr) -> Result<To, Errno> {
    let to = wr.wr.ud();
    Ok((ADDRESSES.named(to.ah)?, to.remote_qpn, to.remote_qkey))
}

/// Translates what is about windows of this side, and adds it. What came before is posted first, so that the queue
/// pair tells what is to be done before it.
#[cold]
fn add_local(batch: &mut Batch<'_>, wr: &ibv_send_wr) -> Result<(), Errno> {
    let (window, op) = match wr.opcode {
        IBV_WR_BIND_MW => {
            batch.post();
            let ibv_send_wr_bind_mw { mw, rkey, bind_info, .. } = wr.bind_mw();
            let window = WINDOWS.named(*mw)?;
            let key = window.with(|window| window.key_behind(batch.queue_pair()))?;
            (Some(window), bind(key, *rkey, bind_info)?)
        }
        _ => (None, SendOp::LocalInvalidate { rkey: wr.imm_or_rkey() }),
    };
    let (wr_id, flags, data) = (wr.wr_id, flags(wr.send_flags)?, Data::Sges(&[]));
    batch.put(&SendWr { wr_id, op, flags, data })?;
    let qp = batch.queue_pair();
    renew(&op, window, Posted { qp_num: qp.number(), position: qp.sends_posted() });
    Ok(())
}

#[cfg(test)]
mod operations_tests;
#[cfg(test)]
mod tests;
