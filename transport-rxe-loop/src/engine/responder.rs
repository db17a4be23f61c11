//! The responder: the other end of a connection, as the requester sees it. Whether it accepts messages, its next
//! receive, and its failing.

use cq_core::queue::Tagged;
use cq_core::wc::WcStatus;
use cq_verbs::setup::{Access, QpState, QpType};
use cq_verbs::wr::Sge;

use super::complete::{self, ReceivedOp};
use super::entry::QpSlot;
use super::identity::{self, Identity};
use super::ring::{RecvRequest, Ring};
use super::shared_receives::{self, Unavailable};
use super::{Engine, events, in_flight};
use crate::completion::async_event::QpEvent;
use crate::completion::queue::CqRing;
use crate::completion::wakeup::Wakeup;
use crate::error::Stuck;
use crate::memory::copier;
use crate::memory::region::KeyUser;
use crate::protocol::lock::AttachmentKey;
use crate::protocol::number::{Position, QpNumber, SrqNumber};
use crate::protocol::pool::Taken;
use crate::protocol::tag;
use crate::shm::lock::Guard;
use crate::shm::table::Entry as _;
use crate::sync::{self, AtomicU32};
use crate::trace;

/// The queue pair that another one is connected to. It may be destroyed at any moment.
#[derive(Debug)]
pub struct Responder {
    engine: &'static Engine,
    slot: &'static QpSlot,
    /// Its number.
    pub number: QpNumber,
    /// The number of the requester.
    from: QpNumber,
    /// The type that both must have.
    kind: QpType,
    /// The words with the number of the requester's peer, and of its own.
    destinations: [&'static AtomicU32; 2],
    /// Its identity when the rest was validated.
    seen: Option<Identity>,
    access: Access,
    /// Whether it accepts READs and atomics at all.
    answers: bool,
    /// The number of its protection domain, which can't be destroyed while the requester's copy guard is open.
    domain: u32,
    srq: SrqNumber,
    /// Its receive queue; `None` if that is invalid.
    receives: Option<Ring>,
    recv_capacity: u32,
    recv_cq: CqRing,
    /// The position up to which its receives are known to be posted.
    cached_posted: Position,
}

/// The rights that a queue pair grants its peer.
#[derive(Clone, Copy, Debug)]
pub struct Rights {
    pub access: Access,
    /// Whether it accepts READs and atomics at all.
    pub answers: bool,
    /// The user of the keys of the peer's requests.
    pub whose: KeyUser,
}

/// A receive of one SGE.
#[derive(Debug)]
pub struct UsualReceive {
    pub position: Position,
    pub wr_id: u64,
    pub sge: Sge,
}

/// A receive of the responder.
#[derive(Debug)]
pub struct Receive {
    /// The tag of its completion.
    pub tag: u32,
    /// For a receive of a shared receive queue.
    taken: Option<Taken>,
    /// The protection domain of its memory.
    pub domain: KeyUser,
    pub request: RecvRequest,
}

impl Responder {
    /// The responder with this number, for the requester `from`, which is of this type.
    #[inline]
    pub fn new(engine: &'static Engine, number: QpNumber, from: QpNumber, kind: QpType) -> Self {
        let slot = engine.qp(number);
        Self {
            engine,
            slot,
            number,
            from,
            kind,
            destinations: [from, number].map(|one| engine.dest(engine.index(one))),
            seen: None,
            access: Access::empty(),
            answers: false,
            domain: 0,
            srq: SrqNumber::NONE,
            receives: None,
            recv_capacity: 0,
            recv_cq: CqRing::new(engine.completions, slot.recv_cq()),
            cached_posted: Position::default(),
        }
    }

    /// The rights that it grants its peer, and the user of the keys.
    #[inline]
    pub fn rights(&mut self) -> Result<Rights, Unavailable> {
        self.listens()?;
        Ok(self.granted())
    }

