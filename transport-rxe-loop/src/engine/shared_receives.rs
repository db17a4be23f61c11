//! The [pools](crate::protocol::pool) of shared receive queues, as all processes see them: taking a receive
//! for a queue pair, giving back what the dead had taken, and finding out that nothing is taken any more.
//!
//! Nothing here is called under the lock of a completion queue, and no other lock is taken under a pool's.

use std::time::{Duration, Instant};

use super::entry::SrqSlot;
use super::ring::{RecvRequest, Ring};
use super::srq::{each_that_takes_from, numbered, queue};
use super::{Engine, complete, events, remote_requests};
use crate::error::Stuck;
use crate::memory::copier;
use crate::protocol::pool::Taken;
use crate::protocol::steps::{self, Step};
use crate::protocol::window::Shut;
use crate::shm::lock::{Backoff, Patience};
use crate::shm::table::Entry;
use crate::sync;

/// Why a peer takes no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// It is not connected yet, has failed, or is connected to another.
    NotReady,
    /// It was destroyed: nobody has its number.
    Gone,
    /// No receive is posted.
    NoReceive,
    /// Another process lives and is suspended: it holds the lock of its receives; or an abandoned request is in flight
    /// at the peer's process that may write to one of them.
    Stuck,
}

/// Takes a receive from the shared receive queue with this number for queue pair `target`, if `may` says,
/// under the lock, that this one takes messages. Who shuts takers out by a state waits for the lock
/// [then](outwait), and finds what was taken before. It is asked once more when one is taken, which somebody may have
/// [left](Queue::leave) meanwhile without the lock.
pub fn take(
    engine: &'static Engine,
    srq: u32,
    target: u32,
    may: impl Fn() -> Result<(), Unavailable>,
) -> Result<(Taken, RecvRequest), Unavailable> {
    let lock = engine.srq(srq).pool.lock();
    let (taken, ring) = {
        let _guard = engine.memory.lock(lock, || {}).map_err(|Stuck| Unavailable::Stuck)?;
        may()?;
        // It can't go while somebody may be in the middle of a request for the queue pair.
        let (slot, queue) = numbered(engine, srq).ok_or(Unavailable::Gone)?;
        let ring = Ring::of(engine.shm, &slot.ring).ok_or(Unavailable::Gone)?;
        let taken = queue.take_or_starve(engine.shm.place(), target);
        (taken.ok_or(Unavailable::NoReceive)?, ring)
    };
    if taken.reached_limit() {
        tell_limit(engine, srq, engine.shm.place());
    }
    if let Err(why) = may() {
        give_back(engine, srq, &taken);
        return Err(why);
    }
    Ok((taken, ring.read_recv(taken.slot().into())))
}

#[cold]
fn tell_limit(engine: &'static Engine, srq: u32, debtor: u16) {
    events::report_limit(engine, srq);
    // Who dies before this is told of once more.
    engine.srq(srq).pool.told(debtor);
}

/// Gives a receive back that was taken, and not used.
#[cold]
pub fn give_back(engine: &'static Engine, srq: u32, taken: &Taken) {
    let Some((slot, queue)) = numbered(engine, srq) else { return };
    let is_to_be_told = match engine.memory.lock(slot.pool.lock(), || {}) {
        Ok(_guard) => queue.give_back(taken) == Some(true),
        // The next who has the lock finds it.
        Err(Stuck) => queue.leave(taken),
    };
    if is_to_be_told {
        // Not at once: the turn of a queue pair may be held.
        each_that_takes_from(engine, srq, |index| remote_requests::leave(engine, index));
    }
}

/// Whether something of the shared receive queue with this number is taken for queue pair `target`, which
/// takes no messages any more: then who took it kicks it when it is through, or who sweeps up after that one.
///
/// # Errors
/// Somebody has the lock, and may be taking: for another one, and then nobody kicks.
pub fn is_taken_for(engine: &'static Engine, srq: u32, target: u32) -> Result<bool, Stuck> {
    let Some((slot, queue)) = numbered(engine, srq) else { return Ok(false) };
    // Who took before the state changed has marked it by now.
    outwait_takers(engine, slot)?;
    // Who is through looks at the state after that: it is seen here, or sees the state.
    let _shut = Shut::after_change();
    Ok(queue.taken().any(|taken| taken.target() == target))
}

