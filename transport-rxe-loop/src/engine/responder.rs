//! The other end of a connection, as the initiator of a request sees it: whether it listens, its next
//! receive, and its failing.

use cq_core::queue::Entry;
use cq_core::setup::{Access, QpType};
use cq_core::wc::WcStatus;

use super::complete::{self, Took};
use super::entry::QpSlot;
use super::ring::{RecvRequest, Ring};
use super::shared_receives::{self, Unavailable};
use super::{Engine, events, identity, in_flight};
use crate::completion::async_event::QpEvent;
use crate::completion::push;
use crate::error::Stuck;
use crate::memory::copier;
use crate::memory::region::Whose;
use crate::protocol::lock::Owner;
use crate::protocol::pool::Taken;
use crate::protocol::receives::Ahead;
use crate::protocol::state::QpState;
use crate::protocol::tag;
use crate::shm::lock::Guard;
use crate::shm::table::Entry as _;
use crate::sync::{self, AtomicU32, AtomicU64};

/// The queue pair that another one is connected to. It may be gone at any moment.
#[derive(Debug)]
pub struct Responder {
    engine: &'static Engine,
    slot: &'static QpSlot,
    number: u32,
    /// The number of the initiator.
    from: u32,
    /// What both have to be.
    kind: QpType,
}

/// What a peer lets its own do.
#[derive(Clone, Copy, Debug)]
pub struct Rights {
    pub access: Access,
    /// Whether it takes READs and atomics at all.
    pub answers: bool,
    /// As whom its peer uses its keys.
    pub whose: Whose,
}

/// A receive of the peer's.
#[derive(Debug)]
pub struct Receive {
    /// Of its completion.
    pub tag: u32,
    /// If it is of a shared receive queue.
    taken: Option<Taken>,
    /// The protection domain of its memory.
    pub domain: Whose,
    pub request: RecvRequest,
}

impl Responder {
    /// The peer with this number, of the initiator `from`, which is of this kind.
    #[inline]
    pub fn new(engine: &'static Engine, number: u32, from: u32, kind: QpType) -> Self {
        Self { engine, slot: engine.qp(number), number, from, kind }
    }

    /// Its number.
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// Who uses its keys for requests of its own, while it can't go away: the initiator's window is open.
    pub fn domain(&self) -> Whose {
        Whose::local(sync::load(&self.slot.pd))
    }

    /// What it lets its peer do, and as whom that uses its keys. Looks whether it listens before reading
    /// them, so that they are no older than its state, and after, so that they are not another's which has
    /// taken its place.
    #[inline(always)]
    pub fn rights(&self) -> Result<Rights, Unavailable> {
        self.listens()?;
        let access = Access::from_bits_retain(sync::load(&self.slot.access));
        let answers = sync::load(&self.slot.max_dest_rd_atomic) != 0;
        let whose = Whose::peer_of(self.number, sync::load(&self.slot.pd));
        sync::read_fence();
        self.is_connected()?;
        Ok(Rights { access, answers, whose })
    }

    /// Whether it takes messages of this initiator.
    #[inline]
    pub fn listens(&self) -> Result<(), Unavailable> {
        self.is_connected()?;
        // What has a number keeps its type.
        let is_alike = sync::load(&self.slot.qp_type) == self.kind as u32;
        if is_alike { Ok(()) } else { Err(Unavailable::NotReady) }
    }

    /// Whether it takes messages of this initiator, if it is of its kind.
    #[inline]
    fn is_connected(&self) -> Result<(), Unavailable> {
        let now = identity::read(self.slot);
        match now.state {
            // Nobody has number 0, but a free place does.
            _ if now.number != self.number || now.number == 0 => Err(self.gone()),
            QpState::Reset | QpState::Init | QpState::Err => Err(Unavailable::NotReady),
            // Datagrams come from anybody.
            _ if self.kind == QpType::Ud => Ok(()),
            _ if sync::load(self.engine.dest(self.number)) != self.from => {
                Err(Unavailable::NotReady)
            }
            _ => Ok(()),
        }
    }

    #[cold]
    fn gone(&self) -> Unavailable {
        match self.engine.policy.imitation.answers_for_the_dead() {
            true => Unavailable::Gone,
            false => Unavailable::NotReady,
        }
    }

    /// Whether it takes datagrams with this queue key.
    pub fn takes(&self, qkey: u32) -> bool {
        self.listens().is_ok() && sync::load(&self.slot.qkey) == qkey
    }

