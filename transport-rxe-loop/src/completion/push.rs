//! Pushing completions, under the queue's lock, from any process; without it, by the [only
//! producer](crate::protocol::sole).

use std::cell::Cell;
use std::slice;

use cq_core::queue::raw::RawQueue;
use cq_core::queue::{DroppedError, NoChannel, QueueChannel, Tagged};
#[cfg(test)]
use cq_core::wc::Wc;

use super::lock::{RequestHooks, give_up, lock_ring, place, push_fitting};
use super::queue::{self, CqRing, CqSlot};
use super::wakeup::Wakeup;
use super::{Completions, moderation, soft_roce};
use crate::protocol::fanin::Fanin;
#[cfg(test)]
use crate::protocol::lock::AttachmentKey;
use crate::protocol::mode::CqFlag;
use crate::protocol::moderation::EventAction;
use crate::protocol::number::CqIndex;
use crate::sync;

/// Completions found the queue full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The queue has overrun, and its queue pairs are to fail (O4).
    Overran,
    /// As on Soft-RoCE, completions from this one on were dropped.
    Dropped { from: u32 },
}

/// What came of a push.
#[derive(Debug)]
pub struct Pushed {
    /// What did not fit.
    pub lost: Option<Lost>,
    /// The event that the queue was armed for.
    pub wakeup: Wakeup,
}

impl Pushed {
    /// Everything is stored, and nothing is due.
    const STORED: Self = Self { lost: None, wakeup: Wakeup::None };
}

/// Records that an event is due.
struct Disarmed(Cell<EventAction>);

impl QueueChannel for &Disarmed {
    const RAISES: bool = true;

    fn notify(&self) {
        self.0.set(EventAction::Raise);
    }
}

/// Adds a completion to an ordinary queue that has no channel, whose lock is free, and that is known to have space; false
/// for any other. The [only producer](crate::protocol::sole) is alone, while its in-flight marker is set, and needs no lock.
#[inline(always)]
pub fn push_one(
    completions: &'static Completions,
    cq: &mut CqRing,
    entry: &Tagged,
    requests: impl RequestHooks,
    is_alone: bool,
) -> bool {
    let slot = cq.slot;
    if slot.completion.channel().is_some() {
        return false;
    }
    let guard = if is_alone { None } else { completions.shm.enter(&slot.fanin.lock) };
    if guard.is_none() && !is_alone || !slot.mode.is_ordinary() {
        return false;
    }
    let Some(ring) = cq.ring(completions) else { return false };
    requests.place(entry.tag, slot.fanin.position());
    let Some(tail) = slot.fanin.publish(ring, entry) else {
        requests.lost(entry.tag);
        return false;
    };
    requests.settle_all(slice::from_ref(entry));
    slot.fanin.settled(tail);
    cq.next = tail.position();
    true
}

/// Adds completions to a queue, and settles what their tags cover. A completion that finds the queue full overruns it:
/// polling fails (O3), and its queue pairs are to fail (O4).
#[inline(never)]
pub fn push_any(
    completions: &'static Completions,
    cq: &mut CqRing,
    entries: &[Tagged],
    requests: impl RequestHooks,
) -> Pushed {
    let slot = cq.slot;
    if !slot.mode.is_ordinary() {
        return push_otherwise(completions, cq, entries, requests);
    }
    let index = cq.index;
    let Some((_guard, ring)) = lock_ring(completions, cq, entries, requests) else {
        return Pushed::STORED;
    };
    place(&slot.fanin, entries, requests);
    let (pushed, wakeup) = if slot.completion.channel().is_some() {
        let key = queue::key(completions, index);
        let disarmed = Disarmed(Cell::new(EventAction::None));
        let pushed = push_to(&slot.fanin, ring, &disarmed, entries, requests);
        let wakeup = Wakeup::new(key, disarmed.0.get());
        if wakeup.is_due() {
            sync::store(&slot.announced, slot.fanin.position() as u32);
        }
        (pushed, wakeup)
    } else {
        (push_to(&slot.fanin, ring, NoChannel, entries, requests), Wakeup::None)
    };
    cq.next = slot.fanin.position();
    Pushed { lost: pushed.err().map(|_| overran(slot)), wakeup }
}

