//! The producers' lock of a completion queue: taking it over from a dead producer, and giving the queue up if the lock
//! can't be taken.

use cq_core::queue::Tagged;
use cq_core::queue::raw::{RawProducer, RawQueue};
use cq_core::transport::CqKey;
use cq_core::wc::Wc;

use super::Completions;
use super::channel::{self, Source};
use super::queue::{self, CqRing, ring};
use crate::error::Stuck;
use crate::protocol::fanin::Fanin;
use crate::protocol::mode::CqFlag;
use crate::protocol::number::CqIndex;
use crate::shm::lock::Guard;
use crate::{sync, trace};

/// The maximum number of completions per push.
pub const RUN: usize = 32;

/// The requests of completions: called by the queue's [producer](crate::protocol::fanin::Fanin) as their completions are pushed.
pub trait RequestHooks: Copy {
    /// The completion with this tag will be published at a position of the queue.
    #[inline(always)]
    fn place(self, _tag: u32, _in_cq: u64) {}

    /// A completion is published or lost: the requests that its tag covers are done. Idempotent.
    fn settle(self, wc: &Wc, tag: u32);

    /// The same for several that are pushed, which are of one queue of one queue pair.
    #[inline(always)]
    fn settle_all(self, entries: &[Tagged]) {
        entries.iter().for_each(|Tagged { wc, tag, .. }| self.settle(wc, *tag));
    }

    /// A completion was not published, after it was [placed](Self::place).
    #[inline(always)]
    fn lost(self, _tag: u32) {}

    /// A completion was dropped: its send queue slots are freed, as no later completion need do that (Q5).
    fn dropped(self, _tag: u32) {}
}

/// Takes the lock of a queue. If its holder died, it is taken over: completions that the holder had
/// published are settled, and their event is raised.
#[inline]
pub fn lock(
    completions: &'static Completions,
    cq: &CqRing,
    requests: impl RequestHooks,
) -> Result<Guard<'static>, Stuck> {
    let (index, slot) = (cq.index, cq.slot);
    completions.memory.lock(&slot.fanin.lock, move || repair(completions, index, requests))
}

/// Takes the lock of a queue, to push these completions to its ring. `None` if they are lost, and their requests settled:
/// another process does not release the lock, or has corrupted the entry.
#[inline(always)]
pub fn lock_ring<'a>(
    completions: &'static Completions,
    cq: &'a mut CqRing,
    entries: &[Tagged],
    requests: impl RequestHooks,
) -> Option<(Guard<'static>, &'a mut RawQueue<'static>)> {
    let Ok(guard) = lock(completions, cq, requests) else {
        give_up(completions, cq.index, entries, requests);
        return None;
    };
    let ring = cq.ring(completions);
    if ring.is_none() {
        requests.settle_all(entries);
    }
    Some((guard, ring?))
}

/// Settles the completions that a dead producer had published, and raises their event.
#[cold]
fn repair(completions: &'static Completions, index: CqIndex, requests: impl RequestHooks) {
    let fanin = &completions.cq(index).fanin;
    let Some(ring) = ring(completions, fanin.location()) else { return };
    if fanin.repair(&ring, |wc, tag| requests.settle(wc, tag)).is_some() {
        completions.cq(index).mode.set(CqFlag::Overran, true);
    }
    tell(completions, index);
}

/// Raises an event of the queue at `index`, and reports it if it has overrun: a dead producer may not have done either.
/// The event may be a spurious wake-up (N5). Takes no lock and reads no ring.
#[cold]
pub fn tell(completions: &'static Completions, index: CqIndex) {
    channel::raise(completions, Source::Completion(index), || true);
    let slot = completions.cq(index);
    // Read before the mode: if another queue uses the entry by then, that one is not reported.
    let generation = sync::acquire(&slot.generation);
    if slot.mode.has_failed() {
        completions.overran.report(CqKey { index: index.get(), generation });
    }
}

/// Places completions behind each other at the tail, under the lock.
#[inline]
pub fn place(fanin: &Fanin, entries: &[Tagged], requests: impl RequestHooks) {
    let mut in_cq = fanin.position();
    for Tagged { tag, .. } in entries {
        requests.place(*tag, in_cq);
        in_cq = in_cq.wrapping_add(1);
    }
}

/// Adds completions to a queue that never overruns, under the lock. What does not fit is passed to `drop`.
pub fn push_fitting(
    fanin: &Fanin,
    producer: &mut RawProducer<'_>,
    entries: &[Tagged],
    requests: impl RequestHooks,
    mut drop: impl FnMut(&Tagged),
) {
    // Each part is placed when the one before it is stored: the consumer may have polled what that found no slot behind.
    for part in entries.chunks(producer.storage()) {
        place(fanin, part, requests);
        let stored = fanin.push_fitting(producer, part, |part| requests.settle_all(part));
        part[stored..].iter().for_each(&mut drop);
    }
}

/// Gives the queue up, as if it had overrun: another process holds its lock and does not release it. The ring is not
/// touched, since the owner may have resized it away; the owner finds [`CqFlag::GivenUp`] in the table entry.
#[cold]
pub fn give_up(
    completions: &'static Completions,
    index: CqIndex,
    entries: &[Tagged],
    requests: impl RequestHooks,
) {
    requests.settle_all(entries);
    let mode = &completions.cq(index).mode;
    if !mode.has(CqFlag::GivenUp) {
        let key = queue::key(completions, index);
        trace::event!(
            ERROR, cq = %key, "completion queue given up: a suspended process holds its lock"
        );
    }
    mode.set(CqFlag::GivenUp, true);
    // Each time: the first caller may be suspended before it has done this.
    tell(completions, index);
}
