//! Send-queue ownership: the thread that owns the send queue of a queue pair takes its requests in order and [carries
//! them out](crate::engine::requester).
//!
//! What the owner does depends on the state of the queue pair, and on the oldest request:
//!
//! | state | oldest request | the owner | then |
//! |---|---|---|---|
//! | RTS | none | gives ownership back | – |
//! | RTS | posted | carries it out, with those behind it, up to one that halts | the same again |
//! | RTS, SQD | halted: a local operation | carries it out between two runs, with the copy guard closed | the same again |
//! | RTS, SQD | halted: it waits | sets its [alarm](super::retry), and gives ownership back | a reschedule, or the alarm |
//! | RTS, SQD | halted: it failed, or its time is over | completes it as a failure, in ERR or SQE | flushes |
//! | SQD | has begun | completes it | the same again |
//! | SQD | has not begun, or none | reports SQ_DRAINED once, if that was asked for | – |
//! | SQE | any | flushes the send queue | – |
//! | ERR | any | flushes both queues | – |
//! | RESET, INIT, RTR | any | nothing | – |
//!
//! The [thread that posts](crate::protocol::ownership) carries the requests of a queue pair in RTS out without owning its send
//! queue, while no other thread does. It becomes the owner when one halts.
//!
//! A thread that posts a request or changes the state reschedules the queue pair after that: an owner that gives ownership
//! back then finds itself rescheduled, and looks again.
//!
//! No thread owns two send queues. Work for other queue pairs that turns up meanwhile, a peer to be flushed or a sender
//! that waited for it, is added to [`Rescheduled`] and done once the send queue has been given back.

use std::ops::ControlFlow;

use super::connection::Connection;
use super::entry::{QpSlot, SendQueue};
use super::requester::{self, Halt, Halted, Requester};
use super::rescheduled::Rescheduled;
use super::retry::{self, Verdict, WaitsFor};
use super::{Engine, events, flush, identity, remote_requests, srq};
use crate::completion::async_event::QpEvent;
use crate::protocol::number::{Position, QpIndex, QpNumber, SrqNumber};
use crate::protocol::ownership::Ownership;
use crate::protocol::state::QpState;
use crate::shm::lock::Backoff;
use crate::sync;

/// What has come of what was just posted.
enum Posted {
    Done,
    /// There is something left to do.
    Left,
    /// A request has halted, and the thread that posts owns the send queue.
    Halted(Halted),
}

impl SendQueue {
    /// Carries out what the thread that posts has just posted, and runs the queue pairs that this reschedules. If another
    /// thread owns the send queue, that thread does the work. `known` is kept by the thread that posts.
    #[inline]
    pub fn post(self, known: &mut Option<Connection>) {
        let mut rescheduled = Rescheduled::default();
        let posted = match known {
            Some(known) => self.carry_out_posted(known, &mut rescheduled),
            None => Posted::Left,
        };
        if !matches!(posted, Posted::Done) {
            self.go_on(posted, known, &mut rescheduled);
        }
        if rescheduled.is_any() || remote_requests::may_be_any(self.engine) {
            run_all(self.engine, &mut rescheduled);
        }
    }

    /// Carries out what was posted, if no other thread wants to [own](crate::protocol::ownership) the send queue. For the
    /// thread that posts.
    #[inline(always)]
    fn carry_out_posted(self, known: &mut Connection, rescheduled: &mut Rescheduled) -> Posted {
        let Self { slot, own, .. } = self;
        let me = known.me;
        known.peer.prefetch_send();
        let mut requester = Requester::new(self, known, rescheduled);
        let guard = requester.copy_guard();
        let (first, posted) = (slot.send.done(), slot.send.posted());
        let is_usual = own.ownership.is_free()
            && identity::read(slot) == me
            && me.state() == QpState::Rts
            && sync::load(&own.faulty) == 0
            && requester.connection.ring.has_any(first, posted);
        if !is_usual {
            return Posted::Left;
        }
        let halted = requester.run(&guard, first, posted.since(first));
        if halted.is_some() {
            own.ownership.keep();
        }
        requester.close(guard);
        match halted {
            None if slot.send.done() == posted && own.ownership.is_free() => Posted::Done,
            None => Posted::Left,
            Some(halted) => Posted::Halted(halted),
        }
    }