    /// The same for a usual message: `None` if it does not accept it, or has to be validated.
    #[inline]
    pub fn usual_rights(&self) -> Option<Rights> {
        self.is_current().then(|| self.granted())
    }

    #[inline]
    const fn granted(&self) -> Rights {
        let whose = KeyUser::peer_of(self.number, self.domain);
        Rights { access: self.access, answers: self.answers, whose }
    }

    /// Whether it accepts messages of this requester. What was validated of it then holds.
    #[inline]
    pub fn listens(&mut self) -> Result<(), Unavailable> {
        if self.is_current() { Ok(()) } else { self.validate() }
    }

    /// Whether what was validated of it holds. Beside the identity, these are the words by which a queue pair that
    /// changes its state finds out whose messages it waits for: it and its senders must not judge by different ones.
    #[inline(always)]
    fn is_current(&self) -> bool {
        self.seen == Some(identity::read(&self.slot.identity)) && self.is_for_requester()
    }

    /// Whether it has the requester's type, and each of the two is connected to the other. Datagrams are accepted from
    /// all queue pairs.
    #[inline(always)]
    fn is_for_requester(&self) -> bool {
        let [to, from] = self.destinations.map(sync::load);
        sync::load(&self.slot.qp_type) == self.kind.0
            && (self.kind == QpType::UD || to == self.number.get() && from == self.from.get())
    }

    /// The `nth` of its receives that have not completed, for a usual message: `None` if it has none, or one that is not
    /// usual. It is not taken before its completion is pushed.
    #[inline(always)]
    pub fn usual_receive(&mut self, nth: u64) -> Option<UsualReceive> {
        if !self.is_current() || self.srq != SrqNumber::NONE {
            return None;
        }
        let recv = &self.slot.recv;
        let position = recv.completed().plus(nth);
        if !recv.has(position, &mut self.cached_posted, self.recv_capacity) {
            return None;
        }
        let (wr_id, sge) = self.receives.as_ref()?.read_one_recv(position)?;
        Some(UsualReceive { position, wr_id, sge })
    }

    /// The SGE of its next receive, if that is known to be posted and has one.
    #[inline]
    pub fn known_receive(&self) -> Option<Sge> {
        let recv = &self.slot.recv;
        let position = recv.completed();
        let is_known = recv.is_known(position, self.cached_posted, self.recv_capacity);
        let (_, sge) = self.receives.as_ref().filter(|_| is_known)?.read_one_recv(position)?;
        Some(sge)
    }

    /// Whose keys its receives use.
    pub const fn local_keys(&self) -> KeyUser {
        KeyUser::local(self.domain)
    }

    /// Its state is checked before the rest is read, which is then no older than the state, and again after, so that it
    /// is not that of a later queue pair in the same entry.
    #[cold]
    fn validate(&mut self) -> Result<(), Unavailable> {
        let slot = self.slot;
        self.seen = None;
        let now = self.is_connected()?;
        self.access = Access::from_bits_retain(sync::load(&slot.access));
        self.answers = sync::load(&slot.max_dest_rd_atomic) != 0;
        self.domain = sync::load(&slot.pd);
        self.srq = slot.srq();
        self.receives = Ring::of(self.engine.shm, &slot.recv_ring);
        self.recv_capacity = sync::load(&slot.recv_capacity);
        self.recv_cq = CqRing::new(self.engine.completions, slot.recv_cq());
        self.cached_posted = slot.recv.completed();
        sync::read_fence();
        self.is_connected()?;
        self.seen = Some(now);
        Ok(())
    }

    /// Whether it receives, from this requester; returns its identity.
    fn is_connected(&self) -> Result<Identity, Unavailable> {
        let now = identity::read(&self.slot.identity);
        match now.state() {
            // No queue pair has number 0, but a free entry has.
            _ if now.number() != self.number || now.number() == QpNumber::NONE => {
                Err(Unavailable::Gone)
            }
            QpState::RESET | QpState::INIT | QpState::ERR => Err(Unavailable::NotReady),
            _ if self.is_for_requester() && self.is_in_sequence() => Ok(now),
            _ => Err(Unavailable::NotReady),
        }
    }

