//! Recovery of queue pairs, shared receive queues and completion queues whose process died (X3).

use super::entry::QpSlot;
use super::{Engine, complete, identity, in_flight, remote_requests, shared_receives};
use crate::completion::channel::{QP_EVENTS, Source};
use crate::protocol::lock::{AttachmentId, AttachmentKey};
use crate::protocol::number::QpNumber;
use crate::protocol::steps::{self, Step};
use crate::shm::recovery::DeathRecovery;
use crate::shm::table::Entry;
use crate::sync;

/// The table of queue pairs.
#[derive(Debug)]
pub struct QueuePairs(pub &'static Engine);

/// The table of shared receive queues, and the receives that are taken from them.
#[derive(Debug)]
pub struct SharedReceiveQueues(pub &'static Engine);

/// The table of completion queues.
#[derive(Debug)]
pub struct CompletionQueues(pub &'static Engine);

/// The requests to run a queue pair.
#[derive(Debug)]
pub struct RemoteRequests(pub &'static Engine);

impl DeathRecovery for QueuePairs {
    fn inherit(&self, dead: AttachmentKey) {
        for (_, slot) in self.0.qps.all() {
            if slot.receive_lock.holder() == Some(dead) {
                // If this fails, another process has recovered it.
                drop(in_flight::take_receives(self.0, slot));
            }
        }
    }

    /// A process that was suspended in here may find the attachment and its entries in use by others. So it reads the
    /// number before it checks that the attachment still is the dead one's, and vacates no other number.
    fn revoke(&self, dead: AttachmentKey) -> bool {
        let engine = self.0;
        let mut is_quiet = true;
        for (index, slot) in engine.qps.all_of(dead.attachment()) {
            let number = identity::read(&slot.identity).number();
            if !engine.shm.others().any(|other| other == dead) {
                return false;
            }
            if number != QpNumber::NONE {
                // Another survivor may have done it. Its peers are run with all others, after this.
                let _by_this_one = identity::vacate_if(&slot.identity, number);
            }
            is_quiet &= !in_flight::is_open_for(engine, index);
        }
        is_quiet
    }

    fn free(&self, attachment: AttachmentId) {
        for (index, slot) in self.0.qps.all_of(attachment) {
            (0..QP_EVENTS as u32)
                .for_each(|kind| self.0.completions.forget(Source::Qp(index, kind)));
            forget(slot);
            sync::store(self.0.dest(index), 0);
            steps::done(Step::Recovered);
            slot.life().end(attachment);
        }
    }
}

/// Resets the entry for the next queue pair.
fn forget(slot: &QpSlot) {
    slot.send.in_flight.correct();
    slot.recv.empty();
    slot.send.empty();
}

impl DeathRecovery for SharedReceiveQueues {
    fn inherit(&self, dead: AttachmentKey) {
        let locks = self.0.srqs.all().map(|(_, slot)| slot.pool.lock());
        let held = locks.filter(|lock| lock.holder() == Some(dead));
        held.for_each(|lock| drop(self.0.shm.try_lock(lock)));
    }

    /// Gives back what the dead process had taken. After its queue pairs have lost their numbers.
    fn revoke(&self, dead: AttachmentKey) -> bool {
        shared_receives::recover(self.0, dead.attachment())
    }

    fn free(&self, attachment: AttachmentId) {
        for (index, slot) in self.0.srqs.all_of(attachment) {
            sync::release(&slot.number, 0);
            self.0.completions.forget(Source::Srq(index));
            steps::done(Step::Recovered);
            slot.life().end(attachment);
        }
    }
}

impl DeathRecovery for CompletionQueues {
    /// Settles what the dead producer had published.
    fn inherit(&self, dead: AttachmentKey) {
        for (index, slot) in self.0.completions.cqs.all() {
            if slot.fanin.lock.holder() == Some(dead) {
                complete::wait_for_push(self.0, index);
            }
        }
    }

    /// The dead process may not have raised an event, or failed the queue pairs of a queue that overran.
    fn revoke(&self, _: AttachmentKey) -> bool {
        self.0.completions.cqs.indices().for_each(|index| complete::tell(self.0, index));
        true
    }

    fn free(&self, attachment: AttachmentId) {
        for (index, slot) in self.0.completions.cqs.all_of(attachment) {
            slot.fanin.end();
            self.0.completions.forget(Source::Completion(index));
            self.0.completions.forget(Source::Overrun(index));
            steps::done(Step::Recovered);
            slot.life().end(attachment);
        }
    }
}

impl DeathRecovery for RemoteRequests {
    /// Has every queue pair run: peers of the dead process find that it is gone, and those that it had to
    /// reschedule are run.
    fn revoke(&self, dead: AttachmentKey) -> bool {
        remote_requests::submit_all(self.0, dead.attachment());
        true
    }

    fn free(&self, _: AttachmentId) {}
}
