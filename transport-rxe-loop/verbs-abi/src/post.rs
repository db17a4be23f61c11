//! Posting: C's lists of requests, as the device takes them (Q4).
//!
//! Sends are put into the queue one by one as they are translated, and posted when the list ends; receives are
//! translated into an array first, a chunk at a time. Nothing is allocated.

use std::ffi::c_int;

use cq_core::transport::{Post, PostError};
use cq_core::wr::{Data, RecvWr, SendOp, SendWr};
use heapless::Vec;
use transport_rxe_loop::{Batch, QpType, QueuePair};

use crate::ah::ADDRESSES;
use crate::arg::given;
use crate::convert::{Gathered, To, bind, bytes, flags, operation, pieces, put_to, renew};
use crate::errno::{Errno, status};
use crate::mw::{Posted, WINDOWS};
use crate::qp::PAIRS;
use crate::srq::{SHARED, Shared};
use crate::sys::{
    IBV_SEND_INLINE, IBV_WR_BIND_MW, IBV_WR_LOCAL_INV, ibv_qp, ibv_recv_wr, ibv_send_wr,
    ibv_send_wr_bind_mw, ibv_srq,
};

/// Receives that are handed over together.
const CHUNK: usize = 16;
/// Receives that any queue takes at most. Where they are flushed as fast as they come, a list that leads to itself
/// ends with that.
const MAX_LIST: usize = 1 << 14;

/// `ibv_post_send(3)`. ENOMEM: the queue is full (Q5). EINVAL: the state, the operation, or what it is made of.
/// ENOENT: an address, a window or a region that is none. `bad_wr` is the first that was refused; what came
/// before it runs.
pub unsafe extern "C" fn post_send(
    qp: *mut ibv_qp,
    wr: *mut ibv_send_wr,
    bad_wr: *mut *mut ibv_send_wr,
) -> c_int {
    let post = |at: &mut *mut ibv_send_wr| {
        // SAFETY: C's word: a list of sends, which nobody changes during the call.
        PAIRS.find(qp)?.with(|pair| unsafe { sends(at, &mut pair.qp) })?
    };
    // SAFETY: C's word: there is room for a pointer.
    unsafe { telling(wr, bad_wr, post) }
}

/// `ibv_post_recv(3)`. ENOMEM: the queue is full. EINVAL: the state, too many pieces, or a shared receive queue.
pub unsafe extern "C" fn post_recv(
    qp: *mut ibv_qp,
    wr: *mut ibv_recv_wr,
    bad_wr: *mut *mut ibv_recv_wr,
) -> c_int {
    let post = |at: &mut *mut ibv_recv_wr| {
        PAIRS.find(qp)?.with(|pair| {
            let max_sge = pair.qp.caps().max_recv_sge;
            // SAFETY: C's word: a list of receives, which nobody changes during the call.
            unsafe { receives(at, max_sge, |list| pair.qp.post_recv(list)) }
        })?
    };
    // SAFETY: C's word: there is room for a pointer.
    unsafe { telling(wr, bad_wr, post) }
}

/// `ibv_post_srq_recv(3)`. ENOMEM: the queue is full. EINVAL: too many pieces.
pub unsafe extern "C" fn post_srq_recv(
    srq: *mut ibv_srq,
    wr: *mut ibv_recv_wr,
    bad_wr: *mut *mut ibv_recv_wr,
) -> c_int {
    let post = |at: &mut *mut ibv_recv_wr| {
        SHARED.find(srq)?.with(|Shared { srq, .. }| {
            let max_sge = srq.caps().max_sge;
            // SAFETY: C's word: a list of receives, which nobody changes during the call.
            unsafe { receives(at, max_sge, |list| srq.post_recv(list)) }
        })?
    };
    // SAFETY: C's word: there is room for a pointer.
    unsafe { telling(wr, bad_wr, post) }
}

/// Posts a list, and tells C where that stopped, if it did.
///
/// # Safety
/// If `bad` is not null, there is room for a pointer.
#[inline]
unsafe fn telling<W>(
    first: *mut W,
    bad: *mut *mut W,
    post: impl FnOnce(&mut *mut W) -> Result<(), Errno>,
) -> c_int {
    if bad.is_null() {
        return status(Err(Errno::INVAL));
    }
    let mut at = first;
    let result = post(&mut at);
    if result.is_err() {
        // SAFETY: the caller's word.
        unsafe { bad.write(at) };
    }
    status(result)
}

