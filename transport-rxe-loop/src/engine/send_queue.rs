//! Send-queue ownership: the thread that owns the send queue of a queue pair takes its requests in order and [carries
//! them out](crate::engine::requester).
//!
//! What the owner does depends on the state of the queue pair, and on the oldest request:
//!
//! | state | oldest request | the owner | then |
//! |---|---|---|---|
//! | RTS | none | gives ownership back | – |
//! | RTS | posted | carries it out, with those behind it: a run, up to one that halts, 32 of them, 16 KiB, or a change of the state | the same again |
//! | RTS | posted, but 256 after those that were there when it came | hands the queue pair over to the service thread | – |
//! | RTS, SQD | halted: a local operation | carries it out between two runs, with the copy guard closed | the same again |
//! | RTS, SQD | halted: it waits, or is to be tried later | sets its [alarm](super::retry), and gives ownership back; or hands over, if each try waits for a suspended process | a reschedule, or the alarm |
//! | RTS, SQD | halted: its time is over | tries it for the last time | the same again |
//! | RTS, SQD | halted: it failed, or the last try did | completes it as a failure, in ERR or SQE | flushes |
//! | SQD | has begun | completes it | the same again |
//! | SQD | has not begun, or none | reports SQ_DRAINED once, if that was asked for | – |
//! | SQE | any | flushes the send queue | – |
//! | ERR | any | flushes both queues | – |
//! | RESET, INIT, RTR | any | nothing | – |
//!
//! The usual post is shorter: it finds the queue free, enters it and opens its copy guard by one word, carries out in one run all
//! that it has posted, and closes the guard and leaves by one word, too.
//!
//! A run delivers to one receiver that is to be woken, at most. It is woken once all completions of the run are stored, and
//! that of the request which failed in it (N13): before the next run, or once ownership was given back.
//!
//! A thread that posts a request or changes the state reschedules the queue pair after that: an owner that gives ownership
//! back then finds itself rescheduled, and looks again.
//!
//! No thread owns two send queues. Work for other queue pairs that turns up meanwhile, a peer to be flushed or a sender
//! that waited for it, is added to [`Rescheduled`] and done once the send queue has been given back.

use std::ops::ControlFlow;

use cq_verbs::setup::QpState;

use super::connection::Connection;
use super::entry::{QpSlot, SendQueue};
use super::requester::{self, Halt, Halted, Requester};
use super::rescheduled::Rescheduled;
use super::retry::{self, Verdict, WaitsFor};
use super::{Engine, events, flush, identity, remote_requests, srq};
use crate::completion::async_event::QpEvent;
use crate::memory::copy_guard::CopyGuard;
use crate::protocol::number::{Position, QpIndex, QpNumber, SrqNumber};
use crate::protocol::ownership::Ownership;
use crate::shm::lock::Backoff;
use crate::sync;

impl SendQueue {
    /// Carries out what was posted, and runs the queue pairs that this reschedules, until nothing is left to do. If another
    /// thread owns the send queue, that thread does the work. For the thread that posts, which keeps `known`.
    pub fn post(self, known: &mut Option<Connection>) {
        let mut rescheduled = Rescheduled::default();
        let has_left = self.carry_out_posted(known, &mut rescheduled);
        rescheduled.wake(self.engine);
        if !has_left {
            self.drive(known, &mut rescheduled);
            self.look_at_peer(&mut rescheduled);
        }
        run_others(self.engine, &mut rescheduled);
    }

    /// The usual case: the connection is known, in RTS and without faults, no thread owns the send queue, and all that was
    /// posted is carried out in one run. It enters as it opens its copy guard, and leaves as it closes it. Anything else goes to
    /// [`hold`](Self::hold), as the owner. False if [`drive`](Self::drive) has to enter the queue, and the peer to be looked at:
    /// the connection is not known, another thread owns the queue, or the peer has failed. The caller wakes the receiver.
    #[inline(always)]
    fn carry_out_posted(
        self,
        known: &mut Option<Connection>,
        rescheduled: &mut Rescheduled,
    ) -> bool {
        let Self { engine, slot, own, ownership, .. } = self;
        let Some(connection) = known else { return false };
        if sync::load(&own.faulty) != 0 {
            return false;
        }
        connection.peer.prefetch_send();
        let mut guard = CopyGuard::enter(engine.memory, &slot.send.in_flight.poster, ownership);
        if guard.is_none() {
            return false;
        }
        let me = connection.me;
        let (first, posted) = (slot.send.done(), slot.send.posted());
        let is_in_rts = identity::read(&slot.identity) == me && me.state() == QpState::RTS;
        let mut halted = None;
        if is_in_rts && connection.ring.has_any(first, posted) {
            let mut requester = Requester::new(self, connection, rescheduled);
            halted = requester.run(&mut guard, first, posted.since(first));
            if halted.is_none() && slot.send.done() == posted {
                let has_left = match guard.take() {
                    Some(guard) => guard.leave(),
                    None => ownership.leave(),
                };
                if has_left {
                    return !connection.peer.has_failed();
                }
            }
        }
        drop(guard);
        slot.send.in_flight.correct();
        self.look_at_peer(rescheduled);
        self.hold(known, rescheduled, halted)
    }

    /// A copy guard was closed, or a marker was corrected: if the peer has failed meanwhile, it may wait for that.
    #[cold]
    fn look_at_peer(self, rescheduled: &mut Rescheduled) {
        let Self { engine, slot, .. } = self;
        let number = engine.peer_of(identity::read(&slot.identity).number());
        if identity::has_failed(engine.qp(number), number) {
            rescheduled.add(engine, engine.index(number));
        }
    }

