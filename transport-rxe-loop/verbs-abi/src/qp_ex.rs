//! The functions that a queue pair carries with it, to post with: `ibv_wr_start(3)` and those that follow it.
//!
//! Between `ibv_wr_start` and `ibv_wr_complete` or `ibv_wr_abort` a thread has the queue pair's functions for
//! itself. What it asks for is [written down](crate::draft), and posted as a whole: none of the functions between fails,
//! and what went wrong is told at the end.

use std::mem::offset_of;

use cq_verbs::wr::{Placement, RemoteAddr, Selectivity, SendOp};
use transport_rxe_loop::QueuePair;

use crate::ah::ADDRESSES;
use crate::context::OPENINGS;
use crate::convert::bind;
use crate::draft::{Draft, WORD};
use crate::errno::Errno;
use crate::mw::{WINDOWS, Window};
use crate::pd::DOMAINS;
use crate::qp::{self, PAIRS, Pair};
use crate::raw::{Array, In, InOut, Memory, Slot};
use crate::sys::*;

/// A queue pair that carries functions, or anything else.
pub type Qp = *mut ibv_qp_ex;

/// What can be asked for by [`create_qp_ex`].
const KNOWN: u32 =
    IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;

/// `ibv_create_qp_ex(3)`. As `ibv_create_qp`; EOPNOTSUPP: more is asked for than a protection domain and operations, or an
/// operation that the type does not have.
pub fn create_qp_ex(
    context: *mut ibv_context,
    init: InOut<'_, ibv_qp_init_attr_ex>,
) -> Result<*mut ibv_qp, Errno> {
    create(context, init.changed()?)
}

/// Does what `ibv_create_qp_ex` does, with its errors.
pub fn create(
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
    let ops = with_ops.then_some(init.send_ops_flags).map(u32::try_from).transpose();
    let ops = ops.map_err(|_| Errno::OPNOTSUPP)?;
    let mut plain = ibv_qp_init_attr {
        qp_context: init.qp_context,
        send_cq: init.send_cq,
        recv_cq: init.recv_cq,
        srq: init.srq,
        cap: init.cap,
        qp_type: init.qp_type,
        sq_sig_all: init.sq_sig_all,
    };
    let made = qp::create(init.pd, &mut plain, ops)?;
    init.cap = plain.cap;
    Ok(made)
}

/// `ibv_wr_start(3)`.
pub fn wr_start(qp: Qp) {
    let Ok(slot) = PAIRS.find(qp.cast()) else { return };
    slot.side().gate.enter();
    if slot.with(|pair| pair.draft.begin()).is_err() {
        slot.side().gate.leave();
    }
}

/// `ibv_wr_complete(3)`. EINVAL: nothing was started. Otherwise as `ibv_post_send(3)`; EOPNOTSUPP: an operation that the
/// queue pair was not made with. Nothing was posted then.
pub fn wr_complete(qp: Qp) -> Result<(), Errno> {
    end(qp, |Pair { qp, draft, .. }| draft.post(qp))
}

/// `ibv_wr_abort(3)`.
pub fn wr_abort(qp: Qp) {
    // There is nobody to tell that nothing was started.
    let _ = end(qp, |_| Ok(()));
}

/// Ends what was started, and lets the next one in.
fn end(qp: Qp, last: impl FnOnce(&mut Pair) -> Result<(), Errno>) -> Result<(), Errno> {
    let slot = PAIRS.named(qp.cast())?;
    let result = slot.with(|pair| pair.draft.end().then(|| last(pair)))?;
    let Some(result) = result else {
        // Whoever is in now, is another one; or the queue pair was no good to begin with.
        return Err(PAIRS.find(qp.cast()).err().unwrap_or(Errno::INVAL));
    };
    slot.side().gate.leave();
    result
}

/// Goes on with what was started; if nothing was, or something goes wrong, that is told at the end.
fn with(qp: Qp, work: impl FnOnce(&mut Draft, &QueuePair) -> Result<(), Errno>) {
    let _ = PAIRS.named(qp.cast()).and_then(|slot| {
        slot.with(|Pair { qp, draft, .. }| {
            work(draft, qp).unwrap_or_else(|why| draft.fail(why));
        })
    });
}

/// Begins a request.
fn add(qp: Qp, needs: u32, op: SendOp) {
    add_as(qp, needs, |_, _| Ok((op, None)));
}