/// Posts the receives of a list, from `at` on, which is left at the first that was refused.
///
/// # Errors
/// Why it was. EINVAL: there is no list. ENOMEM: it is longer than any queue.
///
/// # Safety
/// It is null, or a list of receives with their pieces, which nobody changes meanwhile.
#[inline]
unsafe fn receives(
    at: &mut *mut ibv_recv_wr,
    max_sge: u32,
    mut post: impl FnMut(&[RecvWr<'_>]) -> Result<(), PostError>,
) -> Result<(), Errno> {
    if at.is_null() {
        return Err(Errno::INVAL);
    }
    let mut left = MAX_LIST;
    while !at.is_null() {
        let mut chunk = Vec::<RecvWr<'_>, CHUNK>::new();
        // SAFETY: the caller's word.
        let (next, translated) = unsafe { translate(*at, max_sge, &mut chunk) };
        left = left.checked_sub(chunk.len()).ok_or(Errno::NOMEM)?;
        if let Err(PostError { posted, why }) = post(&chunk) {
            // SAFETY: as above: so many of the list were translated.
            (0..posted).for_each(|_| *at = unsafe { (**at).next });
            return Err(why.into());
        }
        *at = next;
        translated?;
    }
    Ok(())
}

/// Translates the receives of a list, as many as there is room for; says which is the next one, and why it can't
/// be translated, if it can't.
///
/// # Safety
/// As of [`receives`].
#[inline]
unsafe fn translate<'w>(
    mut at: *mut ibv_recv_wr,
    max_sge: u32,
    chunk: &mut Vec<RecvWr<'w>, CHUNK>,
) -> (*mut ibv_recv_wr, Result<(), Errno>) {
    // SAFETY: the caller's word.
    while let Some(wr) = unsafe { at.as_ref() } {
        // SAFETY: as above.
        let sges = match unsafe { pieces(wr.sg_list, wr.num_sge, max_sge) } {
            Ok(sges) => sges,
            Err(why) => return (at, Err(why)),
        };
        if chunk.push(RecvWr::new(wr.wr_id, sges)).is_err() {
            break;
        }
        at = wr.next;
    }
    (at, Ok(()))
}

/// Posts the sends of a list, from `at` on, which is left at the first that was refused.
///
/// # Safety
/// It is null, or a list of sends with their pieces, which nobody changes meanwhile.
unsafe fn sends(at: &mut *mut ibv_send_wr, qp: &mut QueuePair) -> Result<(), Errno> {
    let (max_sge, qp_type) = (qp.caps().max_send_sge, qp.qp_type());
    let mut batch = qp.batch();
    let result = loop {
        // SAFETY: the caller's word.
        let wr = match unsafe { given(*at) } {
            Ok(wr) => wr,
            Err(why) => break Err(why),
        };
        // SAFETY: as above.
        if let Err(why) = unsafe { add(&mut batch, wr, max_sge, qp_type) } {
            break Err(why);
        }
        if wr.next.is_null() {
            break Ok(());
        }
        *at = wr.next;
    };
    batch.post();
    result
}

/// Translates a send, and adds it.
///
/// # Safety
/// As of [`sends`].
#[inline]
unsafe fn add(
    batch: &mut Batch<'_>,
    wr: &ibv_send_wr,
    max_sge: u32,
    qp_type: QpType,
) -> Result<(), Errno> {
    if matches!(wr.opcode, IBV_WR_BIND_MW | IBV_WR_LOCAL_INV) {
        return add_local(batch, wr);
    }
    // SAFETY: the caller's word.
    let sges = unsafe { pieces(wr.sg_list, wr.num_sge, max_sge) }?;
    let gathered;
    let data = match sges {
        _ if wr.send_flags & IBV_SEND_INLINE == 0 => Data::Sges(sges),
        [] => Data::Inline(&[]),
        // SAFETY: as above.
        [piece] => Data::Inline(unsafe { bytes(piece) }?),
        _ => {
            // SAFETY: as above.
            gathered = unsafe { Gathered::of_pieces(sges) }?;
            Data::Inline(gathered.bytes())
        }
    };
    let (wr_id, flags) = (wr.wr_id, flags(wr.send_flags)?);
    // SAFETY: as above.
    unsafe {
        operation(
            wr,
            #[inline(always)]
            |op| {
                let request = SendWr { wr_id, op, flags, data };
                if qp_type != QpType::Ud || !matches!(op, SendOp::Send { .. }) {
                    return Ok(batch.put(&request)?);
                }
                put_to(batch, &request, destination(wr)?)
            },
        )
    }
}

/// Where a datagram goes.
///
/// # Safety
/// C has written that.
unsafe fn destination(wr: &ibv_send_wr) -> Result<To, Errno> {
    // SAFETY: the caller's word.
    let to = unsafe { &wr.wr.ud };
    Ok((ADDRESSES.named(to.ah)?, to.remote_qpn, to.remote_qkey))
}

/// Translates what is about windows of this side, and adds it. What came before is posted first, so that the queue
/// pair tells what is to be done before it.
#[cold]
fn add_local(batch: &mut Batch<'_>, wr: &ibv_send_wr) -> Result<(), Errno> {
    let (window, op) = match wr.opcode {
        IBV_WR_BIND_MW => {
            batch.post();
            // SAFETY: C has written what belongs to the operation.
            let ibv_send_wr_bind_mw { mw, rkey, bind_info, .. } = unsafe { &wr.anon_2.bind_mw };
            let window = WINDOWS.named(*mw)?;
            let key = window.with(|window| window.key_behind(batch.queue_pair()))?;
            (Some(window), bind(key, *rkey, bind_info)?)
        }
        // SAFETY: as above; of numbers, any bits are some.
        _ => (None, SendOp::LocalInvalidate { rkey: unsafe { wr.anon_1.invalidate_rkey } }),
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
