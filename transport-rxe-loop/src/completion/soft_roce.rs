//! Pushing to a completion queue that is like Soft-RoCE's: what completions say there, whom they wake, and
//! what comes of those that find no room.

use cq_core::queue::{Entry, NoChannel};
use cq_core::wc::{Wc, WcFlags, WcStatus};
use heapless::Vec;

use crate::completion::async_event;
use crate::completion::push;
use crate::completion::queue;
use crate::completion::{moderation, push::lock, queue::ring};
use crate::engine::complete;
use crate::engine::overrun;
use crate::fabric::Fabric;
use crate::protocol::mode::Trait;
use crate::protocol::moderation::{Alert, News};
use crate::protocol::tag;

/// Completions that are pushed at once.
const RUN: usize = 32;

/// Adds completions to the queue at `index`. Each that finds no room is dropped and reported, and if it is a
/// receive's its queue pair fails.
#[cold]
pub fn push(fabric: &'static Fabric, index: u32, entries: &[Entry]) {
    for part in entries.chunks(RUN) {
        let part: Vec<Entry, RUN> = part.iter().map(as_there).collect();
        push_part(fabric, index, &part);
    }
}

fn push_part(fabric: &'static Fabric, index: u32, entries: &[Entry]) {
    let slot = fabric.cq(index);
    let (alert, stored) = {
        let Ok(_guard) = lock(fabric, index) else { return push::give_up(fabric, index, entries) };
        let Some(ring) = ring(fabric, slot.fanin.place()) else {
            return push::settle_all(fabric, entries);
        };
        let control = ring.control();
        let mut producer = slot.fanin.producer(ring, NoChannel);
        let settle = |wc: &Wc, tag| complete::settle(fabric, wc.qp_num(), tag);
        let mut stored = entries.len();
        slot.fanin.push_fitting(&mut producer, entries, settle, |_| stored -= 1);
        let alert = news(fabric, index, &entries[..stored]);
        let alert =
            alert.map_or(Alert::None, |news| moderation::alert(fabric, index, control, news));
        (alert, stored)
    };
    moderation::act(fabric, index, alert);
    for Entry { wc, tag, .. } in &entries[stored..] {
        async_event::report_overrun(fabric, index, queue::key(fabric, index).generation);
        if !tag::is_send(*tag) {
            overrun::fail(fabric, fabric.qp(wc.qp_num()), index);
        }
    }
}

/// What these are for who waits for completions: of failures, flushed receives alone are among the solicited ones;
/// but any ends a wait that is moderated, which is unknown there.
fn news(fabric: &'static Fabric, index: u32, entries: &[Entry]) -> Option<News> {
    let news = moderation::news(entries, false);
    let urgent = entries.iter().filter(|entry| is_solicited(entry)).count() as u32;
    let at_once = news.at_once && fabric.cq(index).mode.has(Trait::Moderated);
    (!entries.is_empty()).then_some(News { urgent, at_once, ..news })
}

fn is_solicited(entry: &Entry) -> bool {
    let is_flushed = entry.wc.status() == WcStatus::WR_FLUSH_ERR;
    entry.solicited || (is_flushed && !tag::is_send(entry.tag))
}

/// What it says there.
fn as_there(entry: &Entry) -> Entry {
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
    Entry { wc, ..*entry }
}

#[cfg(test)]
mod tests;
