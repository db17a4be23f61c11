//! A queue pair's entry in the tables: from being claimed, over being emptied, to being given back.

use std::any::Any;
use std::mem;
use std::sync::Arc;

use cq_core::setup::{QpCaps, QpType};

use super::entry::QpSlot;
use super::ring::{Ring, Shape};
use super::{Engine, begun, complete, flush, identity, in_flight, send_queue, shared_receives};
use crate::completion::async_event;
use crate::completion::channel::EventChannel;
use crate::error::{CreateError, Limit, Stuck};
use crate::protocol::state::QpState;
use crate::shm::arena::Extent;
use crate::shm::table::Entry;
use crate::sync;

/// A queue pair's place in the table, its memory, and what it keeps alive.
#[derive(Debug)]
pub struct Place {
    pub engine: &'static Engine,
    pub slot: &'static QpSlot,
    pub number: u32,
    pub send_ring: Ring,
    pub recv_ring: Ring,
    /// There until it is dropped.
    deferred: Option<Deferred>,
}

/// What a queue pair has that ends last: its entry in the table, its memory, what it keeps alive.
#[derive(Debug)]
pub struct Deferred {
    engine: &'static Engine,
    number: u32,
    _extent: Extent,
    /// In use as long as this is.
    setup: Setup,
}

/// What a queue pair is made of.
#[derive(Debug)]
pub struct Setup {
    pub qp_type: QpType,
    pub caps: QpCaps,
    /// The number of its protection domain.
    pub domain: u32,
    /// The indices of the completion queues of sends and of receives.
    pub cqs: [u32; 2],
    /// The number of its shared receive queue; 0 if there is none.
    pub srq: u32,
    /// Where its events are reported.
    pub events: Arc<EventChannel>,
    /// What is in use as long as the queue pair is.
    pub _uses: Box<dyn Any + Send + Sync>,
}

impl Setup {
    /// Writes down what there is of a queue pair that is made of this, before it has a state.
    fn describe(&self, slot: &QpSlot) {
        for (word, value) in [
            (&slot.qp_type, self.qp_type as u32),
            (&slot.access, 0),
            (&slot.qkey, 0),
            (&slot.max_rd_atomic, 0),
            (&slot.max_dest_rd_atomic, 0),
            (&slot.pd, self.domain),
            (&slot.send_cq, self.cqs[0]),
            (&slot.recv_cq, self.cqs[1]),
            (&slot.send_capacity, self.caps.max_send_wr),
            (&slot.recv_capacity, self.caps.max_recv_wr),
            (&slot.srq, self.srq),
        ] {
            sync::store(word, value);
        }
    }
}

impl Place {
    /// Claims one, in RESET.
    ///
    /// # Errors
    /// There is no entry, or no memory.
    pub fn new(engine: &'static Engine, setup: Setup) -> Result<Self, CreateError> {
        let caps = setup.caps;
        let sends = Shape::of_sends(caps.max_send_wr, caps.max_send_sge, caps.max_inline);
        let recvs = Shape::of_recvs(caps.max_recv_wr, caps.max_recv_sge);
        let bytes = sends.bytes() + recvs.bytes();
        let extent = Extent::allocate(engine.shm, bytes)?;
        let (at, recvs_at) = (extent.offset(), extent.offset() + sends.bytes() as u32);
        let none = CreateError::NoMemory { bytes };
        let send_ring = sends.ring(engine.shm, at).ok_or(none)?;
        let recv_ring = recvs.ring(engine.shm, recvs_at).ok_or(none)?;
        let full = CreateError::TableFull { what: Limit::QueuePairs, max: engine.qps.len() };
        let (index, generation) = engine.qps.claim(engine.shm.attachment()).ok_or(full)?;
        let number = identity::number_of(&engine.qps, index, generation);
        let slot = engine.qp(index);
        sends.record(&slot.send_ring, at);
        recvs.record(&slot.recv_ring, recvs_at);
        sync::store(engine.dest(index), 0);
        setup.describe(slot);
        if let Some(faults) = &engine.policy.faults {
            faults.join(index);
            sync::store(&engine.own(index).faulty, 1);
        }
        identity::enter(slot, number);
        async_event::attach_qp(&setup.events, index);
        let deferred = Some(Deferred { engine, number, _extent: extent, setup });
        Ok(Self { engine, slot, number, send_ring, recv_ring, deferred })
    }

