//! Completion queue moderation: what producers do about an event, and what the owner's service thread does once the
//! period has passed.

use cq_core::queue::{Completion, Control, Tagged};
use rustix::time::{ClockId, clock_gettime};

use super::Completions;
use super::lock::{RequestHooks, lock};
use super::queue::{self, CqRing, CqSlot, ring};
use super::wakeup::Wakeup;
use crate::protocol::moderation::{EventAction, PushSummary, until};
use crate::protocol::number::CqIndex;
use crate::shm::table::Entry as _;
use crate::sync;

/// Summarizes completions for moderation. `lost` tells whether any were dropped.
pub fn push_summary(entries: &[Tagged], lost: bool) -> PushSummary {
    PushSummary {
        all: entries.len() as u32,
        urgent: entries.iter().filter(|entry| entry.is_urgent()).count() as u32,
        at_once: lost || entries.iter().any(|entry| entry.wc.result().is_err()),
    }
}

/// Under the queue's lock, after something was pushed: what is due. One without a channel is never armed (N11).
pub fn wakeup(
    completions: &'static Completions,
    index: CqIndex,
    queue: &Control,
    push_summary: PushSummary,
) -> Wakeup {
    let event_action = completions.cq(index).moderation.event_action(queue, push_summary, now);
    Wakeup::new(queue::key(completions, index), event_action)
}

/// The queue at `index` is about to be destroyed: the service thread no longer checks it.
pub fn forget(completions: &'static Completions, index: CqIndex) {
    if completions.shm.is_ours() {
        sync::lock(&completions.moderated).remove(&index);
    }
}

/// For the service thread: raises the events of this process' queues that have waited long enough, and says for how
/// many nanoseconds there is nothing to do about any.
pub fn look_at_all(completions: &'static Completions, requests: impl RequestHooks) -> Option<u64> {
    // Most processes have none, and pay nothing for it.
    let moderated: Vec<_> = sync::lock(&completions.moderated).iter().copied().collect();
    moderated.into_iter().filter_map(|index| look(completions, index, requests)).min()
}

/// The same, of the queue at `index`.
pub fn look(
    completions: &'static Completions,
    index: CqIndex,
    requests: impl RequestHooks,
) -> Option<u64> {
    let slot = completions.cq(index);
    if slot.life().attachment() != Some(completions.shm.attachment()) {
        return None;
    }
    match slot.moderation.alarm() {
        0 => return None,
        alarm => match until(alarm, now()) {
            0 => {}
            left => return Some(left),
        },
    }
    due(completions, index, slot, requests).raise(completions);
    match slot.moderation.alarm() {
        0 => None,
        alarm => Some(until(alarm, now())),
    }
}

/// The event of the queue at `index`, if it is due.
fn due(
    completions: &'static Completions,
    index: CqIndex,
    slot: &CqSlot,
    requests: impl RequestHooks,
) -> Wakeup {
    let guard = lock(completions, &CqRing::new(completions, index), requests);
    let key = queue::key(completions, index);
    let event_action = match (&guard, ring(completions, slot.fanin.location())) {
        (Ok(_), Some(queue)) => slot.moderation.look(queue.control(), now()),
        // A suspended lock holder must not delay the event: it may be a spurious wake-up (N5).
        _ if slot.moderation.give_up() => EventAction::Raise,
        _ => EventAction::None,
    };
    Wakeup::new(key, event_action)
}

/// The time, by a clock that all processes share.
pub fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    (now.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec as u64)
}
