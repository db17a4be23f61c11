//! The [pools](crate::protocol::pool) of shared receive queues, as all processes see them: taking a receive
//! for a queue pair, giving back what the dead had taken, and finding out that nothing is taken any more.
//!
//! Nothing here is called under the lock of a completion queue, and no other lock is taken under a pool's.

use std::time::{Duration, Instant};

use crate::completion::async_event;
use crate::completion::push;
use crate::engine::remote_requests;
use crate::engine::responder::Unavailable;
use crate::engine::ring::{RecvRequest, Ring};
use crate::engine::send_queue;
use crate::fabric::Fabric;
use crate::layout::{Entry, SrqSlot};
use crate::memory::copier;
use crate::protocol::pool::{Queue, Taken};
use crate::protocol::steps::{self, Step};
use crate::protocol::window::Shut;
use crate::shm::lock::{Backoff, Patience, Stuck};
use crate::sync::{self, AtomicU32, AtomicU64};

/// The pool that lies in the arena, as the table says; `None` if what it says can't be.
pub fn queue(fabric: &'static Fabric, slot: &'static SrqSlot) -> Option<Queue<'static>> {
    at(fabric, slot, sync::load(&slot.slots_at), sync::load(&slot.capacity))
}

/// How many bytes the slots and the order of so many receives take.
pub const fn bytes(capacity: u32) -> usize {
    let order = (capacity as usize).next_power_of_two() * size_of::<AtomicU32>();
    capacity as usize * size_of::<AtomicU64>() + order
}

/// The pool whose slots and order lie at an offset.
pub fn at(
    fabric: &'static Fabric,
    slot: &'static SrqSlot,
    offset: u32,
    capacity: u32,
) -> Option<Queue<'static>> {
    let (offset, capacity) = (offset as usize, capacity as usize);
    let order = offset.checked_add(capacity.checked_mul(size_of::<AtomicU64>())?)?;
    let slots = fabric.in_arena(offset, capacity)?;
    Queue::new(&slot.pool, slots, fabric.in_arena(order, capacity.checked_next_power_of_two()?)?)
}

/// The pool of the shared receive queue with this number, if it is there.
fn numbered(fabric: &'static Fabric, srq: u32) -> Option<(&'static SrqSlot, Queue<'static>)> {
    let slot = fabric.srq(srq);
    let is_there = srq != 0 && sync::acquire(&slot.number) == srq;
    is_there.then(|| queue(fabric, slot)).flatten().map(|queue| (slot, queue))
}

/// Takes a receive from the shared receive queue with this number for queue pair `target`, if `may` says,
/// under the lock, that this one takes messages. Who shuts takers out by a state waits for the lock
/// [then](outwait), and finds what was taken before. It is asked once more when one is taken, which somebody may have
/// [left](Queue::leave) meanwhile without the lock.
pub fn take(
    fabric: &'static Fabric,
    srq: u32,
    target: u32,
    may: impl Fn() -> Result<(), Unavailable>,
) -> Result<(Taken, RecvRequest), Unavailable> {
    let lock = fabric.srq(srq).pool.lock();
    let (taken, ring) = {
        let _guard = fabric.lock(lock, || {}).map_err(|Stuck| Unavailable::Stuck)?;
        may()?;
        // It can't go while somebody may be in the middle of a request for the queue pair.
        let (slot, queue) = numbered(fabric, srq).ok_or(Unavailable::Gone)?;
        let ring = Ring::of(fabric, &slot.ring).ok_or(Unavailable::Gone)?;
        let taken = queue.take_or_starve(fabric.place(), target);
        (taken.ok_or(Unavailable::NoReceive)?, ring)
    };
    if taken.reached_limit() {
        tell_limit(fabric, srq, fabric.place());
    }
    if let Err(why) = may() {
        give_back(fabric, srq, &taken);
        return Err(why);
    }
    Ok((taken, ring.read_recv(taken.slot().into())))
}

#[cold]
fn tell_limit(fabric: &'static Fabric, srq: u32, debtor: u16) {
    async_event::report_limit(fabric, srq);
    // Who dies before this is told of once more.
    fabric.srq(srq).pool.told(debtor);
}

/// Gives a receive back that was taken, and not used.
#[cold]
pub fn give_back(fabric: &'static Fabric, srq: u32, taken: &Taken) {
    let Some((slot, queue)) = numbered(fabric, srq) else { return };
    let is_to_be_told = match fabric.lock(slot.pool.lock(), || {}) {
        Ok(_guard) => queue.give_back(taken) == Some(true),
        // The next who has the lock finds it.
        Err(Stuck) => queue.leave(taken),
    };
    if is_to_be_told {
        // Not at once: the turn of a queue pair may be held.
        each_that_takes_from(fabric, srq, |index| remote_requests::leave(fabric, index));
    }
}

/// Runs whoever may wait for a receive of the shared receive queue with this number.
#[cold]
pub fn kick(fabric: &'static Fabric, srq: u32) {
    each_that_takes_from(fabric, srq, |index| send_queue::kick(fabric, index));
}

