//! Local operations: BIND_MW and LOCAL_INV. They need no peer, and are carried out in order with all other requests.
//!
//! A LOCAL_INV waits for copies through the key that it invalidates, as [`binding`] says. So both are carried out
//! between two runs, when this queue pair's copy guard is closed.

use cq_core::wc::WcStatus;
use cq_verbs::wr::SendOp;

use super::{Halt, Halted, Requester};
use crate::engine::{Engine, identity, in_flight};
use crate::memory::binding;
use crate::memory::key::Key;
use crate::protocol::number::QpNumber;
use crate::shm::table::Entry;
use crate::sync;

impl Requester<'_> {
    /// Carries out the request that ended a run, if it is a local operation. Returns what is left to do.
    #[cold]
    pub fn run_local(&mut self, halted: Halted) -> Option<Halted> {
        let Halted { position, why: Halt::LocalOp, .. } = halted else { return Some(halted) };
        if identity::read(&self.slot.identity) != self.connection.me {
            return None;
        }
        let request = self.connection.ring.read_send(position);
        let (engine, qp) = (self.engine, self.connection.me.number());
        let (memory, windows) = (engine.memory, &engine.memory.windows);
        let is_done = match request.op {
            SendOp::BindWindow(bind) => {
                windows.bind(memory, (qp, sync::load(&self.slot.pd)), &bind)
            }
            SendOp::LocalInvalidate { rkey } => invalidate_and_wait(engine, qp, Key::new(rkey)),
            _ => false,
        };
        if !is_done {
            return Some(Halted { why: Halt::Failed(WcStatus::MW_BIND_ERR), ..halted });
        }
        self.complete(&request, position);
        None
    }
}

/// Invalidates a memory window that is bound to a queue pair of this process, whose send queue is owned, and waits for
/// copies through its key; false if no such window has the key, or if the copies do not end.
pub fn invalidate_and_wait(engine: &'static Engine, qp: QpNumber, rkey: Key) -> bool {
    let (memory, windows) = (engine.memory, &engine.memory.windows);
    windows.begin_invalidate(memory, qp, rkey).is_some_and(|closing| {
        let is_over = in_flight::wait_for_peer(engine, qp).is_ok();
        closing.finish(memory) && is_over
    })
}

/// Invalidates a memory window that is bound to a queue pair, for its peer, whose send queue is owned; false if no such
/// window has the key.
pub fn invalidate(engine: &'static Engine, qp: QpNumber, rkey: Key) -> bool {
    if engine.is_mine(engine.index(qp)) {
        return engine.memory.windows.take(engine.memory, qp, rkey);
    }
    binding::take_from(engine.memory, engine.qp(qp).life().attachment(), qp, rkey)
}

#[cfg(test)]
mod tests;
