//! The table entry of a queue pair: claimed, reset, freed.

use std::any::Any;
use std::mem;
use std::sync::Arc;

use cq_verbs::setup::{QpCaps, QpState, QpType};

use super::entry::{QpSlot, SendQueue};
use super::ring::{Ring, RingLayout};
use super::{
    Engine, complete, flush, identity, in_flight, pending_atomic, send_queue, shared_receives,
};
use crate::completion::channel::EventChannel;
use crate::completion::{async_event, queue};
use crate::conditions::no_memory;
use crate::error::{CreateError, LimitKind, Stuck};
use crate::protocol::number::{CqIndex, QpNumber, SrqNumber};
use crate::protocol::send_slots::SendSlots;
use crate::shm::arena::Extent;
use crate::shm::table::Entry;
use crate::{sync, trace};

/// A queue pair's table entry, its memory, and the objects that it uses.
#[derive(Debug)]
pub struct ClaimedQp {
    /// Its send queue, with the table entry.
    pub queue: SendQueue,
    pub number: QpNumber,
    pub send_ring: Ring,
    pub send_slots: SendSlots<'static>,
    pub recv_ring: Ring,
    /// `None` once it is dropped.
    deferred: Option<Deferred>,
    /// Whether the process of its peer was suspended in the middle of a message for it.
    is_stuck: bool,
}

/// What a destroyed queue pair may have to keep for a while: its table entry, its memory, the objects that it uses.
#[derive(Debug)]
pub struct Deferred {
    engine: &'static Engine,
    number: QpNumber,
    _extent: Extent,
    /// With the objects that stay in use.
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
    pub cqs: [CqIndex; 2],
    /// The number of its shared receive queue; 0 if there is none.
    pub srq: SrqNumber,
    /// Where its events are reported.
    pub events: Arc<EventChannel>,
    /// Keeps the objects that the queue pair uses.
    pub _uses: Box<dyn Any + Send + Sync>,
}

impl Setup {
    /// Fills in the entry, before the queue pair has a state.
    fn describe(&self, slot: &QpSlot) {
        for (word, value) in [
            (&slot.qp_type, self.qp_type.0),
            (&slot.access, 0),
            (&slot.qkey, 0),
            (&slot.max_rd_atomic, 0),
            (&slot.max_dest_rd_atomic, 0),
            (&slot.pd, self.domain),
            (&slot.send_cq, self.cqs[0].get()),
            (&slot.recv_cq, self.cqs[1].get()),
            (&slot.send_capacity, self.caps.max_send_wr),
            (&slot.recv_capacity, self.caps.max_recv_wr),
            (&slot.srq, self.srq.get()),
        ] {
            sync::store(word, value);
        }
    }
}

impl ClaimedQp {
    /// Claims an entry, in RESET.
    ///
    /// # Errors
    /// No entry is free, or no memory.
    pub fn new(engine: &'static Engine, setup: Setup) -> Result<Self, CreateError> {
        let caps = setup.caps;
        let sends = RingLayout::of_sends(caps.max_send_wr, caps.max_send_sge, caps.max_inline);
        let recvs = RingLayout::of_recvs(caps.max_recv_wr, caps.max_recv_sge);
        let bytes = sends.bytes_of_sends() + recvs.bytes();
        let extent = Extent::allocate(engine.shm, bytes)?;
        let (at, recvs_at) = (extent.offset(), extent.offset() + sends.bytes_of_sends() as u32);
        let none = no_memory(bytes);
        let send_ring = sends.ring(engine.shm, at).ok_or(none)?;
        let send_slots = sends.send_slots(engine.shm, at).ok_or(none)?;
        let recv_ring = recvs.ring(engine.shm, recvs_at).ok_or(none)?;
        let full = CreateError::TableFull { what: LimitKind::QueuePairs, max: engine.qps.len() };
        let (index, generation) = engine.qps.claim(engine.shm.attachment()).ok_or(full)?;
        let number = identity::number_of(&engine.qps, index, generation);
        let slot = engine.qps.at(index);
        sends.record(&slot.send_ring, at);
        recvs.record(&slot.recv_ring, recvs_at);
        sync::store(engine.dest(index), 0);
        setup.describe(slot);
        if let Some(faults) = &engine.policy.faults {
            faults.join(index);
            sync::store(&engine.own(index).faulty, 1);
        }
        let [sends, receives] = setup.cqs;
        if sends == receives || !engine.completions.cq(sends).sole.claim(number) {
            in_flight::share_queue(engine, sends);
        }
        in_flight::share_queue(engine, receives);
        identity::enter(&slot.identity, number);
        async_event::attach_qp(&setup.events, index);
        let cqs = [sends, receives].map(|cq| queue::key(engine.completions, cq));
        trace::event!(
            DEBUG, qp_num = number.get(), qp_type = ?setup.qp_type, pd = setup.domain,
            send_cq = %cqs[0], recv_cq = %cqs[1], srq = setup.srq.get(), "queue pair created"
        );
        let deferred = Some(Deferred { engine, number, _extent: extent, setup });
        let queue = SendQueue::of(engine, index);
        Ok(Self { queue, number, send_ring, send_slots, recv_ring, deferred, is_stuck: false })
    }

