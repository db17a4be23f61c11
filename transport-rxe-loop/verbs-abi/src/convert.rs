//! What C's work requests are made of, for both ways to post them.

use std::ffi::c_uint;
use std::{ptr, slice};

use cq_core::setup::Access;
use cq_core::wr::{RemoteAddr, SendFlags, SendOp, SendWr, WindowBind};
use heapless::Vec;
use transport_rxe_loop::{Batch, Destination};

use crate::ah::Address;
use crate::errno::Errno;
use crate::mr::REGIONS;
use crate::mw::{Posted, Window};
use crate::sys::{
    IBV_SEND_INLINE, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_WRITE,
    IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND,
    IBV_WR_SEND_WITH_IMM, IBV_WR_SEND_WITH_INV, ibv_mw_bind_info, ibv_send_wr, ibv_sge,
};
use crate::table::Slot;

/// Inline bytes that any queue pair takes at most.
pub const MAX_INLINE: usize = 256;
/// The low byte of a window's key, which binding changes.
const LOW: u32 = 0xff;

/// Where a datagram goes: the address, the number of the queue pair there, and its queue key.
pub type To = (&'static Slot<Address>, u32, u32);

/// A list of pieces.
///
/// # Errors
/// EINVAL: there are fewer than none, more than the queue takes, or no list.
///
/// # Safety
/// If it is not null, it has as many pieces as it says, which nobody changes as long as the result is used.
#[inline]
pub unsafe fn pieces<'a>(
    list: *const ibv_sge,
    count: impl TryInto<u32>,
    max: u32,
) -> Result<&'a [ibv_sge], Errno> {
    match count.try_into() {
        Ok(0) => Ok(&[]),
        // More are not looked at: the device would refuse them.
        Ok(count) if count <= max && !list.is_null() => {
            // SAFETY: the caller's word.
            Ok(unsafe { slice::from_raw_parts(list, count as usize) })
        }
        _ => Err(Errno::INVAL),
    }
}

/// The bytes of a piece, to be copied at once.
///
/// # Errors
/// EINVAL: they would begin at null.
///
/// # Safety
/// As of [`memory`].
#[inline]
pub unsafe fn bytes(piece: &ibv_sge) -> Result<&[u8], Errno> {
    let (first, length) = extent(piece);
    // SAFETY: the caller's word.
    unsafe { memory(first, length) }
}

fn extent(piece: &ibv_sge) -> (*const u8, usize) {
    (ptr::with_exposed_provenance(piece.addr as usize), piece.length as usize)
}

/// Bytes that C has, to be copied into a request.
///
/// # Errors
/// EINVAL: they would begin at null, or are more than any queue pair takes inline.
///
/// # Safety
/// If that is not null, so many bytes are there, which nobody changes as long as the result is used.
#[inline]
pub unsafe fn memory<'a>(first: *const u8, length: usize) -> Result<&'a [u8], Errno> {
    match (first.is_null(), length) {
        (_, 0) => Ok(&[]),
        // SAFETY: the caller's word.
        (false, 1..=MAX_INLINE) => Ok(unsafe { slice::from_raw_parts(first, length) }),
        _ => Err(Errno::INVAL),
    }
}

/// Inline bytes from several places, one after another.
pub struct Gathered(Vec<u8, MAX_INLINE>);

impl Gathered {
    /// Those of pieces.
    ///
    /// # Errors
    /// As of [`of`](Self::of).
    ///
    /// # Safety
    /// As of [`of`](Self::of).
    #[inline(never)]
    pub unsafe fn of_pieces(pieces: &[ibv_sge]) -> Result<Self, Errno> {
        // SAFETY: the caller's word.
        unsafe { Self::of(pieces.iter().map(extent)) }
    }

    /// So many from each place.
    ///
    /// # Errors
    /// EINVAL: there are more than any queue pair takes, or they would begin at null.
    ///
    /// # Safety
    /// As of [`memory`].
    pub unsafe fn of(places: impl Iterator<Item = (*const u8, usize)>) -> Result<Self, Errno> {
        let mut all = Vec::new();
        for (first, length) in places {
            // SAFETY: the caller's word.
            let bytes = unsafe { memory(first, length) }?;
            all.extend_from_slice(bytes).map_err(|_| Errno::INVAL)?;
        }
        Ok(Self(all))
    }

    /// All of them.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

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
///
/// # Safety
/// C has written what belongs to the operation.
#[inline(always)]
pub unsafe fn operation<R>(
    wr: &ibv_send_wr,
    then: impl FnOnce(SendOp) -> Result<R, Errno>,
) -> Result<R, Errno> {
    // SAFETY: the caller's word; of numbers, any bits are some.
    let imm_data = unsafe { wr.anon_1.imm_data };
    let imm = || Some(imm_data.to_ne_bytes());
    let remote = || {
        // SAFETY: the caller's word; of numbers, any bits are some.
        let rdma = unsafe { &wr.wr.rdma };
        RemoteAddr { addr: rdma.remote_addr, rkey: rdma.rkey }
    };
    match wr.opcode {
        IBV_WR_RDMA_WRITE => then(SendOp::Write { remote: remote(), imm: None }),
        IBV_WR_RDMA_WRITE_WITH_IMM => then(SendOp::Write { remote: remote(), imm: imm() }),
        IBV_WR_SEND => then(SendOp::Send { imm: None }),
        IBV_WR_SEND_WITH_IMM => then(SendOp::Send { imm: imm() }),
        IBV_WR_SEND_WITH_INV => then(SendOp::SendInvalidate { rkey: imm_data }),
        IBV_WR_RDMA_READ => then(SendOp::Read { remote: remote() }),
        // SAFETY: the caller's word, of both.
        IBV_WR_ATOMIC_CMP_AND_SWP | IBV_WR_ATOMIC_FETCH_AND_ADD => then(unsafe { atomic(wr) }),
        IBV_WR_ATOMIC_WRITE => then(SendOp::AtomicWrite { remote: remote() }),
        _ => Err(Errno::INVAL),
    }
}

/// # Safety
/// It is an atomic, and C has written what belongs to it.
unsafe fn atomic(wr: &ibv_send_wr) -> SendOp {
    // SAFETY: the caller's word.
    let atomic = unsafe { &wr.wr.atomic };
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
        false => REGIONS.named(info.mr)?.with(|region| region.region.lkey())?,
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
        // SAFETY: a number of the public part, which C and this library write.
        unsafe { (&raw mut (*window.face()).rkey).write_volatile(bind.rkey) };
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
    address.with(|address| {
        batch.put_to(request, &Destination { ah: &address.handle, qp_num, qkey })
    })??;
    Ok(())
}