    /// Owns the send queue for as long as there is something to do. If requests keep being posted meanwhile, it hands the
    /// queue pair over to the service thread and returns.
    #[inline(never)]
    fn drive(self, known: &mut Option<Connection>, rescheduled: &mut Rescheduled) {
        'left: while self.ownership.enter() {
            // An alarm or a remote request may be stale: the entry may be free by now, or another process'. A queue pair of this
            // process that is entered there meanwhile reschedules this thread.
            while !self.engine.owns(self.slot) {
                if self.ownership.leave() {
                    break 'left;
                }
            }
            if self.slot.send.in_flight.correct() {
                self.look_at_peer(rescheduled);
            }
            if self.hold(known, rescheduled, None) {
                break;
            }
        }
        rescheduled.wake(self.engine);
    }

    /// Works as the owner, and begins with a request that has halted, if there is one; false if the queue is to be entered
    /// again. Ownership is given back because nothing is left to do, or because the service thread is to continue: requests
    /// keep being posted, or each try waits for a suspended process.
    #[inline(never)]
    fn hold(
        self,
        known: &mut Option<Connection>,
        rescheduled: &mut Rescheduled,
        mut halted: Option<Halted>,
    ) -> bool {
        /// Requests that a thread carries out beyond those that were posted when it came.
        const LATER: u64 = 256;
        let Self { engine, index, slot, own, ownership } = self;
        let limit = slot.send.posted().plus(LATER);
        if halted.is_none() {
            sync::store(&own.unanswered, 0);
        }
        while self.work(known, rescheduled, halted.take(), limit) {
            if ownership.leave() {
                return true;
            }
            if sync::load(&own.unanswered) != 0 {
                // Each try takes seconds, and its alarm expires during the next one: this might never end.
                break;
            }
        }
        // Reschedules since then are served by the service thread, or by a thread that enters before it.
        ownership.abandon();
        engine.alarms.hand_over(index).is_ok()
    }

    /// Does what there is to do; false if it reached the request at `limit`.
    fn work(
        self,
        known: &mut Option<Connection>,
        rescheduled: &mut Rescheduled,
        mut halted: Option<Halted>,
        limit: Position,
    ) -> bool {
        let Self { engine, slot, own, .. } = self;
        let faulty = sync::load(&own.faulty) != 0;
        let is_strict = engine.policy.strict.is_on();
        loop {
            // The completion of a request that failed is stored first.
            if !halted.as_ref().is_some_and(Halted::fails) {
                rescheduled.wake(engine);
            }
            if let (Some(halted), Some(known)) = (halted.take(), known.as_mut()) {
                if handle_halt(&mut Requester::new(self, known, rescheduled), halted) {
                    return true;
                }
            }
            let me = identity::read(&slot.identity);
            if known.as_ref().is_none_or(|known| known.me != me) {
                // After the state: an entry that is being set up has no state until its ring is recorded.
                *known = Connection::new(engine, slot, me);
            }
            let Some(connection) = known else { return true };
            let (ring, slots) = (&connection.ring, &connection.slots);
            let position = slot.send.done();
            match me.state() {
                QpState::RTS => {}
                // A request that has begun is completed.
                QpState::SQD if retry::has_begun(slot, position) => {}
                QpState::SQD => return drained(engine, slot, me.number()),
                QpState::SQE => {
                    flush::sends(engine, slot, me.number(), (ring, slots));
                    return true;
                }
                QpState::ERR => {
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
            let all = posted.since(position).min(limit.since(position));
            let left = if me.state() == QpState::SQD || faulty { 1 } else { all };
            let mut requester = Requester::new(self, connection, rescheduled);
            halted = match requester::faults::meet(faulty, &mut requester, position) {
                ControlFlow::Continue(()) if is_strict => {
                    requester.run_strictly(position, position.plus(all))
                }
                ControlFlow::Continue(()) => {
                    let mut guard = None;
                    let halted = requester.run(&mut guard, position, left);
                    requester.close(&mut guard);
                    halted
                }
                ControlFlow::Break(halted) => halted,
            };
            // A thread that posted more since, or changed the state, has rescheduled the queue pair.
            if halted.is_none() && me.state() == QpState::RTS && slot.send.done() == posted {
                return true;
            }
        }
    }
}

/// Runs a queue pair, and those that this reschedules, until nothing is left to do. If another thread owns the send queue, that
/// thread does the work.
pub fn run(engine: &'static Engine, qp: QpIndex) {
    let mut rescheduled = Rescheduled::default();
    drive(engine, qp, &mut rescheduled);
    run_others(engine, &mut rescheduled);
}

/// Runs what was rescheduled, and what others have requested, if there is any.
#[inline(always)]
fn run_others(engine: &'static Engine, rescheduled: &mut Rescheduled) {
    if rescheduled.is_any() || engine.reminder.is_set() {
        run_all(engine, rescheduled);
    }
}

fn drive(engine: &'static Engine, qp: QpIndex, rescheduled: &mut Rescheduled) {
    SendQueue::of(engine, qp).drive(&mut None, rescheduled);
}

/// Runs what was rescheduled, until nothing is left.
#[cold]
fn run_all(engine: &'static Engine, rescheduled: &mut Rescheduled) {
    loop {
        while let Some(next) = rescheduled.pop() {
            drive(engine, next, rescheduled);
        }
        if !engine.reminder.take() {
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
/// The fence pairs with that of a [copy guard](crate::memory::copy_guard::CopyGuard) that is opened, between the sender's
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
