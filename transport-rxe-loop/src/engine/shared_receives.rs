//! The [pools](crate::protocol::pool) of shared receive queues, across processes: taking a receive for a queue pair,
//! giving back what a dead process had taken, and waiting until nothing is taken.
//!
//! Nothing here is called under the lock of a completion queue, and no other lock is taken under a pool's.

use crate::protocol::lock::AttachmentId;
use crate::protocol::number::{Position, QpNumber, SrqNumber};
use std::time::{Duration, Instant};

use super::entry::SrqSlot;
use super::ring::{RecvRequest, Ring};
use super::srq::{for_each_sender_to, numbered, queue};
use super::{Engine, complete, events, remote_requests};
use crate::error::Stuck;
use crate::memory::copier;
use crate::protocol::in_flight::ChangeFence;
use crate::protocol::pool::Taken;
use crate::protocol::steps::{self, Step};
use crate::shm::lock::{Backoff, Patience};
use crate::shm::table::Entry;

/// Why a responder accepts no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// It is not connected yet, has failed, or is connected to another.
    NotReady,
    /// It was destroyed: no queue pair has its number.
    Gone,
    /// No receive is posted.
    NoReceive,
    /// A process is alive and suspended: it holds the lock of the receives. Or an abandoned request is in flight at the
    /// responder's process, and may write to one of them.
    Stuck,
}

/// Takes a receive from the shared receive queue with this number for queue pair `target`, if `may` says, under the
/// lock, that the queue pair accepts messages. A thread that changes its state [waits](wait_until_idle) for the lock then, and
/// finds what was taken before. `may` is called again once a receive is taken: another thread may have [given it back
/// without the lock](crate::protocol::pool::Queue::leave) meanwhile.
pub fn take(
    engine: &'static Engine,
    srq: SrqNumber,
    target: QpNumber,
    mut may: impl FnMut() -> Result<(), Unavailable>,
) -> Result<(Taken, RecvRequest), Unavailable> {
    let lock = engine.srq(srq).pool.lock();
    let (taken, ring) = {
        let _guard = engine.memory.lock(lock, || {}).map_err(|Stuck| Unavailable::Stuck)?;
        may()?;
        // The queue can't be destroyed while a request for the queue pair may be in flight.
        let (slot, queue) = numbered(engine, srq).ok_or(Unavailable::Gone)?;
        let ring = Ring::of(engine.shm, &slot.ring).ok_or(Unavailable::Gone)?;
        let taken = queue.take_or_starve(engine.shm.attachment(), target);
        (taken.ok_or(Unavailable::NoReceive)?, ring)
    };
    if taken.reached_limit {
        tell_limit(engine, srq, engine.shm.attachment());
    }
    if let Err(why) = may() {
        give_back(engine, srq, &taken);
        return Err(why);
    }
    Ok((taken, ring.read_recv(Position::new(taken.slot.into()))))
}

#[cold]
fn tell_limit(engine: &'static Engine, srq: SrqNumber, reporter_word: AttachmentId) {
    events::report_limit(engine, srq);
    // If this process dies before this, a survivor reports the limit again.
    engine.srq(srq).pool.reported(reporter_word);
}

/// Gives back a receive that was taken and not used.
#[cold]
pub fn give_back(engine: &'static Engine, srq: SrqNumber, taken: &Taken) {
    let Some((slot, queue)) = numbered(engine, srq) else { return };
    let is_to_be_told = match engine.memory.lock(slot.pool.lock(), || {}) {
        Ok(_guard) => queue.give_back(taken) == Some(true),
        // The next holder of the lock finds it.
        Err(Stuck) => queue.leave(taken),
    };
    if is_to_be_told {
        // Not at once: the caller may own a send queue.
        for_each_sender_to(engine, srq, |index| remote_requests::submit(engine, index));
    }
}

/// Whether a receive of the shared receive queue with this number is taken for queue pair `target`, which accepts no
/// messages any more. If so, its taker reschedules the queue pair once it is done, or the process that cleans up after
/// a dead taker.
///
/// # Errors
/// The lock is held by a thread that may be taking a receive for another queue pair; it would not reschedule this one.
pub fn is_taken_for(
    engine: &'static Engine,
    srq: SrqNumber,
    target: QpNumber,
) -> Result<bool, Stuck> {
    let Some((slot, queue)) = numbered(engine, srq) else { return Ok(false) };
    // Takers that came before the change of state have marked their receives by now.
    wait_for_takers(engine, slot)?;
    // A taker looks at the state after it is done: either this sees that it is done, or it sees the state.
    let _shut = ChangeFence::after_change();
    Ok(queue.taken().any(|taken| taken.target() == target))
}

