//! Who works on a queue pair: whoever holds its turn takes its requests in their order, and
//! [carries them out](crate::engine::requester).
//!
//! Nobody ever holds two turns. Work for other queue pairs that turns up on the way, a peer to be flushed,
//! a sender that waited for it, is noted in [`Kicks`] and done when the turn has been given back.

use std::ops::ControlFlow;

use crate::api::state::QpState;
use crate::completion::async_event::{self, QpEvent};
use crate::engine::faults;
use crate::engine::flush;
use crate::engine::identity;
use crate::engine::remote_requests;
use crate::engine::requester::{Halt, Halted, Initiator};
use crate::engine::rescheduled::Kicks;
use crate::engine::retry::{self, Verdict};
use crate::engine::ring::Ring;
use crate::fabric::Fabric;
use crate::layout::{OwnQp, QpSlot};
use crate::sync;

/// Does whatever can be done for a queue pair, and for those that this concerns. If another thread is at
/// it, that thread does.
#[inline]
pub fn run(fabric: &'static Fabric, qp: u32) {
    let mut kicks = Kicks::default();
    drive(fabric, qp, &mut kicks);
    loop {
        while let Some(next) = kicks.pop() {
            drive(fabric, next, &mut kicks);
        }
        if !remote_requests::any(fabric) {
            return;
        }
        remote_requests::take(fabric, |next| drive(fabric, next, &mut kicks));
    }
}

/// Has whatever can be done for a queue pair done: at once, if it is of this process.
pub fn kick(fabric: &'static Fabric, qp: u32) {
    if fabric.is_mine(qp) {
        run(fabric, qp);
    } else {
        remote_requests::leave(fabric, qp);
    }
}

/// Kicks whoever is connected to the queue pair with this number, which has changed its state or is gone:
/// a request that waited for it may go on, or fail. Connected back or not; so all are looked at.
///
/// The fence stands against that of [`Window::open`](crate::memory::copy_guard::Window::open), between a sender's connecting and its look at the
/// peer's state: either it sees the new state, or it is seen here.
pub fn kick_those_connected_to(fabric: &'static Fabric, number: u32) {
    sync::full_fence();
    for (dest, index) in fabric.tables().destinations.iter().zip(0..) {
        if sync::load(dest) == number {
            kick(fabric, index);
        }
    }
}

/// Holds the turn of a queue pair for as long as there is something to do; but where its owner posts on
/// and on meanwhile, the service thread carries on, and this one can return.
#[inline]
fn drive(fabric: &'static Fabric, qp: u32, kicks: &mut Kicks) {
    let (slot, own) = (fabric.qp(qp), fabric.own(qp));
    while own.turn.enter() {
        // What an alarm or a note is of may be another process' by now. Under the turn it stays whose it is.
        if !fabric.is_mine(qp) {
            return own.turn.abandon();
        }
        slot.send.copying.correct();
        if hold(fabric, slot, own, kicks) {
            return;
        }
        // Whoever kicked is served by the service thread, or by who enters before it.
        own.turn.abandon();
        if fabric.service().hand_over(fabric, qp).is_ok() {
            return;
        }
    }
}

/// Works under the turn; true if it was given back, since there is nothing left to do. False if another thread
/// is to carry on: its owner posts on and on, or somebody is suspended whom each look waits for.
#[inline]
fn hold(fabric: &'static Fabric, slot: &'static QpSlot, own: &OwnQp, kicks: &mut Kicks) -> bool {
    /// How many requests a thread carries out that were posted after it came.
    const LATER: u64 = 256;
    let limit = sync::load(&slot.send.posted).wrapping_add(LATER);
    sync::store(&own.unanswered, 0);
    while work(fabric, slot, own, kicks, limit) {
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
    fabric: &'static Fabric,
    slot: &'static QpSlot,
    own: &OwnQp,
    kicks: &mut Kicks,
    limit: u64,
) -> bool {
    let faulty = sync::load(&own.faulty) != 0;
    loop {
        let me = identity::read(slot);
        // After the state: a place that is being made anew has no state until its ring is recorded.
        let Some(ring) = Ring::of(fabric, &slot.send_ring) else { return true };
        let position = sync::load(&slot.send.done);
        match me.state {
            QpState::Rts => {}
            // What was begun is ended.
            QpState::Sqd if retry::has_begun(slot, position) => {}
            QpState::Sqd => return drained(fabric, slot, me.number),
            QpState::Sqe => {
                flush::sends(fabric, slot, me.number, &ring);
                return true;
            }
            QpState::Err => {
                flush::both(fabric, slot, me.number, &ring);
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
        let mut initiator = Initiator::new(fabric, slot, me, kicks);
        let halted = match faults::meet(faulty, &mut initiator, &ring, position) {
            ControlFlow::Continue(()) => initiator.run(&ring, position, left),
            ControlFlow::Break(halted) => halted,
        };
        if halted.is_some_and(|halted| is_stuck(&mut initiator, &ring, halted)) {
            return true;
        }
    }
}

/// What becomes of a request that was not carried out with the others; whether there is nothing to do until
/// somebody kicks.
#[inline(never)]
fn is_stuck(initiator: &mut Initiator<'_>, ring: &Ring, halted: Halted) -> bool {
    let Some(halted) = initiator.by_itself(ring, halted) else { return false };
    let number = initiator.number();
    let status = match halted.why {
        Halt::ByItself => return false,
        Halt::Later => return true,
        Halt::Failed(status) => status,
        Halt::Waits(waits_for) => {
            match retry::judge(initiator.fabric, number, halted.position, waits_for) {
                Verdict::Wait => return true,
                Verdict::TryAgain => return false,
                Verdict::Fail(status) => status,
            }
        }
    };
    initiator.failed(&halted, status);
    false
}

/// In SQD, and everything that was begun is done: says so once, if that was asked for. That is all there
/// is to do: true.
#[cold]
fn drained(fabric: &'static Fabric, slot: &QpSlot, number: u32) -> bool {
    if sync::swap_if(&slot.send.report_drained, 1, 0).is_ok() {
        async_event::report_qp(fabric, number, QpEvent::Drained);
    }
    true
}

#[cfg(test)]
mod tests;
