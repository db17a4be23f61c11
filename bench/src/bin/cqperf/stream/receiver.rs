//! The end that receives and checks.

use std::slice;

use bench::transport::Transport;
use cq_core::transport::Post;
use cq_core::wr::RecvWr;

use super::grants::Grants;
use crate::control::Failure;
use crate::shape::{CREDITS, Shape};
use crate::side::{Side, received};
use crate::stats::Latencies;

/// Receives and checks `iters` messages. What is recorded is the time from when the sender began to write a
/// message's batch to the poll that found the message; too short ones don't tell.
pub fn receive<T: Transport>(
    side: &mut Side<'_, T>,
    shape: Shape,
    iters: u64,
    latencies: &mut Latencies,
) -> Result<(), Failure> {
    let sges = side.slots.sges();
    let requests = sges.iter().map(|sge| RecvWr::new(0, slice::from_ref(sge))).collect();
    let mut receiver =
        Receiver { requests, shape, posted: 0, arrived: 0, grants: Grants::default() };
    receiver.post(side)?;
    let control = side.completions.control();
    control.meet()?;
    while receiver.arrived < iters && receiver.complete(side, latencies)? {
        control.advance(receiver.arrived);
        receiver.post(side)?;
        receiver.grant(side)?;
    }
    Ok(())
}

struct Receiver<'r> {
    /// The receive of each slot.
    requests: Vec<RecvWr<'r>>,
    shape: Shape,
    /// Receives posted.
    posted: u64,
    /// Messages received.
    arrived: u64,
    grants: Grants,
}

impl Receiver<'_> {
    /// Posts receives, a batch at a time, into the slots that are free. A batch does not wrap, for there are
    /// whole batches of slots.
    fn post<T: Transport>(&mut self, side: &mut Side<'_, T>) -> Result<(), Failure> {
        let Shape { batch, depth, .. } = self.shape;
        while self.posted + u64::from(batch) <= self.arrived + u64::from(depth) {
            let first = side.slots.turn(self.posted) as usize;
            let requests = &mut self.requests[first..][..batch as usize];
            for request in requests.iter_mut() {
                request.wr_id = self.posted;
                self.posted += 1;
            }
            side.pair.post_recv(requests)?;
        }
        Ok(())
    }

    /// Tells the sender of receives that were posted again.
    fn grant<T: Transport>(&mut self, side: &mut Side<'_, T>) -> Result<(), Failure> {
        let due = self.posted / self.shape.credit() - u64::from(CREDITS);
        self.grants.grant(side, due)
    }

    /// Takes and checks what has come; false means: leave.
    fn complete<T: Transport>(
        &mut self,
        side: &mut Side<'_, T>,
        latencies: &mut Latencies,
    ) -> Result<bool, Failure> {
        let control = side.completions.control();
        let batch = side.completions.next()?;
        let now = control.now();
        for wc in batch {
            let done = wc.result()?;
            if done.is_recv() {
                received(&done, self.arrived, side.slots.size())?;
                let stamp = side.slots.check(side.slots.turn(self.arrived), self.arrived)?;
                stamp.into_iter().for_each(|stamp| latencies.record(now.saturating_sub(stamp)));
                self.arrived += 1;
            } else {
                self.grants.complete(&done)?;
            }
        }
        Ok(!batch.is_empty())
    }
}
