//! Posting: lists of requests become chains of what libibverbs takes, on the stack, some at a time.

#![allow(unsafe_code)]

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::ptr;

use cq_verbs::post::WrError;
use cq_verbs::wr::{Data, RecvWr, RemoteAddr, SendFlags, SendOp, SendWr, Sge};
use rdma_sys::{
    atomic_t, bind_mw_tso_union_t, ibv_recv_wr, ibv_send_flags, ibv_send_wr, ibv_sge,
    ibv_wr_opcode, imm_data_invalidated_rkey_union_t, qp_type_t, rdma_t, tso_t, ud_t, wr_t, xrc_t,
};

/// How many requests are handed over in one call at most: two kilobytes of them.
const CHAIN: usize = 16;

/// A request as libibverbs takes it.
pub trait Raw: Sized {
    /// Puts `next` behind it.
    fn link(&mut self, next: *mut Self);
}

impl Raw for ibv_send_wr {
    fn link(&mut self, next: *mut Self) {
        self.next = next;
    }
}

impl Raw for ibv_recv_wr {
    fn link(&mut self, next: *mut Self) {
        self.next = next;
    }
}

/// What the device refused.
#[derive(Clone, Copy, Debug)]
pub struct Failure {
    /// How many requests of the list were posted, or may have been.
    pub posted: usize,
    /// Why the next one was not, or what is not known.
    pub why: Why,
}

/// Who refused a request.
#[derive(Clone, Copy, Debug)]
pub enum Why {
    /// It was not handed to the device.
    Refused(WrError),
    /// The device, with this errno.
    Device(c_int),
    /// The device failed with this errno, and named none of the requests of the last chain.
    Unknown(c_int),
}

/// Hands a list over in chains of up to [`CHAIN`] requests, each made by `make`, which may use an SGE
/// of its own. `submit` is the device's call.
///
/// # Safety
/// For a chain that `make` made, whose last request is followed by none, `submit` may be called with its
/// first request; it returns 0 or an errno, and keeps no pointer to the chain.
#[inline]
pub unsafe fn post<'w, W, R: Raw>(
    list: &'w [W],
    make: impl Fn(&'w W, &mut MaybeUninit<ibv_sge>) -> Result<R, WrError>,
    submit: impl Fn(*mut R, &mut *mut R) -> c_int,
) -> Result<(), Failure> {
    let mut posted = 0;
    for part in list.chunks(CHAIN) {
        let mut chain = [const { MaybeUninit::<R>::uninit() }; CHAIN];
        let mut sges = [const { MaybeUninit::uninit() }; CHAIN];
        let first = chain.as_mut_ptr().cast::<R>();
        let (mut made, mut refused) = (0, None);
        for (wr, sge) in part.iter().zip(&mut sges) {
            match make(wr, sge) {
                // SAFETY: a part has no more than `CHAIN` requests, so this place is in the chain.
                Ok(raw) => unsafe { first.add(made).write(raw) },
                Err(why) => {
                    refused = Some(why);
                    break;
                }
            }
            if made > 0 {
                // SAFETY: both places are in the chain, and the one before has been written.
                unsafe { (*first.add(made - 1)).link(first.add(made)) };
            }
            made += 1;
        }
        if made > 0 {
            let mut bad = ptr::null_mut();
            let errno = submit(first, &mut bad);
            if errno != 0 {
                let nth = position(first, bad, made);
                let why = if nth < made { Why::Device(errno) } else { Why::Unknown(errno) };
                return Err(Failure { posted: posted + nth, why });
            }
            posted += made;
        }
        if let Some(why) = refused {
            return Err(Failure { posted, why: Why::Refused(why) });
        }
    }
    Ok(())
}

/// How many of a chain of `made` requests the device posted before it stopped: all, if it names none of them, since each may
/// be posted.
#[cold]
fn position<R>(first: *mut R, bad: *mut R, made: usize) -> usize {
    (0..made).find(|&nth| ptr::eq(first.wrapping_add(nth), bad)).unwrap_or(made)
}

