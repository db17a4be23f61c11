//! A queue pair's place in the tables: from being claimed, over being emptied, to being given back.

use std::sync::Arc;

use crate::arena::Extent;
use crate::async_event;
use crate::cq::Queue;
use crate::error::{CreateError, Limit};
use crate::execute;
use crate::fabric::Fabric;
use crate::identity;
use crate::layout::{Entry, MAX_QP, QpSlot};
use crate::lock::Backoff;
use crate::pd::Domain;
use crate::qp::QpInit;
use crate::queue::{Ring, Shape};
use crate::sync;
use crate::window;

/// A queue pair's place in the table, its memory, and what it keeps alive.
#[derive(Debug)]
pub struct Place {
    pub fabric: &'static Fabric,
    pub slot: &'static QpSlot,
    pub number: u32,
    pub send_ring: Ring,
    pub recv_ring: Ring,
    _extent: Extent,
    /// In use as long as this is.
    uses: (Arc<Domain>, Arc<Queue>, Arc<Queue>),
}

impl Place {
    /// Claims one, in RESET.
    pub fn new(domain: &Arc<Domain>, init: &QpInit<'_>) -> Result<Self, CreateError> {
        let (fabric, caps) = (domain.fabric(), init.caps);
        let sends = Shape::of_sends(caps.max_send_wr, caps.max_send_sge, caps.max_inline);
        let recvs = Shape::of_recvs(caps.max_recv_wr, caps.max_recv_sge);
        let bytes = sends.bytes() + recvs.bytes();
        let extent = Extent::allocate(fabric, bytes)?;
        let (at, recvs_at) = (extent.offset(), extent.offset() + sends.bytes() as u32);
        let none = CreateError::NoMemory { bytes };
        let send_ring = sends.ring(fabric, at).ok_or(none)?;
        let recv_ring = recvs.ring(fabric, recvs_at).ok_or(none)?;
        let full = CreateError::TableFull { what: Limit::QueuePairs, max: MAX_QP as u32 };
        let (index, generation) = fabric.tables().qps.claim().ok_or(full)?;
        let (slot, number) = (fabric.qp(index), identity::number_of(index, generation));
        let (send_cq, recv_cq) = (init.send_cq.queue(), init.recv_cq.queue());
        sends.record(&slot.send_ring, at);
        recvs.record(&slot.recv_ring, recvs_at);
        for (word, value) in [
            (&slot.dest, 0),
            (&slot.access, 0),
            (&slot.max_rd_atomic, 0),
            (&slot.max_dest_rd_atomic, 0),
            (&slot.pd, domain.number()),
            (&slot.send_cq, send_cq.index()),
            (&slot.recv_cq, recv_cq.index()),
            (&slot.send_capacity, caps.max_send_wr),
        ] {
            sync::store_u32(word, value);
        }
        identity::enter(slot, number);
        async_event::attach_qp(domain.bell(), index);
        let uses = (Arc::clone(domain), Arc::clone(send_cq), Arc::clone(recv_cq));
        Ok(Self { fabric, slot, number, send_ring, recv_ring, _extent: extent, uses })
    }

    /// Lets this queue pair, and whoever waits for it, find out about a new state.
    pub fn tell(&self) {
        execute::run(self.fabric, self.number);
        execute::run_those_connected_to(self.fabric, self.number);
    }

    /// Once the state says that the peer is shut out: waits until nobody moves bytes for a request that
    /// was let in before. Pairs with the fence of `Window::open`, as deregistering does.
    pub fn outwait_peers(&self) {
        sync::full_fence();
        for slot in self.fabric.tables().qps.all() {
            if sync::load_u32(&slot.dest) == self.number {
                window::wait_for_copy(&slot.send.copying);
            }
        }
    }

    /// To RESET: both queues are emptied in silence. Of the attributes, all that can be seen before they
    /// are set again is whether READs and atomics are taken.
    pub fn reset(&self) {
        self.halt();
        sync::store_u32(&self.slot.max_rd_atomic, 0);
        self.empty();
        self.slot.send.turn.abandon();
        self.outwait_peers();
        self.tell();
    }

    /// Shuts the peer out by the state, and takes the turn, whose holder sees the state and stops after the
    /// request that it is at.
    fn halt(&self) {
        identity::enter(self.slot, self.number);
        self.slot.send.turn.seize();
    }

    /// Once the queue pair is halted: waits for a receive that it has
    /// taken, and forgets what both queues hold. The peer looks at the state under the lock, so it takes no
    /// other. Positions go on, so that what is left of the old ones means nothing.
    fn empty(&self) {
        let recv = &self.slot.recv;
        let mut guard = recv.lock.lock();
        let mut backoff = Backoff::default();
        while sync::load_u32(&recv.in_flight) != 0 {
            drop(guard);
            backoff.snooze();
            guard = recv.lock.lock();
        }
        sync::release(&recv.taken, sync::load(&recv.posted));
        sync::store_u32(&recv.starved, 0);
        let posted = sync::load(&self.slot.send.posted);
        sync::store(&self.slot.send.done, posted);
        sync::raise_from(&self.slot.retired.0, |retired| (retired != posted).then_some(posted));
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.halt();
        // While it has its number: an event that is being taken bears it.
        async_event::detach_qp(self.uses.0.bell(), self.number);
        self.empty();
        identity::vacate(self.slot);
        self.slot.send.turn.abandon();
        self.outwait_peers();
        self.slot.life().end();
        execute::run_those_connected_to(self.fabric, self.number);
    }
}