    /// Does what is left to do of what was posted, as the owner.
    #[cold]
    #[inline(never)]
    fn go_on(self, posted: Posted, known: &mut Option<Connection>, rescheduled: &mut Rescheduled) {
        if let Posted::Halted(halted) = posted {
            if self.own(known, rescheduled, Some(halted)) {
                return;
            }
        }
        while self.own.ownership.enter_to_post() {
            if self.own(known, rescheduled, None) {
                return;
            }
        }
    }

    /// Owns the send queue, if no other thread does, for as long as there is something to do.
    fn drive(self, rescheduled: &mut Rescheduled) {
        let Self { engine, index, own, .. } = self;
        while own.ownership.enter(engine.marker(index)) {
            if self.own(&mut None, rescheduled, None) {
                return;
            }
        }
    }

    /// Works as the owner for as long as there is something to do, and gives ownership back. If requests keep being posted
    /// meanwhile, it hands the queue pair over to the service thread; false if that can't be.
    fn own(
        self,
        known: &mut Option<Connection>,
        rescheduled: &mut Rescheduled,
        halted: Option<Halted>,
    ) -> bool {
        let Self { engine, index, slot, own } = self;
        // An alarm or a remote request may be stale: another process may have the entry by now. It stays with it
        // while the send queue is owned.
        if !engine.owns(slot) {
            own.ownership.abandon();
            return true;
        }
        slot.send.in_flight.correct();
        if self.hold(known, rescheduled, halted) {
            return true;
        }
        // Reschedules since then are served by the service thread, or by a thread that enters before it.
        own.ownership.abandon();
        engine.alarms.hand_over(index).is_ok()
    }

    /// Works as the owner; true if ownership was given back because nothing is left to do. False if another thread is to
    /// continue: requests keep being posted, or each try waits for a suspended process.
    fn hold(
        self,
        known: &mut Option<Connection>,
        rescheduled: &mut Rescheduled,
        halted: Option<Halted>,
    ) -> bool {
        /// Requests that a thread carries out beyond those that were posted when it came.
        const LATER: u64 = 256;
        let Self { slot, own, .. } = self;
        let limit = slot.send.posted().plus(LATER);
        sync::store(&own.unanswered, 0);
        let mut halted = halted;
        while self.work(known, rescheduled, limit, halted.take()) {
            if own.ownership.leave() {
                return true;
            }
            if sync::load(&own.unanswered) != 0 {
                // Each try takes seconds, and its alarm expires during the next one: this might never end.
                return false;
            }
        }
        false
    }

    /// Does what there is to do; false if it reached the request at `limit`. It begins with a request that has halted.
    fn work(
        self,
        known: &mut Option<Connection>,
        rescheduled: &mut Rescheduled,
        limit: Position,
        mut halted: Option<Halted>,
    ) -> bool {
        let Self { engine, slot, own, .. } = self;
        let faulty = sync::load(&own.faulty) != 0;
        loop {
            if let (Some(halted), Some(known)) = (halted.take(), known.as_mut()) {
                if handle_halt(&mut Requester::new(self, known, rescheduled), halted) {
                    return true;
                }
            }
            let me = identity::read(slot);
            if known.as_ref().is_none_or(|known| known.me != me) {
                // After the state: an entry that is being set up has no state until its ring is recorded.
                *known = Connection::new(engine, slot, me);
            }
            let Some(connection) = known else { return true };
            let (ring, slots) = (&connection.ring, &connection.slots);
            let position = slot.send.done();
            match me.state() {
                QpState::Rts => {}
                // A request that has begun is completed.
                QpState::Sqd if retry::has_begun(slot, position) => {}
                QpState::Sqd => return drained(engine, slot, me.number()),
                QpState::Sqe => {
                    flush::sends(engine, slot, me.number(), (ring, slots));
                    return true;
                }
                QpState::Err => {
                    flush::both(engine, slot, me.number(), (ring, slots));
                    return true;
                }
                _ => return true,
            }
            let posted = slot.send.posted_acquire();
            if !ring.has_any(position, posted) {
                return true;
            }
            if position == limit {
                return false;
            }
            let mut left = posted.since(position).min(limit.since(position));
            if me.state() == QpState::Sqd || faulty {
                left = 1;
            }
            let mut requester = Requester::new(self, connection, rescheduled);
            halted = match requester::faults::meet(faulty, &mut requester, position) {
                ControlFlow::Continue(()) => {
                    requester.connection.peer.prefetch_send();
                    let guard = requester.copy_guard();
                    let halted = requester.run(&guard, position, left);
                    requester.close(guard);
                    halted
                }
                ControlFlow::Break(halted) => halted,
            };
            // A thread that posted more since, or changed the state, has rescheduled the queue pair.
            if halted.is_none() && me.state() == QpState::Rts && slot.send.done() == posted {
                return true;
            }
        }
    }
}

