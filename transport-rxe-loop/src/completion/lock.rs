//! The lock of a completion queue, which producers of every process take, and what is left to be done after it: what one that
//! died had published counts, and where the lock can't be had the queue is given up.

use cq_core::queue::{Entry, State};
use cq_core::transport::CqKey;
use cq_core::wc::Wc;

use super::Completions;
use super::channel::{self, Source};
use super::queue::ring;
use crate::error::Stuck;
use crate::protocol::mode::Trait;
use crate::shm::lock::Guard;
use crate::sync;

/// Completions that are pushed at once, at most.
pub const RUN: usize = 32;

/// The requests that completions are of: what is done about them as their completions come, under the queue's lock.
pub trait Requests: Copy {
    /// A completion is published, or lost: what its tag covers is done. Says nothing new the second time.
    fn settle(self, wc: &Wc, tag: u32);

    /// A completion was dropped, and nothing else need come that would give back its slots of the send queue (Q5).
    fn retire(self, wc: &Wc, tag: u32);
}

/// Takes the lock of the queue at `index`. From a producer that died it is inherited: what that one had
/// published counts, and everybody whom it concerns is told.
#[inline]
pub fn lock(
    completions: &'static Completions,
    index: u32,
    requests: impl Requests,
) -> Result<Guard<'static>, Stuck> {
    let fanin = &completions.cq(index).fanin;
    completions.memory.lock(&fanin.lock, || repair(completions, index, requests))
}

/// Settles what a producer that died had published, and tells of it.
#[cold]
fn repair(completions: &'static Completions, index: u32, requests: impl Requests) {
    let fanin = &completions.cq(index).fanin;
    let Some(ring) = ring(completions, fanin.place()) else { return };
    if fanin.repair(&ring, |wc, tag| requests.settle(wc, tag)) != State::Running {
        completions.cq(index).mode.set(Trait::Overran, true);
    }
    tell(completions, index);
}

/// Tells everybody whom the queue at `index` may concern that something may have come, or that it has
/// overrun: a producer that died may not have got to that. Who finds nothing sleeps again (N5). Needs no lock, and
/// looks at no ring.
#[cold]
pub fn tell(completions: &'static Completions, index: u32) {
    channel::raise(completions, Source::Completion(index), || true);
    let slot = completions.cq(index);
    // Before the look: where another queue has come by then, nothing is told of that one.
    let generation = sync::acquire(&slot.generation);
    if slot.mode.has_failed() {
        completions.overran.report(CqKey { index, generation });
    }
}

/// Completions are lost, but not the place of their requests.
#[cold]
pub fn settle_all(entries: &[Entry], requests: impl Requests) {
    for Entry { wc, tag, .. } in entries {
        requests.settle(wc, *tag);
    }
}

/// Another process holds the queue's lock and does not give it back: the queue is given up, as if it had overrun. Its
/// ring is left alone, which the owner may have resized away by now; the owner finds word of this in the table.
#[cold]
pub fn give_up(
    completions: &'static Completions,
    index: u32,
    entries: &[Entry],
    requests: impl Requests,
) {
    settle_all(entries, requests);
    completions.cq(index).mode.set(Trait::GivenUp, true);
    // Each time: the one who was first may be stopped before it has told anybody.
    tell(completions, index);
}
