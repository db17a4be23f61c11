//! What a request does that concerns nobody but its own side: BIND_MW and LOCAL_INV. They need no peer, and are
//! carried out in their order with all others, whether it is there or not.
//!
//! A LOCAL_INV waits for copies through the key that it kills, as [`binding`](crate::api::mw) has it: so these are
//! carried out between two runs, when no window for copying is open.

use cq_core::wc::WcStatus;
use cq_core::wr::SendOp;

use crate::engine::identity;
use crate::engine::requester::{Halt, Halted, Initiator};
use crate::engine::ring::Ring;
use crate::sync;

impl Initiator<'_> {
    /// Carries out the request that ended a run, if it is one for this side alone. What has still halted is
    /// said.
    #[cold]
    pub fn by_itself(&mut self, ring: &Ring, halted: Halted) -> Option<Halted> {
        let Halted { position, why: Halt::ByItself, .. } = halted else { return Some(halted) };
        if identity::read(self.slot) != self.me {
            return None;
        }
        let request = ring.read_send(position);
        let (qp, windows) = (self.me.number, self.fabric.reach().windows());
        let is_done = match request.op {
            SendOp::BindWindow(bind) => {
                let domain = sync::load(&self.slot.pd);
                windows.bind(self.fabric, (qp, domain), &bind)
            }
            SendOp::LocalInvalidate { rkey } => windows
                .begin_invalidate(self.fabric, qp, rkey)
                .is_some_and(|closing| closing.finish(self.fabric)),
            _ => false,
        };
        if !is_done {
            return Some(Halted { why: Halt::Failed(WcStatus::MW_BIND_ERR), ..halted });
        }
        self.complete(&request, position);
        None
    }
}

#[cfg(test)]
mod tests;
