//! Faults that can be planted only inside the model, for negative controls: [`broken`](crate::broken).

use cq_core::wc::{Wc, WcStatus};
use cq_verbs::post::PostError;
use cq_verbs::wr::{SendOp, SendWr};

use super::ModelQp;
use crate::device::QpState;

impl ModelQp {
    /// As if what the shared receive queue holds were this queue pair's own: in ERR it is flushed.
    pub fn flush_shared_receives(&self) {
        self.with(|world, number| {
            let qp = &world.qps[&number];
            let Some(srq) = qp.srq.filter(|_| qp.state == QpState::ERR) else {
                return;
            };
            let receives = world.srqs.get_mut(&srq).expect("it is in use").receives.split_off(0);
            for receive in receives {
                let wc = Wc::new(receive.wr_id, WcStatus::WR_FLUSH_ERR, number);
                world.receive_done(number, wc, false);
            }
        });
    }

    /// As if what these requests bind were not bound, if it is bound to this queue pair.
    pub fn unbind_what_is_bound_by(&self, list: &[SendWr<'_>]) {
        self.with(|world, number| {
            for wr in list {
                if let SendOp::BindWindow(bind) = wr.op {
                    world.invalidate(number, bind.window);
                }
            }
        });
    }

    /// Does something, and has the keys that it invalidated be good again.
    pub fn keeping_keys(
        &mut self,
        act: impl FnOnce(&mut Self) -> Result<(), PostError>,
    ) -> Result<(), PostError> {
        let before: Vec<_> = self.with(|world, _| {
            world.windows.iter().map(|(id, window)| (*id, window.rkey, window.bound)).collect()
        });
        let result = act(self);
        self.with(|world, _| {
            for (id, rkey, bound) in before {
                let window = world.windows.get_mut(&id).expect("posting frees no window");
                let open = bound.filter(|bound| world.regions.contains_key(&bound.region));
                if window.rkey == rkey && window.bound.is_none() {
                    window.bound = open;
                }
            }
        });
        result
    }
}
