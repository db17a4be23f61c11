//! Who works on a queue pair: whoever holds its turn takes its requests in their order, and
//! [carries them out](crate::engine::requester).
//!
//! Nobody ever holds two turns. Work for other queue pairs that turns up on the way, a peer to be flushed,
//! a sender that waited for it, is noted in [`Rescheduled`] and done when the turn has been given back.

use std::ops::ControlFlow;

use super::entry::{OwnQp, QpSlot};
use super::requester::{self, Halt, Halted, Requester};
use super::rescheduled::Rescheduled;
use super::retry::{self, Verdict};
use super::ring::Ring;
use super::{Engine, events, flush, identity, remote_requests, srq};
use crate::completion::async_event::QpEvent;
use crate::protocol::ownership::Ownership;
use crate::protocol::state::QpState;
use crate::shm::lock::Backoff;
use crate::sync;

/// Does whatever can be done for a queue pair, and for those that this concerns. If another thread is at
/// it, that thread does.
#[inline]
pub fn run(engine: &'static Engine, qp: u32) {
    let mut kicks = Rescheduled::default();
    drive(engine, qp, &mut kicks);
    loop {
        while let Some(next) = kicks.pop() {
            drive(engine, next, &mut kicks);
        }
        if !remote_requests::any(engine) {
            return;
        }
        remote_requests::take(engine, |next| drive(engine, next, &mut kicks));
    }
}

/// Has whatever can be done for a queue pair done: at once, if it is of this process.
pub fn kick(engine: &'static Engine, qp: u32) {
    if engine.is_mine(qp) {
        run(engine, qp);
    } else {
        remote_requests::leave(engine, qp);
    }
}

/// Rescheduled whoever is connected to the queue pair with this number, which has changed its state or is gone:
/// a request that waited for it may go on, or fail. Connected back or not; so all are looked at.
///
/// The fence stands against that of [`CopyGuard::open`](crate::memory::copy_guard::CopyGuard::open), between a sender's connecting and its look at the
/// peer's state: either it sees the new state, or it is seen here.
pub fn kick_those_connected_to(engine: &'static Engine, number: u32) {
    sync::full_fence();
    for (dest, index) in engine.destinations.iter().zip(0..) {
        if sync::load(dest) == number {
            kick(engine, index);
        }
    }
}

/// Runs whoever may wait for a receive of the shared receive queue with this number.
#[cold]
pub fn run_takers_of(engine: &'static Engine, srq: u32) {
    srq::each_that_takes_from(engine, srq, |index| kick(engine, index));
}

impl Ownership {
    /// Waits until it is [seized](Self::try_seize).
    pub fn seize(&self) {
        let mut backoff = Backoff::default();
        while !self.try_seize() {
            backoff.snooze();
        }
    }
}

/// Holds the turn of a queue pair for as long as there is something to do; but where its owner posts on
/// and on meanwhile, the service thread carries on, and this one can return.
#[inline]
fn drive(engine: &'static Engine, qp: u32, kicks: &mut Rescheduled) {
    let (slot, own) = (engine.qp(qp), engine.own(qp));
    while own.turn.enter() {
        // What an alarm or a note is of may be another process' by now. Under the turn it stays whose it is.
        if !engine.is_mine(qp) {
            return own.turn.abandon();
        }
        slot.send.copying.correct();
        if hold(engine, slot, own, kicks) {
            return;
        }
        // Whoever kicked is served by the service thread, or by who enters before it.
        own.turn.abandon();
        if engine.alarms.hand_over(engine.qps.index(qp)).is_ok() {
            return;
        }
    }
}

/// Works under the turn; true if it was given back, since there is nothing left to do. False if another thread
/// is to carry on: its owner posts on and on, or somebody is suspended whom each look waits for.
#[inline]
fn hold(
    engine: &'static Engine,
    slot: &'static QpSlot,
    own: &OwnQp,
    kicks: &mut Rescheduled,
) -> bool {
    /// How many requests a thread carries out that were posted after it came.
    const LATER: u64 = 256;
    let limit = sync::load(&slot.send.posted).wrapping_add(LATER);
    sync::store(&own.unanswered, 0);
    while work(engine, slot, own, kicks, limit) {
        if own.turn.leave() {
            return true;
        }
        if sync::load(&own.unanswered) != 0 {
            // Each time round takes seconds, and its alarm comes in the next: there may be no end of it.
            return false;
        }
    }
    false
}

/// Does what there is to do; false if it came to the request at `limit`.
fn work(
    engine: &'static Engine,
    slot: &'static QpSlot,
    own: &OwnQp,
    kicks: &mut Rescheduled,
    limit: u64,
) -> bool {
    let faulty = sync::load(&own.faulty) != 0;
    loop {
        let me = identity::read(slot);
        // After the state: a place that is being made anew has no state until its ring is recorded.
        let Some(ring) = Ring::of(engine.shm, &slot.send_ring) else { return true };
        let position = sync::load(&slot.send.done);
        match me.state {
            QpState::Rts => {}
            // What was begun is ended.
            QpState::Sqd if retry::has_begun(slot, position) => {}
            QpState::Sqd => return drained(engine, slot, me.number),
            QpState::Sqe => {
                flush::sends(engine, slot, me.number, &ring);
                return true;
            }
            QpState::Err => {
                flush::both(engine, slot, me.number, &ring);
                return true;
            }
            _ => return true,
        }
        let posted = sync::acquire(&slot.send.posted);
        if !ring.has_any(position, posted) {
            return true;
        }
        if position == limit {
            return false;
        }
        let mut left = posted.wrapping_sub(position).min(limit.wrapping_sub(position));
        if me.state == QpState::Sqd || faulty {
            left = 1;
        }
        let mut requester = Requester::new(engine, slot, me, kicks);
        let halted = match requester::faults::meet(faulty, &mut requester, &ring, position) {
            ControlFlow::Continue(()) => requester.run(&ring, position, left),
            ControlFlow::Break(halted) => halted,
        };
        if halted.is_some_and(|halted| is_stuck(&mut requester, &ring, halted)) {
            return true;
        }
    }
}

/// What becomes of a request that was not carried out with the others; whether there is nothing to do until
/// somebody kicks.
#[inline(never)]
fn is_stuck(requester: &mut Requester<'_>, ring: &Ring, halted: Halted) -> bool {
    let Some(halted) = requester.by_itself(ring, halted) else { return false };
    let number = requester.number();
    let status = match halted.why {
        Halt::ByItself => return false,
        Halt::Later => return true,
        Halt::Failed(status) => status,
        Halt::Waits(waits_for) => {
            match retry::judge(requester.engine, number, halted.position, waits_for) {
                Verdict::Wait => return true,
                Verdict::TryAgain => return false,
                Verdict::Fail(status) => status,
            }
        }
    };
    requester.failed(&halted, status);
    false
}

/// In SQD, and everything that was begun is done: says so once, if that was asked for. That is all there
/// is to do: true.
#[cold]
fn drained(engine: &'static Engine, slot: &QpSlot, number: u32) -> bool {
    if sync::swap_if(&slot.send.report_drained, 1, 0).is_ok() {
        events::report_qp(engine, number, QpEvent::Drained);
    }
    true
}

#[cfg(test)]
mod tests;