    /// Whether it expects the requester's first packet.
    fn is_in_sequence(&self) -> bool {
        let (expected, first) = (&self.slot.rq_psn, &self.engine.qp(self.from).sq_psn);
        let strict = self.engine.policy.strict;
        strict.answers(self.kind, sync::load(expected), sync::load(first))
    }

    /// Whether it accepts datagrams with this queue key.
    pub fn takes(&mut self, qkey: u32) -> bool {
        self.listens().is_ok() && sync::load(&self.slot.qkey) == qkey
    }

    /// Takes the lock of its receives: see `engine/requester/datagram.rs`.
    ///
    /// # Errors
    /// The holder of the lock is alive and suspended.
    pub fn take_receives(&self) -> Result<Guard<'static>, Stuck> {
        let stuck = &self.engine.own(self.engine.index(self.number)).stuck;
        let (holder, known) = (self.slot.receive_lock.holder(), sync::load(stuck));
        if known != 0 {
            if holder
                .is_some_and(|holder| holder.to_word() == known && !self.engine.shm.is_dead(holder))
            {
                // This process has waited for this holder before, and does not wait again.
                return Err(Stuck);
            }
            sync::store(stuck, 0);
        }
        let taken = in_flight::take_receives(self.engine, self.slot);
        if taken.is_err() {
            sync::store(stuck, holder.map_or(0, AttachmentKey::to_word));
        }
        taken
    }

    /// The `nth` of its receives that have not completed. If a connection has none, posting one reschedules the
    /// requester, whatever that waits for: `rnr_retry` may have changed since its wait began. The receive is for the
    /// current message: before the copy guard is closed, its completion has to be [pushed](Self::push), or it is
    /// [given back](Self::give_back).
    #[inline]
    pub fn receive(&mut self, nth: u64) -> Result<Receive, Unavailable> {
        self.listens()?;
        if self.srq != SrqNumber::NONE {
            return self.shared_receive();
        }
        if self.kind == QpType::UD {
            self.has_nothing_abandoned()?;
        }
        let (recv, capacity, known) =
            (&self.slot.recv, self.recv_capacity, &mut self.cached_posted);
        let position = recv.completed().plus(nth);
        let is_there = match self.kind {
            QpType::RC => recv.has_or_starve(position, known, capacity),
            // No requester waits for one.
            _ => recv.has(position, known, capacity),
        };
        if !is_there {
            return Err(Unavailable::NoReceive);
        }
        let ring = self.receives.as_ref().ok_or(Unavailable::Gone)?;
        let (tag, request) = (tag::of_recv(position.next()), ring.read_recv(position));
        Ok(Receive { tag, taken: None, domain: KeyUser::local(self.domain), request })
    }

    /// The next receive of its shared receive queue.
    #[inline(never)]
    fn shared_receive(&mut self) -> Result<Receive, Unavailable> {
        let (engine, srq, number) = (self.engine, self.srq, self.number);
        let may = || self.listens().and_then(|()| self.has_nothing_abandoned());
        let (taken, request) = shared_receives::take(engine, srq, number, may)?;
        let domain = KeyUser::local(sync::load(&engine.srq(srq).pd));
        Ok(Receive { tag: taken.tag(), taken: Some(taken), domain, request })
    }

    /// Checks that no abandoned request may still write to receives that were taken before and given back. To be called
    /// once a receive is taken, or under the lock by which receives are taken, if none is given back without it.
    #[inline]
    fn has_nothing_abandoned(&self) -> Result<(), Unavailable> {
        match self.slot.life().attachment() {
            Some(attachment) if copier::has_abandoned(self.engine.memory, attachment) => {
                Err(Unavailable::Stuck)
            }
            _ => Ok(()),
        }
    }

