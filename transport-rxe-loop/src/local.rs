//! What a request does that concerns nobody but its own side: BIND_MW and LOCAL_INV. They need no peer, and are
//! carried out in their order with all others, whether it is there or not.
//!
//! A LOCAL_INV waits for copies through the key that it kills, as [`binding`](crate::mw) has it: so these are
//! carried out between two runs, when no window for copying is open.

use cq_core::wc::WcStatus;
use cq_core::wr::SendOp;

use crate::identity;
use crate::initiator::{Halt, Halted, Initiator};
use crate::queue::Ring;
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
mod tests {
    use cq_core::transport::{PollCq, Post};
    use cq_core::wc::Wc;
    use cq_core::wr::SendWr;

    use super::*;
    use crate::kicks::Kicks;
    use crate::open::OpenOptions;
    use crate::qp::QpInit;
    use crate::state::QpState;

    #[test]
    fn q07_what_is_not_for_this_side_alone_is_not_carried_out_here_nor_after_the_state_changed() {
        let (context, fabric) = OpenOptions::new().alone();
        let mut cq = context.create_cq(4, None).unwrap();
        let mut qp = context.alloc_pd().create_qp(&QpInit::new(&cq)).unwrap();
        qp.connect(qp.number()).unwrap();
        let (slot, turn) = (fabric.qp(qp.number()), &fabric.own(qp.number()).turn);
        turn.seize();
        qp.post_send(&[SendWr::send(1, &[])]).unwrap();
        let ring = Ring::of(fabric, &slot.send_ring).unwrap();
        let (me, mut kicks) = (identity::read(slot), Kicks::default());
        let mut initiator = Initiator::new(fabric, slot, me, &mut kicks);
        let halted = || Halted { position: 0, wr_id: 1, why: Halt::ByItself };
        let why = initiator.by_itself(&ring, halted()).map(|halted| halted.why);
        assert!(matches!(why, Some(Halt::Failed(WcStatus::MW_BIND_ERR))));
        assert!(identity::change(slot, me, QpState::Err));
        assert!(initiator.by_itself(&ring, halted()).is_none(), "it is flushed with all others");
        assert_eq!(cq.poll(&mut [Wc::default()]), Ok(0));
        turn.abandon();
    }
}
