//! How long a request waits for its peer, and what becomes of it then (Q7): the arithmetic of
//! `ibv_modify_qp(3)`'s timers, and the wait of a queue pair's oldest request.
//!
//! | waits for | because | at most | then |
//! |---|---|---|---|
//! | [`Receive`](WaitsFor::Receive) | the peer has none | `rnr_retry` times the *peer's* `min_rnr_timer`; 7 is for ever | RNR_RETRY_EXC |
//! | [`Answer`](WaitsFor::Answer) | it is not in RTR, has failed, or is connected elsewhere | `retry_cnt` + 1 times 4.096 us · 2^`timeout`; 0 is for ever | RETRY_EXC |
//! | [`NoPeer`](WaitsFor::NoPeer) | it was destroyed, or never existed | as long as for an answer; without a limit it fails at once | RETRY_EXC |
//!
//! A wait for an answer keeps its deadline if the peer is destroyed meanwhile.
//!
//! # The wait
//! Three words of the queue pair, which only the owner of its send queue uses:
//!
//! | `waits_for` | `deadline` | the request at `waits_at` | left by |
//! |---|---|---|---|
//! | 0 | – | none has waited yet | the first wait |
//! | Receive, Answer | [`FOREVER`] | waits to be rescheduled | another wait, or the peer's going away |
//! | Receive, Answer | a time | waits to be rescheduled, or for the [alarm](super::alarms) | the first try that fails at or after that time, to the last try |
//! | Receive, Answer | [`LAST_TRY`] | is being tried for the last time | another wait, or its failing |
//!
//! A wait is not cleared when its request proceeds, is flushed or dropped: positions are never used
//! twice, not even by the next queue pair of the entry, so it then matches no request. Every request
//! has the full time, and so has one whose peer stops answering while it waited for a receive, or the other
//! way round.
//!
//! The last try comes after the time is over, so it sees what the peer did in time. What it does
//! after the try reschedules a queue pair in ERR: nothing happens, and its receive stays.
//!
//! Time passes while the process is suspended and while the queue pair is in SQD, where a request
//! that has begun completes. Later attributes do not apply.

use std::time::Duration;

use cq_core::wc::WcStatus;
use cq_verbs::setup::{AckTimeout, RnrTimer};

use super::Engine;
use super::entry::QpSlot;
use crate::protocol::number::{Position, QpNumber};
use crate::sync;

/// What a request waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitsFor {
    /// The peer has no receive.
    Receive,
    /// The peer does not answer.
    Answer,
    /// There is no peer.
    NoPeer,
}

impl WaitsFor {
    /// For the queue pair's word, where 0 is no wait. A peer that is gone counts as one that does not answer.
    const fn to_word(self) -> u32 {
        match self {
            Self::Receive => 1,
            Self::Answer | Self::NoPeer => 2,
        }
    }

    /// What the word of a wait says. Any number is one.
    const fn from_word(word: u32) -> Self {
        if word == Self::Receive.to_word() { Self::Receive } else { Self::Answer }
    }

    const fn status(self) -> WcStatus {
        match self {
            Self::Receive => WcStatus::RNR_RETRY_EXC_ERR,
            Self::Answer | Self::NoPeer => WcStatus::RETRY_EXC_ERR,
        }
    }

    /// How long a request of this queue pair waits; `None` is without a limit.
    fn patience(self, engine: &'static Engine, number: QpNumber) -> Option<Duration> {
        let slot = engine.qp(number);
        match self {
            Self::Receive => {
                let peer = engine.qp(engine.peer_of(number));
                for_receive(sync::load(&slot.rnr_retry), sync::load(&peer.min_rnr_timer))
            }
            Self::Answer | Self::NoPeer => {
                for_answer(sync::load(&slot.retry_cnt), sync::load(&slot.timeout))
            }
        }
    }
}

/// What to do with a request that its peer did not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It waits to be rescheduled, or for an alarm.
    Wait,
    /// Its time is over: try it once more.
    TryAgain,
    /// It fails.
    Fail(WcStatus),
}

/// The deadline of a wait without a limit.
const FOREVER: u64 = u64::MAX;
/// The deadline once the time is over.
const LAST_TRY: u64 = 0;

/// Whether the next request, at `position`, was begun, and had to wait.
pub fn has_begun(slot: &QpSlot, position: Position) -> bool {
    sync::load(&slot.send.waits_for) != 0 && sync::load(&slot.send.waits_at) == position.get()
}

/// How long a request still waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum WaitLimit {
    /// Until its time is over, by a clock of its own process.
    Limited,
    /// Without a limit.
    Forever,
    /// Its time is over: it is tried for the last time.
    LastTry,
}

/// What the next request, at `position`, waits for, as the table has it: a peer that is gone is one that does not answer.
pub fn waiting(slot: &QpSlot, position: Position) -> Option<(WaitsFor, WaitLimit)> {
    let limit = match sync::load(&slot.send.deadline) {
        FOREVER => WaitLimit::Forever,
        LAST_TRY => WaitLimit::LastTry,
        _ => WaitLimit::Limited,
    };
    let waits_for = WaitsFor::from_word(sync::load(&slot.send.waits_for));
    has_begun(slot, position).then_some((waits_for, limit))
}

/// Decides on the request at `position` of the queue pair with this number, which was just tried. Called
/// by the owner of the send queue.
#[cold]
pub fn decide(
    engine: &'static Engine,
    number: QpNumber,
    position: Position,
    waits_for: WaitsFor,
) -> Verdict {
    let (slot, alarms) = (engine.qp(number), &engine.alarms);
    let has_waited =
        has_begun(slot, position) && sync::load(&slot.send.waits_for) == waits_for.to_word();
    let until = if has_waited {
        sync::load(&slot.send.deadline)
    } else {
        match waits_for.patience(engine, number) {
            None => FOREVER,
            Some(Duration::ZERO) => LAST_TRY,
            Some(patience) => alarms.now() + patience.as_nanos() as u64,
        }
    };
    if until == LAST_TRY || until == FOREVER && waits_for == WaitsFor::NoPeer {
        return Verdict::Fail(waits_for.status());
    }
    if has_waited && until <= alarms.now() {
        sync::store(&slot.send.deadline, LAST_TRY);
        return Verdict::TryAgain;
    }
    if !has_waited {
        sync::store(&slot.send.waits_for, waits_for.to_word());
        sync::store(&slot.send.waits_at, position.get());
        sync::store(&slot.send.deadline, until);
    }
    // Each time: the alarm that was set may have come early, for something else.
    if until != FOREVER && alarms.wake_at(engine.index(number), until).is_err() {
        return Verdict::Fail(WcStatus::GENERAL_ERR);
    }
    Verdict::Wait
}

/// How long a request waits for a receive; `None` is for ever.
fn for_receive(rnr_retry: u32, min_rnr_timer: u32) -> Option<Duration> {
    const FOR_EVER: u32 = 7;
    let timer = RnrTimer::from_number(min_rnr_timer as u8 % 32)?;
    (rnr_retry < FOR_EVER).then(|| timer.duration() * rnr_retry)
}

/// How long a request waits for an answer; `None` is for ever.
fn for_answer(retry_cnt: u32, timeout: u32) -> Option<Duration> {
    Some(AckTimeout::from_number(timeout as u8 % 32)?.duration()? * (retry_cnt % 8 + 1))
}

#[cfg(test)]
mod tests;