    /// Gives a receive back that was not used.
    pub fn give_back(&self, receive: &Receive) {
        if let Some(taken) = &receive.taken {
            shared_receives::give_back(self.engine, self.srq, taken);
        }
    }

    /// Whether it allows this requester so many outstanding READs and atomics, or as many as that has at most.
    pub fn allows_outstanding(&self, count: u32, requester: &QpSlot) -> bool {
        let most = sync::load(&requester.max_rd_atomic);
        count.min(most) <= sync::load(&self.slot.max_dest_rd_atomic)
    }

    /// Prefetches what a SEND will read and write of it.
    #[inline]
    pub fn prefetch_send(&self) {
        if let Some(ring) = &self.receives {
            ring.prefetch(self.slot.recv.completed());
        }
        self.recv_cq.prefetch();
    }

    /// The completion of a receive that has succeeded.
    #[inline]
    pub fn received(
        &self,
        receive: &Receive,
        len: usize,
        received_op: ReceivedOp,
        solicited: bool,
    ) -> Tagged {
        let wc = complete::received(receive.request.wr_id, self.number, len, received_op);
        Tagged { wc, tag: receive.tag, solicited }
    }

    /// Fails the queue pair because a receive does not fit its message. Returns the completion of the receive, and the status
    /// of the message.
    pub fn mismatched(
        &mut self,
        receive: &Receive,
        responder_status: WcStatus,
        requester_status: WcStatus,
    ) -> (Tagged, WcStatus) {
        let (responder_status, requester_status) =
            self.engine.policy.imitation.mismatch(responder_status, requester_status);
        (self.refused(receive, responder_status), requester_status)
    }

    /// Fails the queue pair because of a receive, and returns the completion of that.
    #[cold]
    pub fn refused(&mut self, receive: &Receive, status: WcStatus) -> Tagged {
        self.fail(status);
        let wr_id = receive.request.wr_id;
        let wc = complete::failed(self.engine, self.slot.recv_cq(), wr_id, self.number, status);
        Tagged { wc, tag: receive.tag, solicited: false }
    }

    /// The queue pair goes to ERR because it refuses a request with this status. None of its receives shows that, so an
    /// event is reported (Q7). An unreliable one does not fail.
    pub fn refuse(&mut self, status: WcStatus) {
        if self.kind == QpType::RC && self.fail(status) {
            let event = match status {
                WcStatus::REM_ACCESS_ERR => QpEvent::AccessError,
                _ => QpEvent::RequestError,
            };
            events::report_qp(self.engine, self.number, event);
        }
    }

    /// The queue pair goes to ERR, if it still accepts messages of this requester; returns whether it did. It can't be
    /// connected anew in between: that waits until the requester's copy guard is closed.
    fn fail(&mut self, reason: WcStatus) -> bool {
        let fails = self.listens().is_ok() && identity::fail(&self.slot.identity, self.number);
        if fails {
            trace::event!(
                WARN, qp_num = self.number.get(), state = ?QpState::ERR, reason = ?reason,
                peer = self.from.get(), "queue pair failed"
            );
        }
        fails
    }

    /// Whether it is in ERR. To be called after the requester's copy guard is closed: receives after one that was in
    /// flight then are still to be flushed.
    #[inline]
    pub fn has_failed(&self) -> bool {
        identity::has_failed(self.slot, self.number)
    }

    /// Pushes completions of receives, in order. Returns the wake-up that is due.
    // Always: for two callers it is not inlined, which is 27 instructions of each SEND.
    #[inline(always)]
    pub fn push(&mut self, entries: &[Tagged]) -> Wakeup {
        let whose = (self.number, self.slot);
        complete::push_received(self.engine, whose, &mut self.recv_cq, entries)
    }
}

#[cfg(test)]
mod tests;
