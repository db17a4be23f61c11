//! A queue pair: made, modified, queried, posted to.

#![allow(unsafe_code)]

use std::ffi::c_int;
use std::mem::{self, MaybeUninit};
use std::sync::Arc;
use std::{io, ptr};

use cq_verbs::post::WrError;
use cq_verbs::wr::{RecvWr, SendWr};
use rdma_sys::{
    ibv_create_qp, ibv_destroy_qp, ibv_gid, ibv_modify_qp, ibv_qp, ibv_qp_attr, ibv_qp_cap,
    ibv_qp_init_attr, ibv_query_qp, ibv_recv_wr, ibv_send_wr, ibv_sge, ud_t,
};
use rustix::io::Errno;

use super::ah::Ah;
use super::check;
use super::cq::Cq;
use super::object::Object;
use super::pd::Pd;
use super::post::{self, Failure};
use super::srq::Srq;
use crate::trace;
use cq_verbs::setup::{Gid, QpType};

type PostSend = unsafe extern "C" fn(*mut ibv_qp, *mut ibv_send_wr, *mut *mut ibv_send_wr) -> c_int;
type PostRecv = unsafe extern "C" fn(*mut ibv_qp, *mut ibv_recv_wr, *mut *mut ibv_recv_wr) -> c_int;

/// What a queue pair is made of.
pub struct Parts<'a> {
    pub qp_type: QpType,
    pub send_cq: &'a Arc<Cq>,
    pub recv_cq: &'a Arc<Cq>,
    pub srq: Option<&'a Arc<Srq>>,
    pub cap: ibv_qp_cap,
    pub sq_sig_all: bool,
}

/// A queue pair; it keeps alive what it uses.
#[derive(Debug)]
pub struct Qp {
    raw: Object<ibv_qp>,
    post_send: PostSend,
    post_recv: PostRecv,
    /// Each send needs a destination.
    is_ud: bool,
    pd: Arc<Pd>,
    _cqs: [Arc<Cq>; 2],
    srq: Option<Arc<Srq>>,
}

impl Qp {
    /// Creates one, in RESET; returns its capacities.
    pub fn new(pd: &Arc<Pd>, parts: &Parts<'_>) -> io::Result<(Self, ibv_qp_cap)> {
        let &Parts { send_cq, recv_cq, srq, .. } = parts;
        // A driver takes everything for its own, so what is another opening's must not get there.
        let context = pd.context().raw();
        // SAFETY: the queues are alive.
        let contexts = unsafe { [(*send_cq.raw()).context, (*recv_cq.raw()).context] };
        if contexts != [context; 2] || srq.is_some_and(|srq| srq.pd().context().raw() != context) {
            return Err(Errno::INVAL.into());
        }
        let mut init = ibv_qp_init_attr {
            qp_context: ptr::null_mut(),
            send_cq: send_cq.raw(),
            recv_cq: recv_cq.raw(),
            srq: srq.map_or(ptr::null_mut(), |srq| srq.raw()),
            cap: parts.cap,
            qp_type: parts.qp_type.0,
            sq_sig_all: parts.sq_sig_all.into(),
        };
        // SAFETY: all that it refers to is alive, and of the same opening. This is its only handle.
        let raw =
            unsafe { Object::new(ibv_create_qp(pd.raw(), &mut init), ibv_destroy_qp, check)? };
        // SAFETY: the context is open; its table of operations does not change.
        let (post_send, post_recv) =
            unsafe { ((*context).ops.post_send, (*context).ops.post_recv) };
        let qp = Self {
            raw,
            post_send: post_send.expect("every device can send"),
            post_recv: post_recv.expect("every device can receive"),
            is_ud: parts.qp_type == QpType::UD,
            pd: Arc::clone(pd),
            _cqs: [Arc::clone(send_cq), Arc::clone(recv_cq)],
            srq: srq.cloned(),
        };
        Ok((qp, init.cap))
    }

    /// Its number.
    pub fn number(&self) -> u32 {
        // SAFETY: the queue pair is alive; its number does not change.
        unsafe { (*self.raw.raw()).qp_num }
    }

    /// Whether its receives are taken from a shared queue.
    pub const fn has_srq(&self) -> bool {
        self.srq.is_some()
    }