/// A send request; a datagram goes to `to`. `None` if there is no such operation.
#[inline]
pub fn send_wr(
    wr: &SendWr<'_>,
    to: Option<ud_t>,
    inline: &mut MaybeUninit<ibv_sge>,
) -> Option<ibv_send_wr> {
    let (sg_list, num_sge, inline) = match wr.data {
        // `Sge` is `ibv_sge` (asserted in `layout`).
        Data::Sges(sges) => (sges.as_ptr().cast_mut().cast(), count(sges), 0),
        Data::Inline(bytes) => {
            // A length that does not fit is more than any queue pair takes; so is this one then.
            let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
            let sge = ibv_sge { addr: bytes.as_ptr().expose_provenance() as u64, length, lkey: 0 };
            (ptr::from_mut(inline.write(sge)), 1, ibv_send_flags::IBV_SEND_INLINE.0)
        }
    };
    let (opcode, imm, operands) = operation(&wr.op)?;
    Some(ibv_send_wr {
        wr_id: wr.wr_id,
        next: ptr::null_mut(),
        sg_list,
        num_sge,
        opcode,
        // Only flags that have a name: with the bit of "inline" the device would read the memory of the SGEs.
        send_flags: wr.flags.intersection(SendFlags::all()).bits() | inline,
        imm_data_invalidated_rkey_union: imm_data_invalidated_rkey_union_t {
            imm_data: u32::from_ne_bytes(imm),
        },
        wr: to.map_or(operands, |ud| wr_t { ud }),
        qp_type: qp_type_t { xrc: xrc_t { remote_srqn: 0 } },
        bind_mw_tso_union: bind_mw_tso_union_t {
            tso: tso_t { hdr: ptr::null_mut(), hdr_sz: 0, mss: 0 },
        },
    })
}

/// Hands a list of receives over.
///
/// # Safety
/// As for [`post`]; what the requests name need not be alive when `submit` returns.
#[inline]
pub unsafe fn post_recvs(
    list: &[RecvWr<'_>],
    submit: impl Fn(*mut ibv_recv_wr, &mut *mut ibv_recv_wr) -> c_int,
) -> Result<(), Failure> {
    // SAFETY: the caller ensures the same.
    unsafe { post(list, |wr, _| Ok(recv_wr(wr)), submit) }
}

/// A receive request.
#[inline]
fn recv_wr(wr: &RecvWr<'_>) -> ibv_recv_wr {
    ibv_recv_wr {
        wr_id: wr.wr_id,
        next: ptr::null_mut(),
        sg_list: wr.sges.as_ptr().cast_mut().cast(),
        num_sge: count(wr.sges),
    }
}

/// A count that does not fit is more than any queue takes; so is this one then.
#[inline]
fn count(sges: &[Sge]) -> c_int {
    c_int::try_from(sges.len()).unwrap_or(c_int::MAX)
}

/// The opcode, the immediate data and the operands of an operation. There is none for BIND_MW, whose
/// operands `rdma-sys` does not have, nor for ATOMIC_WRITE and FLUSH, which are newer than it.
#[inline]
fn operation(op: &SendOp) -> Option<(ibv_wr_opcode::Type, [u8; 4], wr_t)> {
    use ibv_wr_opcode as o;

    let rdma = |RemoteAddr { addr: remote_addr, rkey }| wr_t { rdma: rdma_t { remote_addr, rkey } };
    let atomic = |RemoteAddr { addr: remote_addr, rkey }, compare_add, swap| wr_t {
        atomic: atomic_t { remote_addr, compare_add, swap, rkey },
    };
    let none = RemoteAddr { addr: 0, rkey: 0 };
    Some(match *op {
        SendOp::Send { imm: None } => (o::IBV_WR_SEND, [0; 4], rdma(none)),
        SendOp::Send { imm: Some(imm) } => (o::IBV_WR_SEND_WITH_IMM, imm, rdma(none)),
        // A key stands where immediate data would, as a number of this machine.
        SendOp::SendInvalidate { rkey } => {
            (o::IBV_WR_SEND_WITH_INV, rkey.to_ne_bytes(), rdma(none))
        }
        SendOp::LocalInvalidate { rkey } => (o::IBV_WR_LOCAL_INV, rkey.to_ne_bytes(), rdma(none)),
        SendOp::Write { remote, imm: None } => (o::IBV_WR_RDMA_WRITE, [0; 4], rdma(remote)),
        SendOp::Write { remote, imm: Some(imm) } => {
            (o::IBV_WR_RDMA_WRITE_WITH_IMM, imm, rdma(remote))
        }
        SendOp::Read { remote } => (o::IBV_WR_RDMA_READ, [0; 4], rdma(remote)),
        SendOp::CompareSwap { remote, compare, swap } => {
            (o::IBV_WR_ATOMIC_CMP_AND_SWP, [0; 4], atomic(remote, compare, swap))
        }
        SendOp::FetchAdd { remote, add } => {
            (o::IBV_WR_ATOMIC_FETCH_AND_ADD, [0; 4], atomic(remote, add, 0))
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
