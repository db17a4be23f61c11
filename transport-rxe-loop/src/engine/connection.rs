//! What the owner of a send queue keeps of its queue pair and of the connected one: validated once, and again when
//! either has changed.
//!
//! | kept | validated | checked by each message |
//! |---|---|---|
//! | ring of the send queue, type, peer | when the [identity](super::identity) of the queue pair has changed | its identity |
//! | ring of the receive queue, rights, protection domain, shared receive queue | when that of the peer has changed | the peer's identity and type, and that both are connected to each other, with the in-flight marker set |
//! | rings of both completion queues | when they have moved | their location, by their producer |
//!
//! An identity has an epoch that counts changes, so the same one means that nothing has changed. It lies in the
//! process' own memory, so what another process writes to the tables counts only if it is in range when it is
//! validated, and not after that. The thread that posts keeps it in the queue pair; other threads that come to own the
//! send queue begin with nothing.

use cq_verbs::setup::QpType;

use super::Engine;
use super::entry::QpSlot;
use super::identity::Identity;
use super::responder::Responder;
use super::ring::Ring;
use crate::completion::queue::CqRing;
use crate::memory::region::KeyUser;
use crate::protocol::send_slots::SendSlots;
use crate::sync;

/// A connection, from the requester's side.
#[derive(Debug)]
pub struct Connection {
    /// The queue pair, in the epoch in which the rest was validated.
    pub me: Identity,
    pub kind: QpType,
    /// Whose keys its own SGEs use.
    pub local_keys: KeyUser,
    pub ring: Ring,
    pub slots: SendSlots<'static>,
    pub send_cq: CqRing,
    /// The connected queue pair. Not used for datagrams.
    pub peer: Responder,
}

impl Connection {
    /// That of the queue pair `me`, in this entry; `None` if its ring was corrupted.
    #[cold]
    pub fn new(engine: &'static Engine, slot: &'static QpSlot, me: Identity) -> Option<Self> {
        let (peer, kind) = (engine.peer_of(me.number()), slot.qp_type());
        Some(Self {
            me,
            kind,
            local_keys: KeyUser::local(sync::load(&slot.pd)),
            ring: Ring::of(engine.shm, &slot.send_ring)?,
            slots: Ring::send_slots(engine.shm, &slot.send_ring)?,
            send_cq: CqRing::new(engine.completions, slot.send_cq()),
            peer: Responder::new(engine, peer, me.number(), kind),
        })
    }
}

#[cfg(test)]
mod tests;