/// Waits for the holder of the lock, but not long: the caller may own a send queue. It is tried again.
fn wait_for_takers(engine: &'static Engine, slot: &SrqSlot) -> Result<(), Stuck> {
    const LONG: Duration = Duration::from_millis(20);
    let (start, mut backoff) = (Instant::now(), Backoff::default());
    while engine.shm.try_lock(slot.pool.lock()).is_none() {
        if start.elapsed() > LONG {
            return Err(Stuck);
        }
        backoff.snooze();
    }
    Ok(())
}

/// Waits until no receive is taken for queue pair `target`. By its state it accepts no messages, and no thread of this
/// process is in the middle of a request for it.
///
/// # Errors
/// A process that has taken one is alive and suspended.
pub fn wait_until_idle(
    engine: &'static Engine,
    srq: SrqNumber,
    target: QpNumber,
) -> Result<(), Stuck> {
    let Some((slot, queue)) = numbered(engine, srq) else { return Ok(()) };
    drop(engine.memory.lock(slot.pool.lock(), || {})?);
    let mut patience = Patience::default();
    while let Some(taken) = queue.taken().find(|taken| taken.target() == target) {
        let is_late = patience.snooze_check_due();
        if is_late && patience.is_over() {
            if taken.by() != engine.shm.attachment() {
                return Err(Stuck);
            }
            // The mark was corrupted by another process.
            queue.free(&taken);
        } else if is_late {
            reclaim(engine, slot, &taken)?;
        }
    }
    Ok(())
}

/// Gives back what was taken, if its taker is dead.
///
/// # Errors
/// A process is suspended while it holds the lock of the completion queue: whether the receive has completed is
/// unknown.
fn reclaim(engine: &'static Engine, slot: &'static SrqSlot, taken: &Taken) -> Result<(), Stuck> {
    if engine.shm.is_alive(taken.by()) {
        return Ok(());
    }
    // If its completion is published, this settles it.
    let cq = engine.qp(taken.target()).recv_cq();
    if !complete::wait_for_push(engine, cq) {
        return Err(Stuck);
    }
    // The owner may still be writing to it for the dead process, or be about to.
    if let Some(owner) = slot.life().attachment() {
        copier::give_up_for_the_dead(engine.memory, owner);
    }
    give_back(engine, slot.number(), taken);
    steps::done(Step::Recovered);
    Ok(())
}

/// Gives back what the dead process with this table entry had taken; its queue pairs have lost their numbers. False
/// while other processes use its shared receive queues, or where a lock can't be had.
pub fn recover(engine: &'static Engine, dead: AttachmentId) -> bool {
    let mut is_quiet = true;
    for (_, slot) in engine.srqs.all() {
        let Some(owner) = slot.life().attachment() else { continue };
        let Some(queue) = queue(engine, slot) else { continue };
        if engine.shm.is_alive(dead) {
            // The entry is another process' by now.
            return false;
        }
        if owner == dead {
            // Takers that come later see, under the lock, that they may not take.
            let is_shut = engine.memory.lock(slot.pool.lock(), || {}).is_ok();
            is_quiet &= is_shut && !queue.taken().any(|taken| engine.shm.is_alive(taken.by()));
            continue;
        }
        for taken in queue.taken().filter(|taken| taken.by() == dead) {
            is_quiet &= reclaim(engine, slot, &taken).is_ok();
        }
        if queue.find_left() {
            for_each_sender_to(engine, slot.number(), |index| {
                remote_requests::submit(engine, index);
            });
        }
        if slot.pool.reporter() == Some(dead) {
            is_quiet &= report_for(engine, slot, dead);
        }
    }
    is_quiet
}

/// Reports the limit for a dead process that had reached it, unless another survivor has; false if the lock can't be
/// had.
fn report_for(engine: &'static Engine, slot: &SrqSlot, dead: AttachmentId) -> bool {
    let Ok(_guard) = engine.memory.lock(slot.pool.lock(), || {}) else { return false };
    if slot.pool.reporter() == Some(dead) {
        tell_limit(engine, slot.number(), dead);
    }
    true
}

#[cfg(test)]
mod tests;