    /// The domain that it belongs to.
    pub const fn pd(&self) -> &Arc<Pd> {
        &self.pd
    }

    /// `ibv_modify_qp(3)`.
    pub fn modify(&self, attr: &mut ibv_qp_attr, mask: u32) -> io::Result<()> {
        // SAFETY: the queue pair and the attributes are alive.
        check(unsafe { ibv_modify_qp(self.raw.raw(), attr, mask as c_int) })
    }

    /// `ibv_query_qp(3)`.
    pub fn query(&self, mask: u32) -> io::Result<ibv_qp_attr> {
        let mut attr = no_attributes();
        // SAFETY: these are numbers and pointers, for which zero is a value.
        let mut init: ibv_qp_init_attr = unsafe { mem::zeroed() };
        // SAFETY: all three are alive.
        check(unsafe { ibv_query_qp(self.raw.raw(), &mut attr, mask as c_int, &mut init) })?;
        Ok(attr)
    }

    /// `ibv_post_send(3)`; a request that `judge` refuses is not posted.
    #[inline]
    pub fn post_send(
        &self,
        list: &[SendWr<'_>],
        judge: impl Fn(&SendWr<'_>) -> Result<(), WrError>,
        to: Option<Target<'_>>,
    ) -> Result<(), Failure> {
        let to = self.destination(to);
        let make = |wr: &SendWr<'_>, sge: &mut MaybeUninit<_>| {
            judge(wr)?;
            make(wr, to, sge)
        };
        // SAFETY: the queue pair is alive, and so are the SGEs, the inline data and the address handle of
        // the requests, while the device's call reads them; where it looks for a handle, there is one.
        unsafe { post::post(list, make, |first, bad| (self.post_send)(self.raw.raw(), first, bad)) }
    }

    /// Judges a request as [`post_send`](Self::post_send) does, without posting it.
    pub fn check_send(&self, wr: &SendWr<'_>, to: Option<Target<'_>>) -> Result<(), WrError> {
        make(wr, self.destination(to), &mut MaybeUninit::uninit()).map(drop)
    }

    /// A driver takes an address handle for its own, and follows that of any datagram: there must be one,
    /// and not of another device.
    #[inline]
    fn destination(&self, to: Option<Target<'_>>) -> Result<Option<ud_t>, WrError> {
        match to {
            None if self.is_ud => Err(WrError::NoDestination),
            None => Ok(None),
            Some(to) if !Arc::ptr_eq(to.ah.pd(), &self.pd) => Err(WrError::NoDestination),
            Some(Target { ah, qp_num, qkey }) => {
                Ok(Some(ud_t { ah: ah.raw(), remote_qpn: qp_num, remote_qkey: qkey }))
            }
        }
    }

    /// `ibv_post_recv(3)`.
    #[inline]
    pub fn post_recv(&self, list: &[RecvWr<'_>]) -> Result<(), Failure> {
        // SAFETY: the queue pair is alive, and so are the SGEs while the device's call reads them.
        unsafe { post::post_recvs(list, |first, bad| (self.post_recv)(self.raw.raw(), first, bad)) }
    }
}

impl Drop for Qp {
    fn drop(&mut self) {
        if self.raw.is_ours() {
            trace::event!(DEBUG, qp_num = self.number(), "queue pair destroyed");
        }
    }
}

/// A send request as libibverbs takes it.
#[inline]
fn make(
    wr: &SendWr<'_>,
    to: Result<Option<ud_t>, WrError>,
    sge: &mut MaybeUninit<ibv_sge>,
) -> Result<ibv_send_wr, WrError> {
    post::send_wr(wr, to?, sge).ok_or(WrError::Unsupported)
}

/// Attributes that are all zero.
pub fn no_attributes() -> ibv_qp_attr {
    // SAFETY: these are numbers, for which zero is a value.
    unsafe { mem::zeroed() }
}

/// The bytes of a GID.
pub const fn gid(raw: ibv_gid) -> Gid {
    // SAFETY: all who make one initialize its 16 bytes, and any bytes are a value.
    Gid(unsafe { raw.raw })
}

/// Where datagrams go.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    pub ah: &'a Ah,
    pub qp_num: u32,
    pub qkey: u32,
}
