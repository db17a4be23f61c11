//! The other end of a connection, as the initiator of a request sees it: whether it listens, its next
//! receive, and its failing.

use cq_core::setup::Access;
use cq_core::wc::{Wc, WcStatus};

use crate::async_event::{self, QpEvent};
use crate::completion::{self, RECV_TAG};
use crate::cq;
use crate::fabric::Fabric;
use crate::identity;
use crate::layout::QpSlot;
use crate::queue::{RecvRequest, Ring};
use crate::state::QpState;
use crate::sync;

/// The queue pair that another one is connected to. It may be gone at any moment.
#[derive(Debug)]
pub struct Peer {
    fabric: &'static Fabric,
    slot: &'static QpSlot,
    number: u32,
    /// The number of the initiator.
    from: u32,
}

/// Why a peer takes no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// It is not connected yet, has failed, or is connected to another.
    NotReady,
    /// It was destroyed: nobody has its number.
    Gone,
    /// No receive is posted.
    NoReceive,
}

impl Peer {
    /// The peer with this number, of the initiator `from`.
    #[inline]
    pub fn new(fabric: &'static Fabric, number: u32, from: u32) -> Self {
        Self { fabric, slot: fabric.qp(number), number, from }
    }

    /// Its number.
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// Its protection domain, while it can't go away: a receive is taken from it.
    pub fn domain(&self) -> u32 {
        sync::load_u32(&self.slot.pd)
    }

    /// Whether it takes READs and atomics at all. To be asked before [its rights](Self::rights), which
    /// looks whether it listens.
    pub fn answers(&self) -> bool {
        sync::load_u32(&self.slot.max_dest_rd_atomic) != 0
    }

    /// What it lets its peer do, and in which protection domain. Looks whether it listens after reading
    /// them, so that they are not another's which has taken its place.
    pub fn rights(&self) -> Result<(Access, u32), Unavailable> {
        let rights = Access::from_bits_retain(sync::load_u32(&self.slot.access));
        let domain = self.domain();
        sync::read_fence();
        self.listens()?;
        Ok((rights, domain))
    }

    /// Whether it takes messages of this initiator.
    #[inline]
    pub fn listens(&self) -> Result<(), Unavailable> {
        let now = identity::read(self.slot);
        match now.state {
            // Nobody has number 0, but a free place does.
            _ if now.number != self.number || now.number == 0 => Err(Unavailable::Gone),
            QpState::Reset | QpState::Init | QpState::Err => Err(Unavailable::NotReady),
            _ if sync::load_u32(&self.slot.dest) != self.from => Err(Unavailable::NotReady),
            _ => Ok(()),
        }
    }

    /// Takes its next receive, to be [given an end](Self::end_receive). If there is none, posting one will run
    /// the initiator: whether that waits for it is not asked here, since `rnr_retry` may have changed since
    /// it began to.
    #[inline]
    pub fn take(&self) -> Result<RecvRequest, Unavailable> {
        let recv = &self.slot.recv;
        let _guard = recv.lock.lock();
        self.listens()?;
        let taken = sync::load(&recv.taken);
        if taken == sync::load(&recv.posted) {
            sync::store_u32(&recv.starved, 1);
            return Err(Unavailable::NoReceive);
        }
        let ring = Ring::of(self.fabric, &self.slot.recv_ring).ok_or(Unavailable::Gone)?;
        let request = ring.read_recv(taken);
        sync::release(&recv.taken, taken.wrapping_add(1));
        sync::store_u32(&recv.in_flight, 1);
        Ok(request)
    }

    /// The receive that was taken has succeeded.
    #[inline]
    pub fn received(&self, wr_id: u64, len: usize, imm: Option<[u8; 4]>, solicited: bool) {
        self.push(&completion::received(wr_id, self.number, len, imm), solicited);
    }

    /// The receive that was taken has failed, and the peer with it.
    pub fn refused(&self, wr_id: u64, status: WcStatus) {
        self.fail();
        self.push(&completion::failed(wr_id, self.number, status), false);
    }

    /// The peer goes to ERR over a request that it refuses with this status: no receive of its own tells it
    /// why, so that is reported (Q7).
    pub fn refuse(&self, status: WcStatus) {
        if self.fail() {
            let event = match status {
                WcStatus::REM_ACCESS_ERR => QpEvent::AccessError,
                _ => QpEvent::RequestError,
            };
            async_event::report_qp(self.fabric, self.number, event);
        }
    }

    /// The peer goes to ERR, if it still listens to this initiator; whether it did.
    fn fail(&self) -> bool {
        let _guard = self.slot.recv.lock.lock();
        self.listens().is_ok() && identity::fail(self.slot, self.number)
    }

    /// The receive that was taken has completed. True if the peer waits for that, to flush what is behind.
    #[inline]
    pub fn end_receive(&self) -> bool {
        let recv = &self.slot.recv;
        let _guard = recv.lock.lock();
        sync::store_u32(&recv.in_flight, 0);
        identity::read(self.slot).state == QpState::Err
    }

    #[inline]
    fn push(&self, wc: &Wc, solicited: bool) {
        let cq = sync::load_u32(&self.slot.recv_cq);
        cq::push(self.fabric, cq, wc, RECV_TAG, solicited);
    }
}
