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

    /// The position up to which the completions of receives were polled, of those before `completed`, which were pushed.
    #[cold]
    fn polled_up_to(&self, completed: Position) -> Position {
        let (first, count) = (self.received, completed.since(self.received) as u32);
        let mut oldest = None;
        // Where a suspended process pushes, what has completed counts, as on the ordinary device.
        let _suspended = self.recv_cq.look_through(|wc, tag| {
            if wc.qp_num() == self.number() {
                oldest = oldest.or_else(|| tag::recv_from(first, tag, count));
            }
        });
        oldest.unwrap_or(completed)
    }
}
