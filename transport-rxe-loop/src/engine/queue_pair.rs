//! A queue pair's place in the tables: from being claimed, over being emptied, to being given back.

use std::mem;
use std::sync::Arc;

use crate::api::pd::Domain;
use crate::api::qp::QpInit;
use crate::api::srq::{Shared, SharedReceiveQueue};
use crate::api::state::QpState;
use crate::completion::async_event;
use crate::completion::push;
use crate::completion::queue::Queue;
use crate::engine::flush;
use crate::engine::identity;
use crate::engine::in_flight;
use crate::engine::onesided;
use crate::engine::ring::{Ring, Shape};
use crate::engine::send_queue;
use crate::engine::shared_receives;
use crate::error::{CreateError, Limit};
use crate::fabric::Fabric;
use crate::layout::{Entry, QpSlot};
use crate::lifecycle::deaths;
use crate::shm::arena::Extent;
use crate::shm::lock::Stuck;
use crate::sync;

/// A queue pair's place in the table, its memory, and what it keeps alive.
#[derive(Debug)]
pub struct Place {
    pub fabric: &'static Fabric,
    pub slot: &'static QpSlot,
    pub number: u32,
    pub send_ring: Ring,
    pub recv_ring: Ring,
    /// There until it is dropped.
    remains: Option<Remains>,
}

/// What a queue pair has that ends last: its entry in the table, its memory, what it keeps alive.
#[derive(Debug)]
pub struct Remains {
    fabric: &'static Fabric,
    number: u32,
    _extent: Extent,
    /// In use as long as this is.
    uses: Uses,
}

/// What a queue pair is made of.
#[derive(Debug)]
struct Uses {
    domain: Arc<Domain>,
    /// Where sends and receives complete.
    cqs: [Arc<Queue>; 2],
    srq: Option<Arc<Shared>>,
}

impl Uses {
    fn of(domain: &Arc<Domain>, init: &QpInit<'_>) -> Self {
        let cqs = [init.send_cq, init.recv_cq].map(|cq| Arc::clone(cq.queue()));
        let srq = init.srq.map(|srq| Arc::clone(srq.shared()));
        Self { domain: Arc::clone(domain), cqs, srq }
    }

    /// Writes down what there is of a queue pair that is made of this, before it has a state.
    fn describe(&self, slot: &QpSlot, init: &QpInit<'_>) {
        let [send_cq, recv_cq] = self.cqs.each_ref().map(|cq| cq.index());
        for (word, value) in [
            (&slot.qp_type, init.qp_type as u32),
            (&slot.access, 0),
            (&slot.qkey, 0),
            (&slot.max_rd_atomic, 0),
            (&slot.max_dest_rd_atomic, 0),
            (&slot.pd, self.domain.number()),
            (&slot.send_cq, send_cq),
            (&slot.recv_cq, recv_cq),
            (&slot.send_capacity, init.caps.max_send_wr),
            (&slot.recv_capacity, init.caps.max_recv_wr),
            (&slot.srq, self.srq()),
        ] {
            sync::store(word, value);
        }
    }

    /// The number of the shared receive queue; 0 if there is none.
    fn srq(&self) -> u32 {
        self.srq.as_ref().map_or(0, |srq| srq.number())
    }
}

impl Place {
    /// Claims one, in RESET.
    pub fn new(domain: &Arc<Domain>, init: &QpInit<'_>) -> Result<Self, CreateError> {
        let (fabric, caps) = (domain.fabric(), init.caps);
        let (send_cq, recv_cq) = (init.send_cq.queue(), init.recv_cq.queue());
        let srq = init.srq.map(SharedReceiveQueue::shared);
        let is_near = srq.is_none_or(|srq| srq.is_of(fabric));
        if !(send_cq.is_of(fabric) && recv_cq.is_of(fabric) && is_near) {
            return Err(CreateError::OtherFabric);
        }
        let sends = Shape::of_sends(caps.max_send_wr, caps.max_send_sge, caps.max_inline);
        let recvs = Shape::of_recvs(caps.max_recv_wr, caps.max_recv_sge);
        let bytes = sends.bytes() + recvs.bytes();
        let extent = Extent::allocate(fabric, bytes)?;
        let (at, recvs_at) = (extent.offset(), extent.offset() + sends.bytes() as u32);
        let none = CreateError::NoMemory { bytes };
        let send_ring = sends.ring(fabric, at).ok_or(none)?;
        let recv_ring = recvs.ring(fabric, recvs_at).ok_or(none)?;
        let qps = &fabric.tables().qps;
        let full = CreateError::TableFull { what: Limit::QueuePairs, max: qps.len() };
        let (index, generation) = deaths::take(fabric, || qps.claim(fabric.place())).ok_or(full)?;
        let number = identity::number_of(qps, index, generation);
        let slot = fabric.qp(index);
        sends.record(&slot.send_ring, at);
        recvs.record(&slot.recv_ring, recvs_at);
        let uses = Uses::of(domain, init);
        sync::store(fabric.dest(index), 0);
        uses.describe(slot, init);
        if let Some(faults) = fabric.faults() {
            faults.join(index);
            sync::store(&fabric.own(index).faulty, 1);
        }
        identity::enter(slot, number);
        async_event::attach_qp(domain.bell(), index);
        let remains = Some(Remains { fabric, number, _extent: extent, uses });
        Ok(Self { fabric, slot, number, send_ring, recv_ring, remains })
    }

