//! Pushing to a completion queue that imitates Soft-RoCE's: its completions, their events, and dropping on overrun.

use cq_core::queue::{NoChannel, Tagged};
use cq_core::wc::{Wc, WcFlags, WcOpcode, WcStatus};
use heapless::Vec;

use super::lock::{RUN, RequestHooks, lock_ring, push_fitting};
use super::queue::{self, CqRing};
use super::wakeup::Wakeup;
use super::{Completions, async_event, moderation};
use crate::protocol::mode::CqFlag;
use crate::protocol::moderation::PushSummary;
use crate::protocol::number::CqIndex;
use crate::protocol::tag;

/// The opcode of a completion that failed: Soft-RoCE stores what is valid then, and leaves all other fields 0.
pub const FAILED_OPCODE: WcOpcode = WcOpcode::SEND;

/// Adds completions to a queue. Each that finds the queue full is dropped and reported. Returns how many
/// were stored, and the event that is due.
#[cold]
pub fn push(
    completions: &'static Completions,
    cq: &mut CqRing,
    entries: &[Tagged],
    requests: impl RequestHooks,
) -> (usize, Wakeup) {
    let there: Vec<Tagged, RUN> = entries.iter().map(as_there).collect();
    let entries = &there[..];
    let (index, slot) = (cq.index, cq.slot);
    let (wakeup, stored) = {
        let Some((_guard, ring)) = lock_ring(completions, cq, entries, requests) else {
            return (entries.len(), Wakeup::None);
        };
        let control = ring.control();
        let mut producer = slot.fanin.producer(ring, NoChannel);
        let mut stored = entries.len();
        // Its send slots are free whatever was polled.
        push_fitting(&slot.fanin, &mut producer, entries, requests, |_| stored -= 1);
        let wakeup = match push_summary(completions, index, &entries[..stored]) {
            Some(push_summary) => moderation::wakeup(completions, index, control, push_summary),
            None => Wakeup::None,
        };
        (wakeup, stored)
    };
    let generation = queue::key(completions, index).generation;
    entries[stored..]
        .iter()
        .for_each(|_| async_event::report_overrun(completions, index, generation));
    (stored, wakeup)
}

/// Summarizes completions for moderation: of failures, only flushed receives count as solicited. With moderation, which
/// Soft-RoCE lacks, any failure raises the event at once.
fn push_summary(
    completions: &'static Completions,
    index: CqIndex,
    entries: &[Tagged],
) -> Option<PushSummary> {
    let push_summary = moderation::push_summary(entries, false);
    let urgent = entries.iter().filter(|entry| is_solicited(entry)).count() as u32;
    let at_once = push_summary.at_once && completions.cq(index).mode.has(CqFlag::Moderated);
    (!entries.is_empty()).then_some(PushSummary { urgent, at_once, ..push_summary })
}

fn is_solicited(entry: &Tagged) -> bool {
    let is_flushed = entry.wc.status() == WcStatus::WR_FLUSH_ERR;
    entry.solicited || (is_flushed && !tag::is_send(entry.tag))
}

/// The completion as Soft-RoCE writes it.
fn as_there(entry: &Tagged) -> Tagged {
    let wc = match entry.wc.result() {
        Err(failed) => Wc::new(failed.wr_id(), failed.status(), failed.qp_num()),
        Ok(done) if done.is_recv() => {
            let wc = entry.wc.with_flags(WcFlags::GRH).with_path(0, 0, 0, 0);
            match done.invalidated_rkey() {
                Some(_) => wc.without_flags(WcFlags::WITH_INV).with_flags(WcFlags::IP_CSUM_OK),
                None => wc,
            }
        }
        Ok(_) => entry.wc,
    };
    Tagged { wc, ..*entry }
}

#[cfg(test)]
mod tests;
