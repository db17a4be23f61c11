//! Queue pairs, as their owner sees them: posting, changing state, destroying.
//!
//! ```
//! use cq_core::transport::{Poll, Post};
//! use cq_core::wc::Wc;
//! use cq_core::wr::{RecvWr, SendWr};
//! use transport_rxe_loop::{Access, Context, QpInit};
//!
//! let context = Context::open("loop0")?;
//! let pd = context.alloc_pd();
//! let (mut cq, mut peer_cq) = (context.create_cq(16, None)?, context.create_cq(16, None)?);
//! let mut qp = pd.create_qp(&QpInit::new(&cq))?;
//! let mut peer = pd.create_qp(&QpInit::new(&peer_cq))?;
//! qp.connect(peer.number())?;
//! peer.connect(qp.number())?;
//!
//! let region = pd.allocate(64, Access::LOCAL_WRITE)?;
//! peer.post_recv(&[RecvWr::new(1, &[region.sge(0, 64)?])])?;
//! qp.post_send(&[SendWr::send_inline(2, b"hello")])?;
//!
//! let mut room = [Wc::default(); 4];
//! assert_eq!(peer_cq.poll(&mut room)?, 1);
//! assert_eq!(room[0].result()?.byte_len(), 5);
//! assert_eq!(cq.poll(&mut room)?, 1);
//! assert_eq!(room[0].wr_id(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::sync::Arc;

use cq_core::setup::{Access, QpAttrMask, QpCaps};
use cq_core::transport::{Post, PostError, Refused};
use cq_core::wr::{Data, RecvWr, SendWr};

use crate::attr::QpAttr;
use crate::cq::{self, Cq};
use crate::device::{MAX_INLINE, MAX_MSG_SIZE, MAX_QP_WR};
use crate::error::{CreateError, Limit, ModifyError};
use crate::execute;
use crate::identity;
use crate::memory::MAX_SGE;
use crate::overrun;
use crate::pd::Domain;
use crate::place::Place;
use crate::queue::WireOp;
use crate::state::QpState;
use crate::sync;

/// Judges capacities by what the device allows.
fn check(caps: &QpCaps) -> Result<(), CreateError> {
    let limits = [
        (Limit::SendWr, caps.max_send_wr, MAX_QP_WR),
        (Limit::RecvWr, caps.max_recv_wr, MAX_QP_WR),
        (Limit::SendSge, caps.max_send_sge, MAX_SGE as u32),
        (Limit::RecvSge, caps.max_recv_sge, MAX_SGE as u32),
        (Limit::Inline, caps.max_inline, MAX_INLINE),
    ];
    match limits.into_iter().find(|&(_, asked, max)| asked > max) {
        Some((what, asked, max)) => Err(CreateError::TooMany { what, asked, max }),
        None => Ok(()),
    }
}

/// `struct ibv_qp_init_attr`: what a queue pair is made of. All are reliable connections.
#[derive(Clone, Copy, Debug)]
pub struct QpInit<'a> {
    /// Where sends complete.
    pub send_cq: &'a Cq,
    /// Where receives complete; may be the same.
    pub recv_cq: &'a Cq,
    /// How much it takes.
    pub caps: QpCaps,
    /// Whether every send is signaled, whatever its flags say.
    pub sq_sig_all: bool,
}

impl<'a> QpInit<'a> {
    /// Both directions on one completion queue, with usual capacities: 128 requests each way, of one
    /// piece, or of 64 inline bytes.
    #[must_use]
    pub const fn new(cq: &'a Cq) -> Self {
        Self { send_cq: cq, recv_cq: cq, caps: QpCaps::USUAL, sq_sig_all: false }
    }
}

/// A queue pair. Posting takes it by `&mut`; completions may be polled elsewhere meanwhile, and the peer's
/// thread works on its queues.
///
/// Destroying it twice does not compile:
/// ```compile_fail
/// # fn twice(qp: transport_rxe_loop::QueuePair) {
/// qp.destroy();
/// qp.destroy();
/// # }
/// ```
#[derive(Debug)]
pub struct QueuePair {
    place: Place,
    caps: QpCaps,
    sq_sig_all: bool,
    /// What the poller had given back when it was last looked at.
    retired: u64,
    /// Which receives had completed when that was last looked at: seldom, since another core writes it.
    received: u64,
}

impl QueuePair {
    pub(crate) fn new(domain: &Arc<Domain>, init: &QpInit<'_>) -> Result<Self, CreateError> {
        let QpInit { caps, sq_sig_all, .. } = *init;
        check(&caps)?;
        let place = Place::new(domain, init)?;
        let retired = sync::acquire(&place.slot.retired.0);
        let received = place.slot.recv.seen_completed();
        Ok(Self { place, caps, sq_sig_all, retired, received })
    }

