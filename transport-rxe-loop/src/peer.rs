//! The other end of a connection, as the initiator of a request sees it: whether it listens, its next
//! receive, and its failing.

use cq_core::setup::{Access, QpType};
use cq_core::soft::Entry;
use cq_core::wc::WcStatus;

use crate::async_event::{self, QpEvent};
use crate::completion::{self, Took};
use crate::cq;
use crate::fabric::Fabric;
use crate::facts::Whose;
use crate::identity;
use crate::imitate;
use crate::layout::QpSlot;
use crate::lock::{Guard, Stuck};
use crate::pool;
use crate::protocol::lock::Owner;
use crate::protocol::pool::Taken;
use crate::protocol::receives::Ahead;
use crate::protocol::tag;
use crate::queue::{RecvRequest, Ring};
use crate::state::QpState;
use crate::sync::{self, AtomicU32, AtomicU64};
use crate::window;

/// The queue pair that another one is connected to. It may be gone at any moment.
#[derive(Debug)]
pub struct Peer {
    fabric: &'static Fabric,
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

/// Why a peer takes no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// It is not connected yet, has failed, or is connected to another.
    NotReady,
    /// It was destroyed: nobody has its number.
    Gone,
    /// No receive is posted.
    NoReceive,
    /// Another process lives, holds the lock of its receives, and is suspended.
    Stuck,
}

impl Peer {
    /// The peer with this number, of the initiator `from`, which is of this kind.
    #[inline]
    pub fn new(fabric: &'static Fabric, number: u32, from: u32, kind: QpType) -> Self {
        Self { fabric, slot: fabric.qp(number), number, from, kind }
    }

    /// Its number.
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// Who uses its keys for requests of its own, while it can't go away: the initiator's window is open.
    pub fn domain(&self) -> Whose {
        Whose::local(sync::load_u32(&self.slot.pd))
    }

    /// What it lets its peer do, and as whom that uses its keys. Looks whether it listens before reading
    /// them, so that they are no older than its state, and after, so that they are not another's which has
    /// taken its place.
    #[inline(always)]
    pub fn rights(&self) -> Result<Rights, Unavailable> {
        self.listens()?;
        let access = Access::from_bits_retain(sync::load_u32(&self.slot.access));
        let answers = sync::load_u32(&self.slot.max_dest_rd_atomic) != 0;
        let whose = Whose::peer_of(self.number, sync::load_u32(&self.slot.pd));
        sync::read_fence();
        self.is_connected()?;
        Ok(Rights { access, answers, whose })
    }

