//! Waiting for who may be in the middle of a request for a queue pair, or of a copy through a key: by who has
//! shut that, by a change of state or of the key.

use cq_core::setup::QpType;

use super::entry::QpSlot;
use super::{Engine, complete, identity, remote_requests};
use crate::error::Stuck;
use crate::memory::copier;
use crate::protocol::window::Shut;
use crate::shm::lock::{Backoff, Guard, Patience};
use crate::shm::table::Entry;
use crate::sync;

/// Waits until nobody is in the middle of a request for a queue pair whose state was changed, which lets
/// nobody in any more.
///
/// # Errors
/// A process lives and does not get on with one: it is suspended.
pub fn outwait_senders(engine: &'static Engine, slot: &QpSlot, number: u32) -> Result<(), Stuck> {
    let outwaited = match slot.qp_type() {
        QpType::Ud => take_receives(engine, slot).map(drop),
        QpType::Rc | QpType::Uc => {
            let shut = Shut::after_change();
            outwait(engine, &shut, sync::load(engine.dest(number)))
        }
    };
    copier::outwait_given_up(engine.memory);
    outwaited
}

/// Waits until the peer of a queue pair does not use a key any more that is dead.
///
/// # Errors
/// Its process lives and does not get on: it is suspended.
pub fn outwait_peer(engine: &'static Engine, number: u32) -> Result<(), Stuck> {
    outwait_senders(engine, engine.qp(number), number)?;
    // What this process copies for the peer's.
    engine.memory.copier().outwait(&Shut::after_change());
    Ok(())
}

/// Waits until nobody else takes receives of a queue pair for datagrams. From a sender that died this is
/// inherited: what it had published counts.
///
/// # Errors
/// A process lives and does not get on with its datagram: it is suspended; or, after a sender that died, one that
/// holds the lock of the completion queue: nobody knows which receives have completed.
pub fn take_receives<'a>(engine: &'static Engine, slot: &'a QpSlot) -> Result<Guard<'a>, Stuck> {
    let guard = engine.memory.lock(&slot.taking, || sync::store(&slot.unsettled, 1))?;
    if sync::load(&slot.unsettled) != 0 {
        if !complete::outwait_push(engine, sync::load(&slot.recv_cq)) {
            return Err(Stuck);
        }
        // Its process may still be writing to a receive what the dead one had asked for, or be about to.
        if let Some(owner) = slot.life().attachment() {
            copier::give_up_for_the_dead(engine.memory, owner);
        }
        sync::store(&slot.unsettled, 0);
    }
    Ok(guard)
}

/// Waits until what is under way for a queue pair, if something is, is over; or its process, which is who
/// does it.
///
/// # Errors
/// Its process lives and does not get on with it: it is suspended.
fn outwait(engine: &'static Engine, shut: &Shut, number: u32) -> Result<(), Stuck> {
    let mut patience = Patience::default();
    outwait_own(engine, shut, number);
    if outwait_other(engine, shut, number, &mut patience) { Ok(()) } else { Err(Stuck) }
}

/// Waits until nothing is copied any more that was when this was called: for any queue pair, and for other
/// processes by this one. Called after a key has died.
///
/// # Errors
/// A process lives and does not get on with it: it is suspended.
pub fn outwait_all(engine: &'static Engine) -> Result<(), Stuck> {
    let (shut, mut patience) = (Shut::after_change(), Patience::default());
    (0..engine.qps.len()).for_each(|index| outwait_own(engine, &shut, index));
    engine.memory.copier().outwait(&shut);
    let mut others = 0..engine.qps.len();
    let is_over = |index| outwait_other(engine, &shut, index, &mut patience);
    if others.all(is_over) { Ok(()) } else { Err(Stuck) }
}

/// Waits for this process' own threads, by what it alone writes. Nobody suspends some of them for ever.
fn outwait_own(engine: &'static Engine, shut: &Shut, number: u32) {
    let mut backoff = Backoff::default();
    // The threads of a forked child are not those that copy.
    shut.wait(&engine.own(number).copying, || {
        backoff.snooze();
        engine.shm.is_ours()
    });
}

/// Waits for another process; false if that lives and does not get on.
fn outwait_other(
    engine: &'static Engine,
    shut: &Shut,
    number: u32,
    patience: &mut Patience,
) -> bool {
    let slot = engine.qp(number);
    let is_others =
        || slot.life().attachment().is_some_and(|attachment| attachment != engine.shm.attachment());
    let is_alive =
        || slot.life().attachment().is_some_and(|attachment| engine.shm.is_alive(attachment));
    if !is_others() {
        return true;
    }
    let is_closed = shut.wait(&slot.send.copying, || {
        if !patience.is_over_for_now() {
            return true;
        }
        // Who is not in the midst of anything says so: a stranger may have written that it is.
        remote_requests::leave(engine, number);
        // And who waits for memory of this process gets on only once that is served.
        copier::serve_if_nobody_does(engine.memory);
        is_others() && is_alive() && !patience.is_over()
    });
    is_closed || !is_others() || !is_alive()
}

/// That nobody is in the middle of a request for a queue pair. Of one for datagrams, nobody comes, either.
#[derive(Debug)]
pub struct Alone<'a> {
    _taking: Option<Guard<'a>>,
}

/// Says whether nobody is in the middle of a request for a queue pair whose state was changed; who is looks
/// at that when he is through.
pub fn alone_at<'a>(engine: &'static Engine, slot: &'a QpSlot, number: u32) -> Option<Alone<'a>> {
    let taking = match slot.qp_type() {
        QpType::Ud => {
            let _shut = Shut::after_change();
            Some(engine.shm.try_lock(&slot.taking)?)
        }
        QpType::Rc | QpType::Uc => {
            let peer = sync::load(engine.dest(number));
            if may_be_open(engine, peer, number) {
                return None;
            }
            None
        }
    };
    copier::outwait_given_up(engine.memory);
    Some(Alone { _taking: taking })
}

/// Whether the queue pair with this number may be in the middle of a request for its peer.
fn may_be_open(engine: &'static Engine, number: u32, peer: u32) -> bool {
    let slot = engine.qp(number);
    let is_open = Shut::after_change().is_open(&slot.send.copying);
    is_open && identity::read(slot).number == number && sync::load(engine.dest(number)) == peer
}

/// Whether somebody may be in the middle of a request for the queue pair at an index: of one whose
/// number was taken away.
pub fn is_open_for(engine: &'static Engine, index: u32) -> bool {
    let slot = engine.qp(index);
    if slot.qp_type() == QpType::Ud {
        return engine.shm.try_lock(&slot.taking).is_none();
    }
    let number = sync::load(engine.dest(index));
    let slot = engine.qp(number);
    let is_its_peer = || engine.qps.index(sync::load(engine.dest(number))) == index;
    let is_alive =
        || slot.life().attachment().is_some_and(|attachment| engine.shm.is_alive(attachment));
    Shut::after_change().is_open(&slot.send.copying) && is_its_peer() && is_alive()
}

#[cfg(test)]
mod tests;