    /// Has the service thread look after other processes.
    pub fn watch(&self) {
        // Where the system refuses the thread, nobody is told of the peer's end; requests still time out,
        // or fail as one that has to wait and can't.
        let _ = self.engine.shm.watch();
    }

    /// Lets this queue pair, and whoever waits for it, find out about a new state.
    pub fn tell(&self) {
        send_queue::run(self.engine, self.number);
        send_queue::reschedule_peers_of(self.engine, self.number);
    }

    /// Once the state says that the peer is shut out: waits until it moves no bytes for a request that
    /// was let in before; nobody else is let in. Pairs with the fence of `CopyGuard::open`, as deregistering does.
    ///
    /// # Errors
    /// Its process is suspended.
    pub fn outwait_peer(&self) -> Result<(), Stuck> {
        in_flight::outwait_senders(self.engine, self.slot, self.number)
    }

    /// Flushes the sends of a queue pair in SQE, if that is not yet done. It takes no others.
    pub fn flush_sends(&self) {
        let ownership = &self.engine.own(self.number).ownership;
        ownership.seize();
        flush::sends(self.engine, self.slot, self.number, &self.send_ring);
        ownership.abandon();
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
            empty(self.engine, self.slot);
        } else {
            let _in_reset = identity::change(self.slot, identity::read(self.slot), QpState::Err);
        }
        self.engine.own(self.number).ownership.abandon();
        self.tell();
        halted
    }

    /// Shuts the peer out by the state, and takes the turn, whose holder sees the state and stops after the
    /// request that it is at.
    fn halt(&self) -> Result<(), Stuck> {
        identity::enter(self.slot, self.number);
        self.engine.own(self.number).ownership.seize();
        begun::abandon(self.engine, self.number);
        self.engine.memory.windows().release(self.engine.memory, self.number);
        self.outwait_peer()?;
        shared_receives::outwait(self.engine, sync::load(&self.slot.srq), self.number)
    }
}

/// Once a queue pair is halted, and its peer is through: forgets what both queues hold. Positions go on, so
/// that what is left of the old ones means nothing.
fn empty(engine: &'static Engine, slot: &QpSlot) {
    // Whoever is pushing a completion of its receives is through with it, or dead.
    complete::outwait_push(engine, sync::load(&slot.recv_cq));
    slot.recv.empty();
    let posted = sync::load(&slot.send.posted);
    sync::store(&slot.send.done, posted);
    sync::raise_from(&slot.retired.0, |retired| (retired != posted).then_some(posted));
}

impl Deferred {
    /// Whether somebody may be in the middle of a message for it.
    fn are_in_use(&self) -> bool {
        in_flight::is_open_for(self.engine, self.engine.qps.index(self.number))
            || shared_receives::is_taken_for(self.engine, self.setup.srq, self.number) != Ok(false)
    }

    /// Gives the entry back.
    fn end(self) {
        let slot = self.engine.qp(self.number);
        empty(self.engine, slot);
        slot.life().end(self.engine.shm.attachment());
    }
}

/// Gives the entries of destroyed queue pairs back whose peers have gone on, or died.
pub fn tidy(engine: &'static Engine) {
    let all = mem::take(&mut *engine.deferred());
    let (open, over): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|deferred| deferred.are_in_use());
    engine.deferred().extend(open);
    over.into_iter().for_each(Deferred::end);
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some(deferred) = self.deferred.take().filter(|_| self.engine.shm.is_ours()) else {
            return;
        };
        let halted = self.halt();
        // While it has its number: an event that is being taken bears it.
        async_event::detach_qp(&deferred.setup.events, self.number);
        identity::vacate(self.slot);
        self.engine.own(self.number).ownership.abandon();
        match halted {
            Ok(()) => deferred.end(),
            Err(Stuck) => self.engine.deferred().push(deferred),
        }
        send_queue::reschedule_peers_of(self.engine, self.number);
    }
}

#[cfg(test)]
mod tests;