    /// Whether it takes messages of this initiator.
    #[inline]
    pub fn listens(&self) -> Result<(), Unavailable> {
        self.is_connected()?;
        // What has a number keeps its type.
        let is_alike = sync::load_u32(&self.slot.qp_type) == self.kind as u32;
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
            _ if sync::load_u32(self.fabric.dest(self.number)) != self.from => {
                Err(Unavailable::NotReady)
            }
            _ => Ok(()),
        }
    }

    #[cold]
    fn gone(&self) -> Unavailable {
        match imitate::answers_for_the_dead(self.fabric) {
            true => Unavailable::Gone,
            false => Unavailable::NotReady,
        }
    }

    /// Whether it takes datagrams with this queue key.
    pub fn takes(&self, qkey: u32) -> bool {
        self.listens().is_ok() && sync::load_u32(&self.slot.qkey) == qkey
    }

    /// Keeps all others from taking its receives: see [`datagram`](crate::datagram).
    ///
    /// # Errors
    /// Somebody who lives is in the middle of that, and suspended.
    pub fn take_receives(&self) -> Result<Guard<'static>, Stuck> {
        let stuck = &self.fabric.own(self.number).stuck;
        let (holder, known) = (self.slot.taking.holder(), sync::load_u32(stuck));
        if known != 0 {
            if holder
                .is_some_and(|holder| holder.to_word() == known && !self.fabric.is_dead(holder))
            {
                // Who waited once need not wait again.
                return Err(Stuck);
            }
            sync::store_u32(stuck, 0);
        }
        let taken = window::take_receives(self.fabric, self.slot);
        if taken.is_err() {
            sync::store_u32(stuck, holder.map_or(0, Owner::to_word));
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
        let srq = sync::load_u32(&self.slot.srq);
        if srq != 0 {
            return self.shared_receive(srq);
        }
        let (recv, capacity) = (&self.slot.recv, sync::load_u32(&self.slot.recv_capacity));
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
        let ring = Ring::of(self.fabric, &self.slot.recv_ring).ok_or(Unavailable::Gone)?;
        let (tag, request) = (tag::of_recv(position.wrapping_add(1)), ring.read_recv(position));
        Ok(Receive { tag, taken: None, domain: self.domain(), request })
    }

    /// The next receive of its shared receive queue.
    #[inline(never)]
    fn shared_receive(&self, srq: u32) -> Result<Receive, Unavailable> {
        let (taken, request) = pool::take(self.fabric, srq, self.number, || self.listens())?;
        let domain = Whose::local(sync::load_u32(&self.fabric.srq(srq).pd));
        Ok(Receive { tag: taken.tag(), taken: Some(taken), domain, request })
    }

    /// A receive is not used after all.
    pub fn give_back(&self, receive: &Receive) {
        if let Some(taken) = &receive.taken {
            pool::give_back(self.fabric, sync::load_u32(&self.slot.srq), taken);
        }
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
    pub fn received(&self, receive: &Receive, len: usize, took: Took, solicited: bool) -> Entry {
        let wc = completion::received(receive.request.wr_id, self.number, len, took);
        Entry { wc, tag: receive.tag, solicited }
    }

    /// A receive has failed, and the peer with it.
    pub fn refused(&self, receive: &Receive, status: WcStatus) {
        self.fail();
        let wc = completion::failed(receive.request.wr_id, self.number, status);
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

#[cfg(test)]
mod tests {
    use cq_core::setup::SrqInit;
    use cq_core::transport::{AsyncEvents, Post};
    use cq_core::wr::RecvWr;

    use super::*;
    use crate::attr::QpAttr;
    use crate::cq::Cq;
    use crate::device::Context;
    use crate::open::OpenOptions;
    use crate::qp::{QpInit, QueuePair};

    /// A place where nobody lives.
    const PLACE: u16 = 33;

    /// A queue pair that is its own peer.
    fn connected(context: &Context) -> (QueuePair, Cq) {
        let cq = context.create_cq(4, None).unwrap();
        let mut qp = context.alloc_pd().create_qp(&QpInit::new(&cq)).unwrap();
        qp.connect(qp.number()).unwrap();
        (qp, cq)
    }

    #[test]
    fn q07_the_target_of_a_request_that_it_refuses_fails_and_is_told_once() {
        let (mut context, fabric) = OpenOptions::new().alone();
        let (qp, _cq) = connected(&context);
        let (number, state) = (qp.number(), || identity::read(fabric.qp(qp.number())).state);
        let of = |from| Peer::new(fabric, number, from, QpType::Rc);
        of(number + 1).refuse(WcStatus::REM_ACCESS_ERR);
        assert_eq!((state(), context.next_async()), (QpState::Rts, Ok(None)), "of another's");
        of(number).refuse(WcStatus::REM_ACCESS_ERR);
        assert_eq!(state(), QpState::Err);
        assert!(context.next_async().unwrap().is_some());
        of(number).refuse(WcStatus::REM_ACCESS_ERR);
        assert_eq!(context.next_async(), Ok(None), "it has failed already");
    }

    #[test]
    fn q07_a_queue_pair_that_failed_takes_no_datagrams() {
        let (context, fabric) = OpenOptions::new().alone();
        let cq = context.create_cq(4, None).unwrap();
        let init = QpInit { qp_type: QpType::Ud, ..QpInit::new(&cq) };
        let mut qp = context.alloc_pd().create_qp(&init).unwrap();
        qp.activate(1).unwrap();
        let peer = Peer::new(fabric, qp.number(), 0, QpType::Ud);
        assert!(peer.takes(1) && !peer.takes(2));
        qp.modify(&QpAttr::to(QpState::Err)).unwrap();
        assert!(!peer.takes(1));
    }

    #[test]
    fn q07_a_receive_is_of_whom_a_datagram_is_for_whatever_another_has() {
        let (context, fabric) = OpenOptions::new().alone();
        let (pd, cq) = (context.alloc_pd(), context.create_cq(4, None).unwrap());
        let init = QpInit { qp_type: QpType::Ud, ..QpInit::new(&cq) };
        let [mut has, mut has_none] = [(); 2].map(|()| pd.create_qp(&init).unwrap());
        has.activate(1).unwrap();
        has_none.activate(1).unwrap();
        has.post_recv(&[RecvWr::new(1, &[])]).unwrap();
        let ahead = [const { AtomicU64::new(0) }; 2];
        let of = |qp: &QueuePair| {
            let peer = Peer::new(fabric, qp.number(), 0, QpType::Ud);
            peer.receive(&ahead, 0).map(|receive| receive.request.wr_id)
        };
        assert_eq!(of(&has), Ok(1));
        assert_eq!(of(&has_none), Err(Unavailable::NoReceive));
    }

    #[test]
    fn q07_a_free_place_is_nobody() {
        let (context, fabric) = OpenOptions::new().alone();
        drop(connected(&context));
        assert_eq!(identity::read(fabric.qp(0)).number, 0, "it is free");
        let nobody = Peer::new(fabric, 0, 1, QpType::Rc);
        assert_eq!(nobody.listens(), Err(Unavailable::Gone));
    }

    #[test]
    fn x04_more_receives_than_there_is_room_for_are_none() {
        let (context, fabric) = OpenOptions::new().alone();
        let cq = context.create_cq(4, None).unwrap();
        let init = QpInit { qp_type: QpType::Uc, ..QpInit::new(&cq) };
        let mut qp = context.alloc_pd().create_qp(&init).unwrap();
        qp.connect(qp.number()).unwrap();
        let slot = fabric.qp(qp.number());
        let peer = Peer::new(fabric, qp.number(), qp.number(), QpType::Uc);
        let has = || peer.receive(&[const { AtomicU64::new(0) }; 2], 0).is_ok();
        let most = u64::from(sync::load_u32(&slot.recv_capacity));
        assert!(!slot.recv.post(most), "nobody waits");
        assert!(has());
        assert!(!slot.recv.post(most + 1));
        assert!(!has());
    }

    #[test]
    fn q07_a_shared_receive_that_is_not_used_is_there_for_the_next_message() {
        let (context, fabric) = OpenOptions::new().alone();
        let (pd, cq) = (context.alloc_pd(), context.create_cq(4, None).unwrap());
        let mut srq = pd.create_srq(&SrqInit { max_wr: 1, max_sge: 1 }).unwrap();
        let mut qp = pd.create_qp(&QpInit { srq: Some(&srq), ..QpInit::new(&cq) }).unwrap();
        qp.connect(qp.number()).unwrap();
        srq.post_recv(&[RecvWr::new(7, &[])]).unwrap();
        let peer = Peer::new(fabric, qp.number(), qp.number(), QpType::Rc);
        let take = || peer.receive(&[const { AtomicU64::new(0) }; 2], 0);
        let taken = take().unwrap();
        assert_eq!(take().map(|_| ()), Err(Unavailable::NoReceive));
        peer.give_back(&taken);
        let again = take().unwrap();
        assert_eq!(again.request.wr_id, 7);
        peer.give_back(&again);
    }

    #[test]
    fn x03_the_receives_that_a_dead_process_kept_from_all_others_can_be_taken() {
        let (context, fabric) = OpenOptions::new().alone();
        let (qp, _cq) = connected(&context);
        let peer = Peer::new(fabric, qp.number(), qp.number(), QpType::Rc);
        let (taking, dead) = (&fabric.qp(qp.number()).taking, Owner::new(PLACE, 1));
        let stuck = &fabric.own(qp.number()).stuck;
        assert!(taking.try_enter(dead));
        sync::store_u32(stuck, dead.to_word());
        assert!(peer.take_receives().is_ok());
        assert_eq!((taking.holder(), sync::load_u32(stuck)), (None, 0));
    }

    /// The first look waits as long as any does for a lock: two seconds.
    #[test]
    fn x07_who_keeps_the_receives_from_all_others_is_remembered() {
        let (context, fabric) = OpenOptions::new().alone();
        let (qp, _cq) = connected(&context);
        let peer = Peer::new(fabric, qp.number(), qp.number(), QpType::Rc);
        let (slot, stuck) = (fabric.qp(qp.number()), &fabric.own(qp.number()).stuck);
        let kept = fabric.lock(&slot.taking, || {}).unwrap();
        assert_eq!(peer.take_receives().map(drop), Err(Stuck));
        assert_eq!(Some(sync::load_u32(stuck)), slot.taking.holder().map(Owner::to_word));
        assert_eq!(peer.take_receives().map(drop), Err(Stuck));
        drop(kept);
        assert!(peer.take_receives().is_ok());
        assert_eq!(sync::load_u32(stuck), 0);
    }
}