    /// Its number, by which the peer connects to it.
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.place.number
    }

    /// Its state. A failure may change it at any time.
    #[must_use]
    pub fn state(&self) -> QpState {
        identity::read(self.place.slot).state
    }

    /// What it takes: what was asked for.
    #[must_use]
    pub const fn caps(&self) -> QpCaps {
        self.caps
    }

    /// Changes state and attributes, as `ibv_modify_qp(3)` lists them (Q1). To RESET drops what is
    /// outstanding; to ERR flushes it (Q2). When either returns, no message of the peer is still arriving.
    ///
    /// # Errors
    /// No such change, attributes missing or too many, values out of range: nothing was changed. Or the
    /// peer's process is suspended in the middle of a message, and the queue pair in ERR.
    pub fn modify(&mut self, attr: &QpAttr) -> Result<(), ModifyError> {
        let slot = self.place.slot;
        if !self.place.fabric.is_ours() {
            return Err(ModifyError::Forked);
        }
        let to = loop {
            let now = identity::read(slot);
            let to = attr.check(now.state)?;
            if to == QpState::Reset {
                return self.place.reset().map_err(|_| ModifyError::PeerSuspended);
            }
            self.apply(attr);
            let drains = (now.state, to) == (QpState::Rts, QpState::Sqd);
            if drains {
                sync::store_u32(&slot.send.report_drained, 0);
            }
            if identity::change(slot, now, to) {
                // Not before: who still takes it for an earlier SQD would report this one too soon.
                let asked = attr.has(QpAttrMask::EN_SQD_ASYNC_NOTIFY) && attr.en_sqd_async_notify;
                if drains && asked {
                    sync::store_u32(&slot.send.report_drained, 1);
                }
                break to;
            }
        };
        // From here on the peer's process may call for this one, or die.
        if to == QpState::Rtr && !self.place.fabric.is_mine(attr.dest_qp_num) {
            self.place.watch();
        }
        if to == QpState::Init {
            overrun::joined(self.place.fabric, slot);
        }
        let outwaited = if to == QpState::Err { self.place.outwait_peer() } else { Ok(()) };
        self.place.tell();
        outwaited.map_err(|_| ModifyError::PeerSuspended)
    }

    /// Connects to the queue pair with this number, from RESET to RTS: the peer may WRITE, READ and use
    /// atomics, where the memory regions allow it, and sends wait for receives as long as it takes, and
    /// half a second for the peer to be connected, too.
    ///
    /// # Errors
    /// It is not in RESET, or the number is none.
    pub fn connect(&mut self, peer: u32) -> Result<(), ModifyError> {
        self.modify(&QpAttr::init(Access::REMOTE))?;
        self.modify(&QpAttr::rtr(peer))?;
        self.modify(&QpAttr::rts())
    }

    /// Destroys it, as dropping does. What is outstanding is dropped; what completed stays in its
    /// completion queues.
    pub fn destroy(self) {
        drop(self);
    }

    fn apply(&self, attr: &QpAttr) {
        let slot = self.place.slot;
        for (flag, word, value) in [
            (QpAttrMask::ACCESS_FLAGS, &slot.access, attr.access.bits()),
            (QpAttrMask::DEST_QPN, self.place.fabric.dest(self.number()), attr.dest_qp_num),
            (QpAttrMask::TIMEOUT, &slot.timeout, attr.timeout.into()),
            (QpAttrMask::RETRY_CNT, &slot.retry_cnt, attr.retry_cnt.into()),
            (QpAttrMask::RNR_RETRY, &slot.rnr_retry, attr.rnr_retry.into()),
            (QpAttrMask::MIN_RNR_TIMER, &slot.min_rnr_timer, attr.min_rnr_timer.into()),
            (QpAttrMask::MAX_QP_RD_ATOMIC, &slot.max_rd_atomic, attr.max_rd_atomic.into()),
            (
                QpAttrMask::MAX_DEST_RD_ATOMIC,
                &slot.max_dest_rd_atomic,
                attr.max_dest_rd_atomic.into(),
            ),
        ] {
            if attr.mask().contains(flag) {
                sync::store_u32(word, value);
            }
        }
    }

    #[inline]
    fn put_send(&mut self, position: u64, wr: &SendWr<'_>) -> Result<(), Refused> {
        if !self.state().takes_sends() {
            return Err(Refused::WrongState);
        }
        let returns_data = wr.op.returns_data();
        let op = WireOp::of(wr.op).ok_or(Refused::Unsupported)?;
        match wr.data {
            Data::Sges(sges) if sges.len() > self.caps.max_send_sge as usize => {
                return Err(Refused::TooManySges { max: self.caps.max_send_sge });
            }
            Data::Inline(_) if returns_data => return Err(Refused::InlineResult),
            Data::Inline(bytes) if bytes.len() > self.caps.max_inline as usize => {
                return Err(Refused::InlineTooLong { max: self.caps.max_inline });
            }
            data if data.len() > MAX_MSG_SIZE => {
                return Err(Refused::TooLong { max: MAX_MSG_SIZE });
            }
            _ => {}
        }
        if returns_data && sync::load_u32(&self.place.slot.max_rd_atomic) == 0 {
            return Err(Refused::NoReadAtomic);
        }
        if !self.has_send_slot(position) {
            return Err(Refused::QueueFull);
        }
        self.place.send_ring.write_send(position, wr, op, self.sq_sig_all);
        Ok(())
    }

    #[inline]
    fn has_send_slot(&mut self, position: u64) -> bool {
        let capacity = u64::from(self.caps.max_send_wr);
        if position.wrapping_sub(self.retired) < capacity {
            return true;
        }
        self.retired = sync::acquire(&self.place.slot.retired.0);
        position.wrapping_sub(self.retired) < capacity
    }

    #[inline]
    fn put_recv(&mut self, position: u64, wr: &RecvWr<'_>) -> Result<(), Refused> {
        if !self.state().takes_recvs() {
            return Err(Refused::WrongState);
        }
        if wr.sges.len() > self.caps.max_recv_sge as usize {
            return Err(Refused::TooManySges { max: self.caps.max_recv_sge });
        }
        if !self.has_recv_slot(position) {
            return Err(Refused::QueueFull);
        }
        self.place.recv_ring.write_recv(position, wr);
        Ok(())
    }

    #[inline]
    fn has_recv_slot(&mut self, position: u64) -> bool {
        let capacity = self.caps.max_recv_wr;
        let known = position.wrapping_sub(self.received) < capacity.into();
        known || self.look_for_recv_slot(position, capacity)
    }

    fn look_for_recv_slot(&mut self, position: u64, capacity: u32) -> bool {
        let recv = &self.place.slot.recv;
        self.received = recv.seen_completed();
        position.wrapping_sub(self.received) < capacity.into() || {
            // A completion can be polled a moment before its receive counts as completed.
            cq::outwait_push(self.place.fabric, sync::load_u32(&self.place.slot.recv_cq));
            self.received = recv.seen_completed();
            position.wrapping_sub(self.received) < capacity.into()
        }
    }

    /// Hands over receives up to `end`, and runs whoever waited for that.
    #[inline]
    fn publish_recvs(&self, end: u64) {
        let Place { fabric, slot, number, .. } = self.place;
        let starved = slot.recv.post(end);
        // After the fence of `post`: who puts it into ERR sees these receives, or is seen here.
        if self.state() == QpState::Err {
            execute::run(fabric, number);
        } else if starved {
            execute::kick(fabric, sync::load_u32(fabric.dest(number)));
        }
    }
}