/// Waits for who has the lock, but not for long: turns are held meanwhile, and it is tried again.
fn outwait_takers(engine: &'static Engine, slot: &SrqSlot) -> Result<(), Stuck> {
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

/// Once the state says that queue pair `target` takes no messages, and no thread of this process is in the
/// middle of a request for it: waits until nothing is taken for it.
///
/// # Errors
/// Whoever has taken something lives, and does not get on with it: it is suspended.
pub fn outwait(engine: &'static Engine, srq: u32, target: u32) -> Result<(), Stuck> {
    let Some((slot, queue)) = numbered(engine, srq) else { return Ok(()) };
    drop(engine.memory.lock(slot.pool.lock(), || {})?);
    let mut patience = Patience::default();
    while let Some(taken) = queue.taken().find(|taken| taken.target() == target) {
        let is_late = patience.is_over_for_now();
        if is_late && patience.is_over() {
            if taken.by() != engine.shm.place() {
                return Err(Stuck);
            }
            // A stranger wrote that.
            queue.free(&taken);
        } else if is_late {
            reclaim(engine, slot, &taken)?;
        }
    }
    Ok(())
}

/// Gives back what was taken, if the process that did is dead.
///
/// # Errors
/// Another process is suspended over the completion queue: nobody knows whether it has completed.
fn reclaim(engine: &'static Engine, slot: &'static SrqSlot, taken: &Taken) -> Result<(), Stuck> {
    if engine.shm.is_alive(taken.by()) {
        return Ok(());
    }
    // What it had published has completed, and is settled by this.
    let cq = sync::load(&engine.qp(taken.target()).recv_cq);
    if !complete::outwait_push(engine, cq) {
        return Err(Stuck);
    }
    // Its owner may still be writing to it what the dead one had asked for, or be about to.
    if let Some(owner) = slot.life().place() {
        copier::give_up_for_the_dead(engine.memory, owner);
    }
    give_back(engine, sync::load(&slot.number), taken);
    steps::done(Step::Swept);
    Ok(())
}

/// Sweeps up after the process at a place, which is dead, and whose queue pairs have lost their numbers: what
/// it had taken is given back. False while others have something of its.
pub fn sweep(engine: &'static Engine, dead: u16) -> bool {
    let mut is_quiet = true;
    for slot in engine.srqs.all() {
        let Some(owner) = slot.life().place() else { continue };
        let Some(queue) = queue(engine, slot) else { continue };
        if engine.shm.is_alive(dead) {
            // Its place is another's by now.
            return false;
        }
        if owner == dead {
            // Who is about to take sees under the lock that it may not.
            let is_shut = engine.memory.lock(slot.pool.lock(), || {}).is_ok();
            is_quiet &= is_shut && !queue.taken().any(|taken| engine.shm.is_alive(taken.by()));
            continue;
        }
        for taken in queue.taken().filter(|taken| taken.by() == dead) {
            is_quiet &= reclaim(engine, slot, &taken).is_ok();
        }
        if queue.find_left() {
            each_that_takes_from(engine, sync::load(&slot.number), |index| {
                remote_requests::leave(engine, index);
            });
        }
        if slot.pool.owes() == Some(dead) {
            is_quiet &= pays(engine, slot, dead);
        }
    }
    is_quiet
}

/// Tells the limit that a dead process had reached, unless another survivor has; false where nobody knows yet.
fn pays(engine: &'static Engine, slot: &SrqSlot, dead: u16) -> bool {
    let Ok(_guard) = engine.memory.lock(slot.pool.lock(), || {}) else { return false };
    if slot.pool.owes() == Some(dead) {
        tell_limit(engine, sync::load(&slot.number), dead);
    }
    true
}

#[cfg(test)]
mod tests;