/// Runs a queue pair, and those that this reschedules, until nothing is left to do. If another thread owns the send queue,
/// that thread does the work. Not for the thread that posts while it does.
pub fn run(engine: &'static Engine, qp: QpIndex) {
    let mut rescheduled = Rescheduled::default();
    drive(engine, qp, &mut rescheduled);
    if rescheduled.is_any() || remote_requests::may_be_any(engine) {
        run_all(engine, &mut rescheduled);
    }
}

fn drive(engine: &'static Engine, qp: QpIndex, rescheduled: &mut Rescheduled) {
    SendQueue::of(engine, qp).drive(rescheduled);
}

/// Runs what was rescheduled, until nothing is left.
#[cold]
fn run_all(engine: &'static Engine, rescheduled: &mut Rescheduled) {
    loop {
        while let Some(next) = rescheduled.pop() {
            drive(engine, next, rescheduled);
        }
        if !remote_requests::any(engine) {
            return;
        }
        remote_requests::take(engine, |next| drive(engine, next, rescheduled));
    }
}

/// Reschedules a queue pair: runs it at once if it is of this process, or leaves a remote request.
pub fn reschedule(engine: &'static Engine, qp: QpIndex) {
    if engine.is_mine(qp) {
        run(engine, qp);
    } else {
        remote_requests::submit(engine, qp);
    }
}

/// Reschedules all queue pairs that are connected to the one with this number, which has changed its state or is gone:
/// a request that waited for it may go on, or fail. All queue pairs are looked at, since the connection may be
/// one-sided.
///
/// The fence pairs with that of [`CopyGuard::open`](crate::memory::copy_guard::CopyGuard::open), between the sender's
/// connecting and its look at the peer's state: either the sender sees the new state, or this sees the sender.
pub fn reschedule_peers_of(engine: &'static Engine, number: QpNumber) {
    sync::full_fence();
    engine.connected_to(number).for_each(|index| reschedule(engine, index));
}

/// Reschedules the queue pairs that may wait for a receive of the shared receive queue with this number.
#[cold]
pub fn reschedule_takers_of(engine: &'static Engine, srq: SrqNumber) {
    srq::for_each_sender_to(engine, srq, |index| reschedule(engine, index));
}

impl Ownership {
    /// Waits until ownership is [seized](Self::try_seize).
    pub fn seize(&self) {
        let mut backoff = Backoff::default();
        while !self.try_seize() {
            backoff.snooze();
        }
    }

    /// Becomes the owner, for the thread that posts, while its marker is set: other threads leave ownership to it.
    #[cold]
    fn keep(&self) {
        let mut backoff = Backoff::default();
        while !self.try_keep() {
            backoff.snooze();
        }
    }
}

/// Handles a request that was not carried out with the others; true if there is nothing to do until the queue pair is
/// rescheduled.
#[inline(never)]
fn handle_halt(requester: &mut Requester<'_>, halted: Halted) -> bool {
    let Some(halted) = requester.run_local(halted) else { return false };
    let number = requester.number();
    let failing = requester.engine.policy.imitation.failing(requester.connection.kind);
    let status = match halted.why {
        Halt::LocalOp => return false,
        Halt::Later => return true,
        Halt::Failed(status) => status,
        Halt::InvalidKey => failing.invalid_key,
        Halt::Waits(waits_for) => {
            let waits_for = match waits_for {
                WaitsFor::NoPeer if !failing.knows_gone => WaitsFor::Answer,
                _ => waits_for,
            };
            match retry::decide(requester.engine, number, halted.position, waits_for) {
                Verdict::Wait => return true,
                Verdict::TryAgain => return false,
                Verdict::Fail(status) => status,
            }
        }
    };
    requester.failed(&halted, status, failing.to_sqe);
    false
}

/// In SQD, with everything that was begun completed: reports SQ_DRAINED once, if that was asked for. There is nothing
/// else to do: true.
#[cold]
fn drained(engine: &'static Engine, slot: &QpSlot, number: QpNumber) -> bool {
    if sync::cas(&slot.send.report_drained, 1, 0).is_ok() {
        events::report_qp(engine, number, QpEvent::Drained);
    }
    true
}

#[cfg(test)]
mod tests;
