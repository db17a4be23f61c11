//! Free slots of a receive queue. One is free when its receive has completed; on a [strict](crate::OpenOptions::strict)
//! device, when that completion was polled.

use super::QueuePair;
use crate::engine::complete;
use crate::protocol::number::Position;
use crate::protocol::tag;

impl QueuePair {
    /// Whether there is a slot for the receive at a position.
    #[inline]
    pub(super) fn has_recv_slot(&mut self, position: Position) -> bool {
        let capacity = self.behavior.capacities[1];
        let known = position.since(self.received) < capacity.into();
        known || self.look_for_recv_slot(position, capacity)
    }

    fn look_for_recv_slot(&mut self, position: Position, capacity: u32) -> bool {
        let (engine, recv) = (self.claimed.queue.engine, &self.claimed.queue.slot.recv);
        let is_late = self.behavior.frees_receives_late;
        if !is_late {
            self.received = recv.completed_acquire();
        }
        position.since(self.received) < capacity.into() || {
            // A completion can be polled a moment before its receive counts as completed.
            complete::wait_for_push(engine, self.recv_cq.index);
            let completed = recv.completed_acquire();
            self.received = if is_late { self.polled_up_to(completed) } else { completed };
            position.since(self.received) < capacity.into()
        }
    }

    /// The position up to which receives before `completed`, which were pushed, count as polled: those that are not
    /// count as the last ones, since a completion may have been dropped instead ([O8](cq_core::contract#o8)).
    #[cold]
    fn polled_up_to(&self, completed: Position) -> Position {
        let (number, first) = (self.number(), self.emptied);
        let (count, mut unpolled) = (completed.since(first).try_into().unwrap_or(u32::MAX), 0);
        // Where a suspended process pushes, what has completed counts as polled, as on the ordinary device.
        let _suspended = self.recv_cq.look_through(|wc, tag| {
            let is_its = wc.qp_num() == number && tag::is_recv_from(first, tag, count);
            unpolled += u64::from(is_its);
        });
        completed.minus(unpolled)
    }
}
