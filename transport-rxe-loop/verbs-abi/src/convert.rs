//! What C's work requests are made of, for both ways to post them.

use std::mem::offset_of;

use cq_verbs::setup::Access;
use cq_verbs::wr::{RemoteAddr, SendFlags, SendOp, SendWr, WindowBind};
use transport_rxe_loop::{AddressHandle, Batch, Destination};

use crate::errno::Errno;
use crate::mr::REGIONS;
use crate::mw::{Posted, Window};
use crate::raw::Slot;
use crate::sys::*;

/// The low byte of a window's key, which binding changes.
const LOW: u32 = 0xff;

/// Where a datagram goes: the address, the number of the queue pair there, and its queue key.
pub type To = (&'static Slot<AddressHandle>, u32, u32);

/// `ibv_send_wr::send_flags`, and `ibv_qp_ex::wr_flags`, without INLINE.
///
/// # Errors
/// EINVAL: one that the device does not have: IP_CSUM, or what nobody knows.
#[inline]
pub fn flags(send_flags: c_uint) -> Result<SendFlags, Errno> {
    SendFlags::from_bits(send_flags & !IBV_SEND_INLINE).ok_or(Errno::INVAL)
}

/// What a request with data does, and goes on with that. Each operation does so by itself, so that it is written
/// once, where the queue takes it from; put together first, it would cost thirty instructions more.
///
/// # Errors
/// EINVAL: nothing that the device can, or that can be asked for so. Those of `then`.
#[inline(always)]
pub fn operation<R>(
    wr: &ibv_send_wr,
    then: impl FnOnce(SendOp) -> Result<R, Errno>,
) -> Result<R, Errno> {
    let imm = || Some(wr.imm_or_rkey().to_ne_bytes());
    let remote = || {
        let rdma = wr.wr.rdma();
        RemoteAddr { addr: rdma.remote_addr, rkey: rdma.rkey }
    };
    match wr.opcode {
        IBV_WR_RDMA_WRITE => then(SendOp::Write { remote: remote(), imm: None }),
        IBV_WR_RDMA_WRITE_WITH_IMM => then(SendOp::Write { remote: remote(), imm: imm() }),
        IBV_WR_SEND => then(SendOp::Send { imm: None }),
        IBV_WR_SEND_WITH_IMM => then(SendOp::Send { imm: imm() }),
        IBV_WR_SEND_WITH_INV => then(SendOp::SendInvalidate { rkey: wr.imm_or_rkey() }),
        IBV_WR_RDMA_READ => then(SendOp::Read { remote: remote() }),
        IBV_WR_ATOMIC_CMP_AND_SWP | IBV_WR_ATOMIC_FETCH_AND_ADD => then(atomic(wr)),
        IBV_WR_ATOMIC_WRITE => then(SendOp::AtomicWrite { remote: remote() }),
        _ => Err(Errno::INVAL),
    }
}

fn atomic(wr: &ibv_send_wr) -> SendOp {
    let atomic = wr.wr.atomic();
    let remote = RemoteAddr { addr: atomic.remote_addr, rkey: atomic.rkey };
    match wr.opcode {
        IBV_WR_ATOMIC_FETCH_AND_ADD => SendOp::FetchAdd { remote, add: atomic.compare_add },
        _ => SendOp::CompareSwap { remote, compare: atomic.compare_add, swap: atomic.swap },
    }
}

/// Binding a window by the key that it has then. Of the new key, its low byte counts: the rest is the window's. No
/// region has the key 0: without one, the request fails as the device has it.
///
/// # Errors
/// ENOENT: a region that is none (any more).
#[cold]
pub fn bind(window: u32, rkey: u32, info: &ibv_mw_bind_info) -> Result<SendOp, Errno> {
    let lkey = match info.mr.is_null() {
        true => 0,
        false => REGIONS.named(info.mr)?.with(|region| region.lkey())?,
    };
    let access = Access::from_bits_retain(info.mw_access_flags);
    let &ibv_mw_bind_info { addr, length, .. } = info;
    let rkey = window & !LOW | rkey & LOW;
    Ok(SendOp::BindWindow(WindowBind { window, rkey, lkey, addr, length, access }))
}

/// Tells C, and the window, the key that it gets, once the request that binds it is posted.
pub fn renew(op: &SendOp, window: Option<&'static Slot<Window>>, by: Posted) {
    if let (SendOp::BindWindow(bind), Some(window)) = (op, window) {
        // One that was deallocated meanwhile gets none.
        let _ = window.with(|window| window.promise(bind.rkey, by));
        window.store(offset_of!(ibv_mw, rkey), bind.rkey);
    }
}

/// Adds a datagram.
///
/// # Errors
/// Why it is refused (Q4). ENOENT: the address was destroyed.
#[inline(never)]
pub fn put_to(
    batch: &mut Batch<'_>,
    request: &SendWr<'_>,
    (address, qp_num, qkey): To,
) -> Result<(), Errno> {
    address.with(|ah| batch.put_to(request, &Destination::new(ah, qp_num, qkey)))??;
    Ok(())
}
