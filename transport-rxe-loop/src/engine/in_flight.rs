//! Waiting for requests and copies that are in flight, after a change of state or of a key that lets no further ones
//! begin.

use cq_verbs::setup::QpType;

use super::entry::QpSlot;
use super::{Engine, complete, identity, remote_requests};
use crate::error::Stuck;
use crate::memory::copier;
use crate::protocol::in_flight::ChangeFence;
use crate::protocol::number::{CqIndex, QpIndex, QpNumber};
use crate::shm::lock::{Backoff, Guard, Patience};
use crate::shm::table::Entry;
use crate::sync;

/// Waits until no request for a queue pair is in flight. Its new state lets none begin.
///
/// # Errors
/// A process is suspended in the middle of one.
pub fn wait_for_senders(
    engine: &'static Engine,
    slot: &QpSlot,
    number: QpNumber,
) -> Result<(), Stuck> {
    let waited = match slot.qp_type() {
        QpType::UD => take_receives(engine, slot).map(drop),
        _ => {
            let fence = ChangeFence::after_change();
            wait_until_idle(engine, &fence, engine.index(engine.peer_of(number)))
        }
    };
    copier::wait_for_given_up(engine.memory);
    waited
}

/// Waits until the peer of a queue pair no longer uses an invalidated key.
///
/// # Errors
/// Its process is suspended.
pub fn wait_for_peer(engine: &'static Engine, number: QpNumber) -> Result<(), Stuck> {
    wait_for_senders(engine, engine.qp(number), number)?;
    // And until this process has copied what the peer's process asked for.
    engine.memory.copier.wait_until_idle(&ChangeFence::after_change());
    Ok(())
}

/// Takes the lock under which senders take receives of a UD queue pair. After a sender that died, what it had published
/// is settled first.
///
/// # Errors
/// A process is suspended in the middle of a datagram. Or, after a sender that died, a suspended process holds the lock
/// of the completion queue, so that it is unknown which receives have completed.
pub fn take_receives<'a>(engine: &'static Engine, slot: &'a QpSlot) -> Result<Guard<'a>, Stuck> {
    let guard = engine.memory.lock(&slot.receive_lock, || sync::store(&slot.unsettled, 1))?;
    if sync::load(&slot.unsettled) != 0 {
        if !complete::wait_for_push(engine, slot.recv_cq()) {
            return Err(Stuck);
        }
        // The owner may still be copying to a receive what the dead sender had asked for.
        if let Some(owner) = slot.life().attachment() {
            copier::give_up_for_the_dead(engine.memory, owner);
        }
        sync::store(&slot.unsettled, 0);
    }
    Ok(guard)
}

/// Waits until the copies of a queue pair are over, or its process is dead.
///
/// # Errors
/// Its process is suspended.
fn wait_until_idle(
    engine: &'static Engine,
    fence: &ChangeFence,
    index: QpIndex,
) -> Result<(), Stuck> {
    let mut patience = Patience::default();
    wait_for_own(engine, fence, index);
    if wait_for_other(engine, fence, index, &mut patience) { Ok(()) } else { Err(Stuck) }
}

/// Waits until all copies are over that were in flight when this was called, for any queue pair, and for other
/// processes by this one. Called after a key was invalidated.
///
/// # Errors
/// A process is suspended in the middle of one.
pub fn wait_for_all(engine: &'static Engine) -> Result<(), Stuck> {
    let (fence, mut patience) = (ChangeFence::after_change(), Patience::default());
    engine.qps.indices().for_each(|index| wait_for_own(engine, &fence, index));
    engine.memory.copier.wait_until_idle(&fence);
    let mut others = engine.qps.indices();
    let is_over = |index| wait_for_other(engine, &fence, index, &mut patience);
    if others.all(is_over) { Ok(()) } else { Err(Stuck) }
}

/// Has producers of a completion queue of this process take turns under its lock: none pushes without it when this
/// returns. Not for a thread that carries out requests.
pub fn share_queue(engine: &'static Engine, cq: CqIndex) {
    if let Some(alone) = engine.completions.cq(cq).sole.share() {
        wait_for_own(engine, &ChangeFence::after_change(), engine.index(alone));
    }
}

/// Waits for this process' own threads, by the marker that it alone writes; without a limit.
fn wait_for_own(engine: &'static Engine, fence: &ChangeFence, index: QpIndex) {
    let mut backoff = Backoff::default();
    // A forked child does not have the threads that copy.
    fence.wait(engine.ownership(index), || {
        backoff.snooze();
        engine.shm.is_ours()
    });
}

/// Waits for another process; false if it is suspended.
fn wait_for_other(
    engine: &'static Engine,
    fence: &ChangeFence,
    index: QpIndex,
    patience: &mut Patience,
) -> bool {
    let slot = engine.qps.at(index);
    let is_others =
        || slot.life().attachment().is_some_and(|attachment| attachment != engine.shm.attachment());
    let is_alive =
        || slot.life().attachment().is_some_and(|attachment| engine.shm.is_alive(attachment));
    if !is_others() {
        return true;
    }
    let is_closed = slot.send.in_flight.wait(fence, || {
        if !patience.snooze_check_due() {
            return true;
        }
        // An owner that copies nothing corrects its marker, which another process may have corrupted.
        remote_requests::submit(engine, index);
        // And an owner that waits for memory of this process goes on once it is served.
        copier::serve_if_nobody_does(engine.memory);
        is_others() && is_alive() && !patience.is_over()
    });
    is_closed || !is_others() || !is_alive()
}

/// Shows that no request for a queue pair is in flight. While it is held, no datagram begins either.
#[derive(Debug)]
pub struct Alone<'a> {
    _receive_lock: Option<Guard<'a>>,
}

/// Proof that no request is in flight for a queue pair whose state was changed. `None` if one may be: its sender reads
/// the state when it is done, and reschedules the queue pair.
pub fn try_exclude_senders<'a>(
    engine: &'static Engine,
    slot: &'a QpSlot,
    number: QpNumber,
) -> Option<Alone<'a>> {
    let receive_lock = match slot.qp_type() {
        QpType::UD => {
            let _shut = ChangeFence::after_change();
            Some(engine.shm.try_lock(&slot.receive_lock)?)
        }
        _ => {
            let peer = engine.peer_of(number);
            if may_be_open(engine, peer, number) {
                return None;
            }
            None
        }
    };
    copier::wait_for_given_up(engine.memory);
    Some(Alone { _receive_lock: receive_lock })
}

/// Whether the queue pair `number` may have a request for its peer in flight.
fn may_be_open(engine: &'static Engine, number: QpNumber, peer: QpNumber) -> bool {
    let slot = engine.qp(number);
    let is_open = slot.send.in_flight.are_open(&ChangeFence::after_change());
    is_open && identity::read(&slot.identity).number() == number && engine.peer_of(number) == peer
}

/// Whether a request may be in flight for the queue pair at an index, which has lost its number.
pub fn is_open_for(engine: &'static Engine, index: QpIndex) -> bool {
    let slot = engine.qps.at(index);
    if slot.qp_type() == QpType::UD {
        return engine.shm.try_lock(&slot.receive_lock).is_none();
    }
    let number = QpNumber::new(sync::load(engine.dest(index)));
    let slot = engine.qp(number);
    let is_its_peer = || engine.index(engine.peer_of(number)) == index;
    let is_alive =
        || slot.life().attachment().is_some_and(|attachment| engine.shm.is_alive(attachment));
    slot.send.in_flight.are_open(&ChangeFence::after_change()) && is_its_peer() && is_alive()
}

#[cfg(test)]
mod tests;
