//! Posting: requests are validated, written to their queue, and published.

use cq_verbs::post::{Post, PostError, WrError};
use cq_verbs::setup::QpState;
use cq_verbs::wr::{RecvWr, SendWr};

use crate::api::qp::QueuePair;
use crate::engine::entry::SendQueue;
use crate::engine::ring::put_all;
use crate::engine::send_queue;
use crate::engine::ud_address::UdAddress;
use crate::protocol::number::{Position, QpNumber};
use crate::sync;

impl QueuePair {
    /// Checks the state (Q3), once for a list.
    #[inline]
    pub(super) fn check_takes_sends(&self) -> Result<(), WrError> {
        if self.current_state().takes_sends() { Ok(()) } else { Err(WrError::WrongState) }
    }

    #[inline]
    pub(super) fn put_send(
        &mut self,
        position: Position,
        wr: &SendWr<'_>,
        way: Option<&UdAddress>,
    ) -> Result<(), WrError> {
        let wired = self.validate_send(wr, way)?;
        if !self.has_send_slot(position) {
            return Err(WrError::QueueFull);
        }
        self.claimed.send_slots.pending(position);
        self.claimed.send_ring.write_send(position, wr, wired, self.sq_sig_all);
        Ok(())
    }

    #[inline]
    fn has_send_slot(&mut self, position: Position) -> bool {
        let capacity = self.behavior.capacities[0];
        self.free_slots.has_one(position, capacity) || {
            self.look_for_send_slots(position);
            self.free_slots.has_one(position, capacity)
        }
    }

    #[inline(never)]
    fn look_for_send_slots(&mut self, position: Position) {
        let send = &self.claimed.queue.slot.send;
        if self.behavior.frees_slots_early {
            return self.free_slots.free_up_to(send.done_acquire(), position);
        }
        self.free_slots.free_up_to(send.freed(), position);
        self.free_slots.look(&self.claimed.send_slots, position, self.send_cq.polled.seen());
    }

    #[inline]
    fn put_recv(&mut self, position: Position, wr: &RecvWr<'_>) -> Result<(), WrError> {
        if !self.current_state().takes_recvs() {
            return Err(WrError::WrongState);
        }
        self.validate_recv(wr)?;
        if !self.has_recv_slot(position) {
            return Err(WrError::QueueFull);
        }
        self.claimed.recv_ring.write_recv(position, wr);
        Ok(())
    }

    /// Publishes the sends before position `end`, and carries them out or leaves them to the send queue's owner.
    #[inline]
    pub(super) fn publish_sends(&mut self, end: Position) {
        sync::release(&self.claimed.queue.slot.send.posted, end.get());
        self.claimed.queue.post(&mut self.connection);
    }

    /// Publishes the receives before position `end`, and reschedules a peer that waits for one.
    #[inline]
    fn publish_recvs(&self, end: Position) {
        let SendQueue { engine, slot, index, .. } = self.claimed.queue;
        let starved = slot.recv.post(end);
        // After the fence of `post`: either the thread that changes the state to ERR sees these receives, or ERR is
        // seen here.
        if self.current_state() == QpState::ERR {
            if self.behavior.flushes_at_once {
                send_queue::run(engine, index);
            }
        } else if starved {
            let peer = QpNumber::new(sync::load(engine.dest(index)));
            send_queue::reschedule(engine, engine.index(peer));
        }
    }
}

impl Post for QueuePair {
    /// Posts sends. Datagrams are refused: they need a destination and are posted through [`to`](QueuePair::to).
    #[inline]
    fn post_send(&mut self, list: &[SendWr<'_>]) -> Result<(), PostError> {
        let first = self.claimed.queue.slot.send.posted();
        let takes_sends = self.check_takes_sends();
        let put = |position, wr: &_| takes_sends.and_then(|()| self.put_send(position, wr, None));
        let (end, result) = put_all(first, list, put);
        if end != first {
            self.publish_sends(end);
        }
        result
    }

    #[inline]
    fn post_recv(&mut self, list: &[RecvWr<'_>]) -> Result<(), PostError> {
        let first = self.claimed.queue.slot.recv.posted();
        let (end, result) = put_all(first, list, |position, wr| self.put_recv(position, wr));
        if end != first {
            self.publish_recvs(end);
        }
        result
    }

    /// Goes to RESET. It can't while the peer's process is suspended in the middle of a message: false after two seconds.
    /// A forked child has nothing that the device uses.
    fn quiesce(&mut self) -> bool {
        !self.claimed.queue.engine.shm.is_ours() || self.claimed.quiesce().is_ok()
    }

    /// A datagram is judged with its destination, through [`to`](QueuePair::to).
    fn check_send(&self, wr: &SendWr<'_>) -> Result<(), WrError> {
        self.validate_send(wr, None).map(drop)
    }

    fn check_recv(&self, wr: &RecvWr<'_>) -> Result<(), WrError> {
        self.validate_recv(wr)
    }
}