    /// Keeps all others from taking its receives: see [`datagram`](crate::api::datagram).
    ///
    /// # Errors
    /// Somebody who lives is in the middle of that, and suspended.
    pub fn take_receives(&self) -> Result<Guard<'static>, Stuck> {
        let stuck = &self.engine.own(self.number).stuck;
        let (holder, known) = (self.slot.taking.holder(), sync::load(stuck));
        if known != 0 {
            if holder
                .is_some_and(|holder| holder.to_word() == known && !self.engine.shm.is_dead(holder))
            {
                // Who waited once need not wait again.
                return Err(Stuck);
            }
            sync::store(stuck, 0);
        }
        let taken = in_flight::take_receives(self.engine, self.slot);
        if taken.is_err() {
            sync::store(stuck, holder.map_or(0, Owner::to_word));
        }
        taken
    }

    /// The `nth` of its receives that have not completed, and where that stands. If there is none, posting one
    /// will run the initiator: whether that waits for it is not asked here, since `rnr_retry` may have
    /// changed since it began to. It is for the message that is at hand: before the window is closed it has to
    /// be [pushed](Self::push), [refused](Self::refused) or [given back](Self::give_back).
    #[inline]
    pub fn receive(&self, ahead: &[AtomicU64; 2], nth: u64) -> Result<Receive, Unavailable> {
        self.listens()?;
        let srq = sync::load(&self.slot.srq);
        if srq != 0 {
            return self.shared_receive(srq);
        }
        if self.kind == QpType::Ud {
            self.has_nothing_abandoned()?;
        }
        let (recv, capacity) = (&self.slot.recv, sync::load(&self.slot.recv_capacity));
        let mut known = Ahead::from_words(ahead.each_ref().map(sync::load));
        let position = recv.completed().wrapping_add(nth);
        let is_there = match self.kind {
            QpType::Rc => recv.has_or_starve(position, &mut known, self.number, capacity),
            // Nobody waits for one.
            QpType::Uc | QpType::Ud => recv.has(position, &mut known, self.number, capacity),
        };
        ahead.iter().zip(known.to_words()).for_each(|(word, value)| sync::store(word, value));
        if !is_there {
            return Err(Unavailable::NoReceive);
        }
        let ring = Ring::of(self.engine.shm, &self.slot.recv_ring).ok_or(Unavailable::Gone)?;
        let (tag, request) = (tag::of_recv(position.wrapping_add(1)), ring.read_recv(position));
        Ok(Receive { tag, taken: None, domain: self.domain(), request })
    }

    /// The next receive of its shared receive queue.
    #[inline(never)]
    fn shared_receive(&self, srq: u32) -> Result<Receive, Unavailable> {
        let may = || self.listens().and_then(|()| self.has_nothing_abandoned());
        let (taken, request) = shared_receives::take(self.engine, srq, self.number, may)?;
        let domain = Whose::local(sync::load(&self.engine.srq(srq).pd));
        Ok(Receive { tag: taken.tag(), taken: Some(taken), domain, request })
    }

    /// Whether nobody writes any more to receives that others had taken before and given back. To be asked once one is
    /// taken, or under the lock by which they are, where nobody gives one back without it.
    #[inline]
    fn has_nothing_abandoned(&self) -> Result<(), Unavailable> {
        match self.slot.life().place() {
            Some(place) if copier::has_abandoned(self.engine.memory, place) => {
                Err(Unavailable::Stuck)
            }
            _ => Ok(()),
        }
    }

    /// A receive is not used after all.
    pub fn give_back(&self, receive: &Receive) {
        if let Some(taken) = &receive.taken {
            shared_receives::give_back(self.engine, sync::load(&self.slot.srq), taken);
        }
    }

    /// Has what a SEND will read and write of it brought here meanwhile.
    #[inline]
    pub fn expect_send(&self, landing: &AtomicU32) {
        if let Some(ring) = Ring::of(self.engine.shm, &self.slot.recv_ring) {
            ring.expect(self.slot.recv.completed());
        }
        let cq = sync::load(&self.slot.recv_cq);
        push::expect_push(self.engine.completions, cq, sync::load(landing));
    }

    /// Where its next completion will probably lie.
    #[inline]
    pub fn landing(&self) -> u32 {
        push::landing(self.engine.completions, sync::load(&self.slot.recv_cq))
    }

    /// What is to be pushed of a receive that has succeeded.
    #[inline]
    pub fn received(&self, receive: &Receive, len: usize, took: Took, solicited: bool) -> Entry {
        let wc = complete::received(receive.request.wr_id, self.number, len, took);
        Entry { wc, tag: receive.tag, solicited }
    }

    /// A receive has failed, and the peer with it.
    pub fn refused(&self, receive: &Receive, status: WcStatus) {
        self.fail();
        let wc = complete::failed(receive.request.wr_id, self.number, status);
        self.push(&[Entry { wc, tag: receive.tag, solicited: false }]);
    }

    /// The peer goes to ERR over a request that it refuses with this status: no receive of its own tells it
    /// why, so that is reported (Q7). But for an unreliable one, which only overhears it.
    pub fn refuse(&self, status: WcStatus) {
        if self.kind == QpType::Rc && self.fail() {
            let event = match status {
                WcStatus::REM_ACCESS_ERR => QpEvent::AccessError,
                _ => QpEvent::RequestError,
            };
            events::report_qp(self.engine, self.number, event);
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
        complete::push(self.engine, sync::load(&self.slot.recv_cq), entries);
    }
}

#[cfg(test)]
mod tests;