    /// Has the service thread check the other processes.
    pub fn watch(&self) {
        // Where the system refuses the thread, the peer's death goes unnoticed; requests still time out,
        // or fail as a request that can't wait.
        let _ = self.queue.engine.shm.watch();
    }

    /// Runs this queue pair, and those connected to it, after a change of its state.
    pub fn tell(&self) {
        send_queue::run(self.queue.engine, self.queue.index);
        send_queue::reschedule_peers_of(self.queue.engine, self.number);
    }

    /// Waits until the peer has no request in flight, once the state lets none begin. Pairs with the fence of
    /// a copy guard that is opened, as deregistering does.
    ///
    /// # Errors
    /// Its process is suspended.
    pub fn wait_for_peer(&self) -> Result<(), Stuck> {
        in_flight::wait_for_senders(self.queue.engine, self.queue.slot, self.number)
    }

    /// Flushes the sends of a queue pair in SQE, which takes no others.
    pub fn flush_sends(&self) {
        self.queue.ownership.seize();
        flush::sends(
            self.queue.engine,
            self.queue.slot,
            self.number,
            (&self.send_ring, &self.send_slots),
        );
        self.queue.ownership.abandon();
    }

    /// Goes to RESET: both queues are emptied without completions. Of the attributes, only `max_rd_atomic` is cleared:
    /// the others are set again before they are read.
    ///
    /// # Errors
    /// The peer's process is suspended in the middle of a message: the queue pair is in ERR.
    pub fn reset(&self) -> Result<(), Stuck> {
        let halted = self.halt();
        if halted.is_ok() {
            sync::store(&self.queue.slot.max_rd_atomic, 0);
            empty(self.queue.engine, self.queue.slot);
        } else {
            let _in_reset = identity::change(
                &self.queue.slot.identity,
                identity::read(&self.queue.slot.identity),
                QpState::ERR,
            );
            trace::event!(
                WARN, qp_num = self.number.get(), state = ?QpState::ERR,
                reason = "its peer's process is suspended", "queue pair failed"
            );
        }
        self.queue.ownership.abandon();
        self.tell();
        halted
    }

    /// Goes to RESET before it is destroyed. If it can't, destroying does not wait once more.
    ///
    /// # Errors
    /// As of [`reset`](Self::reset), now or before.
    pub fn quiesce(&mut self) -> Result<(), Stuck> {
        if !self.is_stuck {
            self.is_stuck = self.reset().is_err();
        }
        if self.is_stuck { Err(Stuck) } else { Ok(()) }
    }

    /// Shuts the peer out by the state, and seizes the send queue: its owner sees the state, and stops after the current
    /// request. Then waits for the peer.
    fn halt(&self) -> Result<(), Stuck> {
        identity::enter(&self.queue.slot.identity, self.number);
        self.queue.ownership.seize();
        pending_atomic::abandon(self.queue.engine, self.number);
        self.queue.engine.memory.windows.release(self.queue.engine.memory, self.number);
        if self.is_stuck {
            return Err(Stuck);
        }
        self.wait_for_peer()?;
        shared_receives::wait_until_idle(self.queue.engine, self.queue.slot.srq(), self.number)
    }
}

/// Empties both queues of a queue pair that is halted, and whose peer has nothing in flight. Positions are not reset, so
/// old ones stay meaningless.
fn empty(engine: &'static Engine, slot: &QpSlot) {
    // No producer is in the middle of a completion of its receives any more.
    complete::wait_for_push(engine, slot.recv_cq());
    slot.recv.empty();
    slot.send.empty();
}

impl Deferred {
    /// Whether a message for it may be in flight.
    fn are_in_use(&self) -> bool {
        in_flight::is_open_for(self.engine, self.engine.index(self.number))
            || shared_receives::is_taken_for(self.engine, self.setup.srq, self.number) != Ok(false)
    }

    /// Frees the entry.
    fn end(self) {
        let slot = self.engine.qp(self.number);
        empty(self.engine, slot);
        slot.life().end(self.engine.shm.attachment());
    }
}

/// Frees the entries of destroyed queue pairs for which nothing is in flight any more.
pub fn tidy(engine: &'static Engine) {
    let all = mem::take(&mut *sync::lock(&engine.deferred));
    let (open, over): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|deferred| deferred.are_in_use());
    sync::lock(&engine.deferred).extend(open);
    over.into_iter().for_each(Deferred::end);
}

impl Drop for ClaimedQp {
    fn drop(&mut self) {
        let Some(deferred) = self.deferred.take().filter(|_| self.queue.engine.shm.is_ours())
        else {
            return;
        };
        let halted = self.halt();
        self.queue.engine.completions.cq(deferred.setup.cqs[0]).sole.end(self.number);
        // Before its number is cleared: an event that is being taken has it.
        async_event::detach_qp(&deferred.setup.events, self.queue.index);
        identity::vacate(&self.queue.slot.identity);
        self.queue.ownership.abandon();
        match halted {
            Ok(()) => deferred.end(),
            Err(Stuck) => sync::lock(&self.queue.engine.deferred).push(deferred),
        }
        send_queue::reschedule_peers_of(self.queue.engine, self.number);
        trace::event!(DEBUG, qp_num = self.number.get(), "queue pair destroyed");
    }
}

#[cfg(test)]
mod tests;