/// Those that are connected to a queue pair of this shared receive queue, by their indices.
fn each_that_takes_from(fabric: &'static Fabric, srq: u32, mut each: impl FnMut(u32)) {
    sync::read_fence();
    for (dest, index) in fabric.tables().destinations.iter().zip(0..) {
        let number = sync::load(dest);
        if number != 0 && sync::load(&fabric.qp(number).srq) == srq {
            each(index);
        }
    }
}

/// A completion of queue pair `qp` with this tag is published: its receive has completed. The queue pair may
/// have lost its number since, but not its place.
pub fn settle(fabric: &'static Fabric, qp: u32, tag: u32) {
    let srq = sync::load(&fabric.qp(qp).srq);
    if let Some((_, queue)) = numbered(fabric, srq) {
        queue.settle(tag, qp);
    }
}

/// Whether something of the shared receive queue with this number is taken for queue pair `target`, which
/// takes no messages any more: then who took it kicks it when it is through, or who sweeps up after that one.
///
/// # Errors
/// Somebody has the lock, and may be taking: for another one, and then nobody kicks.
pub fn is_taken_for(fabric: &'static Fabric, srq: u32, target: u32) -> Result<bool, Stuck> {
    let Some((slot, queue)) = numbered(fabric, srq) else { return Ok(false) };
    // Who took before the state changed has marked it by now.
    outwait_takers(fabric, slot)?;
    // Who is through looks at the state after that: it is seen here, or sees the state.
    let _shut = Shut::after_change();
    Ok(queue.taken().any(|taken| taken.target() == target))
}

/// Waits for who has the lock, but not for long: turns are held meanwhile, and it is tried again.
fn outwait_takers(fabric: &'static Fabric, slot: &SrqSlot) -> Result<(), Stuck> {
    const LONG: Duration = Duration::from_millis(20);
    let (start, mut backoff) = (Instant::now(), Backoff::default());
    while fabric.try_lock(slot.pool.lock()).is_none() {
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
pub fn outwait(fabric: &'static Fabric, srq: u32, target: u32) -> Result<(), Stuck> {
    let Some((slot, queue)) = numbered(fabric, srq) else { return Ok(()) };
    drop(fabric.lock(slot.pool.lock(), || {})?);
    let mut patience = Patience::default();
    while let Some(taken) = queue.taken().find(|taken| taken.target() == target) {
        let is_late = patience.is_over_for_now();
        if is_late && patience.is_over() {
            if taken.by() != fabric.place() {
                return Err(Stuck);
            }
            // A stranger wrote that.
            queue.free(&taken);
        } else if is_late {
            reclaim(fabric, slot, &taken)?;
        }
    }
    Ok(())
}

/// Gives back what was taken, if the process that did is dead.
///
/// # Errors
/// Another process is suspended over the completion queue: nobody knows whether it has completed.
fn reclaim(fabric: &'static Fabric, slot: &'static SrqSlot, taken: &Taken) -> Result<(), Stuck> {
    if fabric.is_alive(taken.by()) {
        return Ok(());
    }
    // What it had published has completed, and is settled by this.
    let cq = sync::load(&fabric.qp(taken.target()).recv_cq);
    if !push::outwait_push(fabric, cq) {
        return Err(Stuck);
    }
    // Its owner may still be writing to it what the dead one had asked for, or be about to.
    copier::give_up_for_the_dead(fabric, slot);
    give_back(fabric, sync::load(&slot.number), taken);
    steps::done(Step::Swept);
    Ok(())
}

/// Sweeps up after the process at a place, which is dead, and whose queue pairs have lost their numbers: what
/// it had taken is given back. False while others have something of its.
pub fn sweep(fabric: &'static Fabric, dead: u16) -> bool {
    let mut is_quiet = true;
    for slot in fabric.tables().srqs.all() {
        let Some(owner) = slot.life().place() else { continue };
        let Some(queue) = queue(fabric, slot) else { continue };
        if fabric.is_alive(dead) {
            // Its place is another's by now.
            return false;
        }
        if owner == dead {
            // Who is about to take sees under the lock that it may not.
            let is_shut = fabric.lock(slot.pool.lock(), || {}).is_ok();
            is_quiet &= is_shut && !queue.taken().any(|taken| fabric.is_alive(taken.by()));
            continue;
        }
        for taken in queue.taken().filter(|taken| taken.by() == dead) {
            is_quiet &= reclaim(fabric, slot, &taken).is_ok();
        }
        if queue.find_left() {
            each_that_takes_from(fabric, sync::load(&slot.number), |index| {
                remote_requests::leave(fabric, index);
            });
        }
        if slot.pool.owes() == Some(dead) {
            is_quiet &= pays(fabric, slot, dead);
        }
    }
    is_quiet
}

/// Tells the limit that a dead process had reached, unless another survivor has; false where nobody knows yet.
fn pays(fabric: &'static Fabric, slot: &SrqSlot, dead: u16) -> bool {
    let Ok(_guard) = fabric.lock(slot.pool.lock(), || {}) else { return false };
    if slot.pool.owes() == Some(dead) {
        tell_limit(fabric, sync::load(&slot.number), dead);
    }
    true
}

#[cfg(test)]
mod tests;