/// Begins a request, which depends on those before.
fn add_as(
    qp: Qp,
    needs: u32,
    op: impl FnOnce(&Draft, &QueuePair) -> Result<(SendOp, Option<&'static Slot<Window>>), Errno>,
) {
    let Ok(slot) = PAIRS.named(qp.cast()) else { return };
    let wr_id = slot.load(offset_of!(ibv_qp_ex_and_flush, qp.wr_id));
    let wr_flags = slot.load(offset_of!(ibv_qp_ex_and_flush, qp.wr_flags));
    with(qp, |draft, pair| draft.add(needs, (wr_id, wr_flags), |draft| op(draft, pair)));
}

/// `ibv_wr_send(3)`.
pub fn wr_send(qp: Qp) {
    add(qp, IBV_QP_EX_WITH_SEND, SendOp::Send { imm: None });
}

/// `ibv_wr_send_imm(3)`.
pub fn wr_send_imm(qp: Qp, imm_data: u32) {
    let imm = Some(imm_data.to_ne_bytes());
    add(qp, IBV_QP_EX_WITH_SEND_WITH_IMM, SendOp::Send { imm });
}

/// `ibv_wr_send_inv(3)`.
pub fn wr_send_inv(qp: Qp, rkey: u32) {
    add(qp, IBV_QP_EX_WITH_SEND_WITH_INV, SendOp::SendInvalidate { rkey });
}

/// `ibv_wr_rdma_write(3)`.
pub fn wr_rdma_write(qp: Qp, rkey: u32, addr: u64) {
    let remote = RemoteAddr { addr, rkey };
    add(qp, IBV_QP_EX_WITH_RDMA_WRITE, SendOp::Write { remote, imm: None });
}

/// `ibv_wr_rdma_write_imm(3)`.
pub fn wr_rdma_write_imm(qp: Qp, rkey: u32, addr: u64, imm_data: u32) {
    let (remote, imm) = (RemoteAddr { addr, rkey }, Some(imm_data.to_ne_bytes()));
    add(qp, IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM, SendOp::Write { remote, imm });
}

/// `ibv_wr_rdma_read(3)`.
pub fn wr_rdma_read(qp: Qp, rkey: u32, addr: u64) {
    add(qp, IBV_QP_EX_WITH_RDMA_READ, SendOp::Read { remote: RemoteAddr { addr, rkey } });
}

/// `ibv_wr_atomic_cmp_swp(3)`.
pub fn wr_atomic_cmp_swp(qp: Qp, rkey: u32, addr: u64, compare: u64, swap: u64) {
    let remote = RemoteAddr { addr, rkey };
    add(qp, IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, SendOp::CompareSwap { remote, compare, swap });
}

/// `ibv_wr_atomic_fetch_add(3)`.
pub fn wr_atomic_fetch_add(qp: Qp, rkey: u32, addr: u64, add: u64) {
    let remote = RemoteAddr { addr, rkey };
    self::add(qp, IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, SendOp::FetchAdd { remote, add });
}

/// `ibv_wr_atomic_write`: its eight bytes are copied.
pub fn wr_atomic_write(qp: Qp, rkey: u32, addr: u64, bytes: Memory) {
    let remote = RemoteAddr { addr, rkey };
    add(qp, IBV_QP_EX_WITH_ATOMIC_WRITE, SendOp::AtomicWrite { remote });
    with(qp, |draft, _| draft.set_bytes(&bytes.copy(WORD)?));
}

/// `ibv_wr_flush`.
pub fn wr_flush(qp: Qp, rkey: u32, addr: u64, length: usize, placement: u8, selectivity: u8) {
    let levels = [Selectivity::Range, Selectivity::Region];
    let level = levels.into_iter().find(|&level| level as u32 == selectivity.into());
    let Some((length, selectivity)) = u32::try_from(length).ok().zip(level) else {
        return with(qp, |_, _| Err(Errno::INVAL));
    };
    let remote = RemoteAddr { addr, rkey };
    let placement = Placement::from_bits_retain(placement.into());
    add(qp, IBV_QP_EX_WITH_FLUSH, SendOp::Flush { remote, length, placement, selectivity });
}

/// `ibv_wr_local_inv(3)`.
pub fn wr_local_inv(qp: Qp, rkey: u32) {
    add(qp, IBV_QP_EX_WITH_LOCAL_INV, SendOp::LocalInvalidate { rkey });
}

/// `ibv_wr_bind_mw(3)`.
pub fn wr_bind_mw(qp: Qp, mw: *mut ibv_mw, rkey: u32, info: In<'_, ibv_mw_bind_info>) {
    add_as(qp, IBV_QP_EX_WITH_BIND_MW, |draft, qp| {
        let window = WINDOWS.named(mw)?;
        let key = window.with(|window| window.key_behind(qp))?;
        let op = bind(draft.key_of(window).unwrap_or(key), rkey, info.given()?)?;
        Ok((op, Some(window)))
    });
}

/// `ibv_wr_send_tso(3)`: no queue pair has it.
pub fn wr_send_tso(qp: Qp, _: *mut c_void, _: u16, _: u16) {
    with(qp, |_, _| Err(Errno::OPNOTSUPP));
}

/// `ibv_wr_set_ud_addr(3)`.
pub fn wr_set_ud_addr(qp: Qp, ah: *mut ibv_ah, remote_qpn: u32, remote_qkey: u32) {
    with(qp, |draft, _| draft.set_to((ADDRESSES.named(ah)?, remote_qpn, remote_qkey)));
}

/// `ibv_wr_set_xrc_srqn(3)`: no queue pair has it.
pub fn wr_set_xrc_srqn(qp: Qp, _: u32) {
    with(qp, |_, _| Err(Errno::OPNOTSUPP));
}

/// `ibv_wr_set_sge(3)`.
pub fn wr_set_sge(qp: Qp, lkey: u32, addr: u64, length: u32) {
    with(qp, |draft, _| draft.set_sges(&[ibv_sge { addr, length, lkey }]));
}

/// `ibv_wr_set_sge_list(3)`.
pub fn wr_set_sge_list(qp: Qp, num_sge: usize, sg_list: Array<'_, ibv_sge>) {
    with(qp, |draft, qp| draft.set_sges(sg_list.sges(num_sge, qp.caps().max_send_sge)?.list()));
}

/// `ibv_wr_set_inline_data(3)`.
pub fn wr_set_inline_data(qp: Qp, addr: Memory, length: usize) {
    with(qp, |draft, _| draft.set_bytes(&addr.copy(length)?));
}

/// `ibv_wr_set_inline_data_list(3)`.
pub fn wr_set_inline_data_list(qp: Qp, num_buf: usize, buf_list: Array<'_, ibv_data_buf>) {
    with(qp, |draft, _| draft.set_bytes(&buf_list.gather(num_buf)?));
}

#[cfg(test)]
mod tests;
