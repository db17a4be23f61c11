//! The other end of a connection, as the initiator of a request sees it: whether it listens, its next
//! receive, and its failing.

use cq_core::setup::Access;
use cq_core::soft::Entry;
use cq_core::wc::WcStatus;

use crate::async_event::{self, QpEvent};
use crate::completion;
use crate::cq;
use crate::fabric::Fabric;
use crate::identity;
use crate::layout::QpSlot;
use crate::protocol::receives::Ahead;
use crate::protocol::tag;
use crate::queue::{RecvRequest, Ring};
use crate::state::QpState;
use crate::sync::{self, AtomicU32, AtomicU64};

/// The queue pair that another one is connected to. It may be gone at any moment.
#[derive(Debug)]
pub struct Peer {
    fabric: &'static Fabric,
    slot: &'static QpSlot,
    number: u32,
    /// The number of the initiator.
    from: u32,
}

/// A receive of the peer's.
#[derive(Debug)]
pub struct Receive {
    position: u64,
    pub request: RecvRequest,
}

impl Receive {
    const fn tag(&self) -> u32 {
        tag::of_recv(self.position.wrapping_add(1))
    }
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

    /// Its protection domain, while it can't go away: the initiator's window is open.
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
            _ if sync::load_u32(self.fabric.dest(self.number)) != self.from => {
                Err(Unavailable::NotReady)
            }
            _ => Ok(()),
        }
    }

    /// The `nth` of its receives that have not completed, and where that stands. If there is none, posting one
    /// will run the initiator: whether that waits for it is not asked here, since `rnr_retry` may have
    /// changed since it began to.
    #[inline]
    pub fn receive(&self, ahead: &[AtomicU64; 2], nth: u64) -> Result<Receive, Unavailable> {
        self.listens()?;
        let (recv, capacity) = (&self.slot.recv, sync::load_u32(&self.slot.recv_capacity));
        let mut known = Ahead::from_words(ahead.each_ref().map(sync::load));
        let position = recv.completed().wrapping_add(nth);
        let is_there = recv.has_or_starve(position, &mut known, self.number, capacity);
        ahead.iter().zip(known.to_words()).for_each(|(word, value)| sync::store(word, value));
        if !is_there {
            return Err(Unavailable::NoReceive);
        }
        let ring = Ring::of(self.fabric, &self.slot.recv_ring).ok_or(Unavailable::Gone)?;
        Ok(Receive { position, request: ring.read_recv(position) })
    }

    /// Has what a SEND will read and write of it brought here meanwhile.
    #[inline]
    pub fn expect_send(&self, landing: &AtomicU32) {
        if let Some(ring) = Ring::of(self.fabric, &self.slot.recv_ring) {
            ring.expect(self.slot.recv.completed());
        }
        let cq = sync::load_u32(&self.slot.recv_cq);
        cq::expect_push(self.fabric, cq, sync::load_u32(landing));
    }

    /// Where its next completion will probably lie.
    #[inline]
    pub fn landing(&self) -> u32 {
        cq::landing(self.fabric, sync::load_u32(&self.slot.recv_cq))
    }

    /// What is to be pushed of a receive that has succeeded.
    #[inline]
    pub fn received(
        &self,
        receive: &Receive,
        len: usize,
        imm: Option<[u8; 4]>,
        solicited: bool,
    ) -> Entry {
        let wc = completion::received(receive.request.wr_id, self.number, len, imm);
        Entry { wc, tag: receive.tag(), solicited }
    }

    /// A receive has failed, and the peer with it.
    pub fn refused(&self, receive: &Receive, status: WcStatus) {
        self.fail();
        let wc = completion::failed(receive.request.wr_id, self.number, status);
        self.push(&[Entry { wc, tag: receive.tag(), solicited: false }]);
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

    /// The peer goes to ERR, if it still listens to this initiator; whether it did. It can't be connected
    /// anew between the two, as that waits until the initiator's window is closed.
    fn fail(&self) -> bool {
        self.listens().is_ok() && identity::fail(self.slot, self.number)
    }

    /// Whether it is in ERR. To be asked after the initiator's window is closed: what is behind a receive
    /// that was in use then is still to be flushed.
    #[inline]
    pub fn has_failed(&self) -> bool {
        let now = identity::read(self.slot);
        now.number == self.number && now.state == QpState::Err
    }

    /// Tells it of receives, in their order.
    #[inline]
    pub fn push(&self, entries: &[Entry]) {
        cq::push(self.fabric, sync::load_u32(&self.slot.recv_cq), entries);
    }
}