/// The queue has overrun. Under its lock.
#[cold]
fn overran(slot: &CqSlot) -> Lost {
    slot.mode.set(CqFlag::Overran, true);
    Lost::Overran
}

/// Adds completions, under the lock.
#[inline(always)]
fn push_to<C: QueueChannel>(
    fanin: &Fanin,
    ring: &mut RawQueue<'_>,
    channel: C,
    entries: &[Tagged],
    requests: impl RequestHooks,
) -> Result<(), DroppedError> {
    let settle = |part: &[Tagged]| requests.settle_all(part);
    match entries {
        [entry] => fanin.push(ring, channel, entry, settle),
        entries => fanin.push_all(&mut fanin.producer(ring, channel), entries, settle),
    }
}

/// [`push_any`] to a queue that is moderated, ignores overruns, is like Soft-RoCE's, is to be found full, or was given up.
#[cold]
#[inline(never)]
fn push_otherwise(
    completions: &'static Completions,
    cq: &mut CqRing,
    entries: &[Tagged],
    requests: impl RequestHooks,
) -> Pushed {
    let (index, slot) = (cq.index, cq.slot);
    if slot.mode.has(CqFlag::GivenUp) {
        // The lock was waited for once; it is not waited for again.
        give_up(completions, index, entries, requests);
        return Pushed::STORED;
    }
    let is_full = slot.mode.has(CqFlag::Full);
    if slot.mode.has(CqFlag::LikeRxe) && !is_full {
        let (stored, wakeup) = soft_roce::push(completions, cq, entries, requests);
        let lost = Lost::Dropped { from: stored as u32 };
        return Pushed { lost: (stored < entries.len()).then_some(lost), wakeup };
    }
    let Some((_guard, ring)) = lock_ring(completions, cq, entries, requests) else {
        return Pushed::STORED;
    };
    let control = ring.control();
    let mut producer = slot.fanin.producer(ring, NoChannel);
    let (mut dropped, mut pushed) = (0, Ok(()));
    if slot.mode.has(CqFlag::IgnoresOverrun) {
        push_fitting(&slot.fanin, &mut producer, entries, requests, |entry| {
            requests.dropped(entry.tag);
            dropped += 1;
        });
        sync::store(&slot.dropped, sync::load(&slot.dropped).saturating_add(dropped));
    } else if is_full {
        requests.settle_all(entries);
        pushed = Err(producer.mark_overrun(entries.len() as u32));
    } else {
        place(&slot.fanin, entries, requests);
        let settle = |part: &[Tagged]| requests.settle_all(part);
        pushed = slot.fanin.push_all(&mut producer, entries, settle);
    }
    let lost = pushed.err().map(|_| overran(slot));
    let push_summary = moderation::push_summary(entries, dropped > 0 || lost.is_some());
    Pushed { lost, wakeup: moderation::wakeup(completions, index, control, push_summary) }
}

/// The queue at `index` overruns at the next completion, full or not; unless it ignores that.
#[cold]
pub fn overrun(completions: &'static Completions, index: CqIndex) {
    completions.cq(index).mode.set(CqFlag::Full, true);
}

/// Pushes as a producer that dies does: the completion is published, and not settled.
#[cfg(test)]
pub fn die_pushing(
    completions: &'static Completions,
    index: CqIndex,
    dead: AttachmentKey,
    wc: &Wc,
    tag: u32,
) {
    let fanin = &completions.cq(index).fanin;
    assert!(fanin.lock.try_enter(dead));
    let mut ring = queue::ring(completions, fanin.location()).unwrap();
    let mut producer = fanin.producer(&mut ring, NoChannel);
    producer.push(&Tagged { wc: *wc, tag, solicited: false }).unwrap();
}

#[cfg(test)]
mod tests;