    /// Has the service thread look after other processes.
    pub fn watch(&self) {
        // Where the system refuses the thread, nobody is told of the peer's end; requests still time out,
        // or fail as one that has to wait and can't.
        let _ = self.fabric.service().watch(self.fabric);
    }

    /// Lets this queue pair, and whoever waits for it, find out about a new state.
    pub fn tell(&self) {
        send_queue::run(self.fabric, self.number);
        send_queue::kick_those_connected_to(self.fabric, self.number);
    }

    /// Once the state says that the peer is shut out: waits until it moves no bytes for a request that
    /// was let in before; nobody else is let in. Pairs with the fence of `Window::open`, as deregistering does.
    ///
    /// # Errors
    /// Its process is suspended.
    pub fn outwait_peer(&self) -> Result<(), Stuck> {
        in_flight::outwait_senders(self.fabric, self.slot, self.number)
    }

    /// Flushes the sends of a queue pair in SQE, if that is not yet done. It takes no others.
    pub fn flush_sends(&self) {
        let turn = &self.fabric.own(self.number).turn;
        turn.seize();
        flush::sends(self.fabric, self.slot, self.number, &self.send_ring);
        turn.abandon();
    }

    /// To RESET: both queues are emptied in silence. Of the attributes, all that can be seen before they
    /// are set again is whether READs and atomics are taken.
    ///
    /// # Errors
    /// The peer's process is suspended in the middle of a message: to ERR.
    pub fn reset(&self) -> Result<(), Stuck> {
        let halted = self.halt();
        if halted.is_ok() {
            sync::store(&self.slot.max_rd_atomic, 0);
            empty(self.fabric, self.slot);
        } else {
            let _in_reset = identity::change(self.slot, identity::read(self.slot), QpState::Err);
        }
        self.fabric.own(self.number).turn.abandon();
        self.tell();
        halted
    }

    /// Shuts the peer out by the state, and takes the turn, whose holder sees the state and stops after the
    /// request that it is at.
    fn halt(&self) -> Result<(), Stuck> {
        identity::enter(self.slot, self.number);
        self.fabric.own(self.number).turn.seize();
        onesided::abandon(self.fabric, self.number);
        self.fabric.reach().windows().release(self.fabric, self.number);
        self.outwait_peer()?;
        shared_receives::outwait(self.fabric, sync::load(&self.slot.srq), self.number)
    }
}

/// Once a queue pair is halted, and its peer is through: forgets what both queues hold. Positions go on, so
/// that what is left of the old ones means nothing.
fn empty(fabric: &'static Fabric, slot: &QpSlot) {
    // Whoever is pushing a completion of its receives is through with it, or dead.
    push::outwait_push(fabric, sync::load(&slot.recv_cq));
    slot.recv.empty();
    let posted = sync::load(&slot.send.posted);
    sync::store(&slot.send.done, posted);
    sync::raise_from(&slot.retired.0, |retired| (retired != posted).then_some(posted));
}

impl Remains {
    /// Whether somebody may be in the middle of a message for it.
    fn are_in_use(&self) -> bool {
        in_flight::is_open_for(self.fabric, self.fabric.tables().qps.index(self.number))
            || shared_receives::is_taken_for(self.fabric, self.uses.srq(), self.number) != Ok(false)
    }

    /// Gives the entry back.
    fn end(self) {
        let slot = self.fabric.qp(self.number);
        empty(self.fabric, slot);
        slot.life().end(self.fabric.place());
    }
}

/// Gives the entries of destroyed queue pairs back whose peers have gone on, or died.
pub fn tidy(fabric: &'static Fabric) {
    let all = mem::take(&mut *fabric.remains());
    let (open, over): (Vec<_>, Vec<_>) = all.into_iter().partition(|remains| remains.are_in_use());
    fabric.remains().extend(open);
    over.into_iter().for_each(Remains::end);
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some(remains) = self.remains.take().filter(|_| self.fabric.is_ours()) else { return };
        let halted = self.halt();
        // While it has its number: an event that is being taken bears it.
        async_event::detach_qp(remains.uses.domain.bell(), self.number);
        identity::vacate(self.slot);
        self.fabric.own(self.number).turn.abandon();
        match halted {
            Ok(()) => remains.end(),
            Err(Stuck) => self.fabric.remains().push(remains),
        }
        send_queue::kick_those_connected_to(self.fabric, self.number);
    }
}

#[cfg(test)]
mod tests;