impl Post for QueuePair {
    #[inline]
    fn post_send(&mut self, list: &[SendWr<'_>]) -> Result<(), PostError> {
        let slot = self.place.slot;
        let first = sync::load(&slot.send.posted);
        let (end, result) = put_all(first, list, |position, wr| self.put_send(position, wr));
        if end != first {
            sync::release(&slot.send.posted, end);
            execute::run(self.place.fabric, self.place.number);
        }
        result
    }

    #[inline]
    fn post_recv(&mut self, list: &[RecvWr<'_>]) -> Result<(), PostError> {
        let first = self.place.slot.recv.posted();
        let (end, result) = put_all(first, list, |position, wr| self.put_recv(position, wr));
        if end != first {
            self.publish_recvs(end);
        }
        result
    }
}

/// Puts requests at `first` and on, up to the first that is refused (Q4); says where it stopped.
#[inline]
fn put_all<W>(
    first: u64,
    list: &[W],
    mut put: impl FnMut(u64, &W) -> Result<(), Refused>,
) -> (u64, Result<(), PostError>) {
    let mut position = first;
    for (posted, wr) in list.iter().enumerate() {
        if let Err(why) = put(position, wr) {
            return (position, Err(PostError { posted, why }));
        }
        position = position.wrapping_add(1);
    }
    (position, Ok(()))
}

#[cfg(test)]
mod tests;
