//! The end of a stream that receives and checks, while the other one sends or writes as fast as it can.
//!
//! Flow control is by credits, as on any wire. The sender begins with one credit for each receive that is
//! posted; whenever the receiver has posted half of its receives again it says so by a message without
//! bytes, which gives as many credits back. So no message ever waits for a receive, and no completion queue
//! holds more than what is outstanding.

use std::slice;

use bench::Failure;
use bench::transport::Transport;
use cq_core::wc::Completed;
use cq_verbs::post::Post;
use cq_verbs::wr::{RecvWr, SendWr};

use crate::job::{CREDITS, Shape};
use crate::side::{Side, done, in_turn, received};

/// The credit messages of the end that receives.
#[derive(Debug, Default)]
struct Grants {
    sent: u64,
    completed: u64,
}

impl Grants {
    /// Sends credits until `due` were sent; no more than [`CREDITS`] are outstanding.
    fn grant<T: Transport>(&mut self, side: &mut Side<'_, T>, due: u64) -> Result<(), Failure> {
        while self.sent < due && self.sent - self.completed < CREDITS.into() {
            side.pair.post_send(&[SendWr::send(self.sent, &[])])?;
            self.sent += 1;
        }
        Ok(())
    }

    /// One has completed.
    fn complete(&mut self, done: &Completed<'_>) -> Result<(), Failure> {
        in_turn(done, self.completed)?;
        self.completed += 1;
        Ok(())
    }
}

/// Receives and checks messages. What is recorded is the time from when the sender began to write a message's batch to
/// the poll that found the message; too short ones don't tell.
pub fn receive<T: Transport>(side: &mut Side<'_, T>) -> Result<(), Failure> {
    let sges = side.slots.sges();
    let requests = sges.iter().map(|sge| RecvWr::new(0, slice::from_ref(sge))).collect();
    let shape = side.job.shape();
    let mut receiver =
        Receiver { requests, shape, posted: 0, arrived: 0, grants: Grants::default() };
    receiver.post(side)?;
    side.control.meet()?;
    while receiver.arrived < side.job.iters.get() && receiver.complete(side)? {
        side.control.advance(receiver.arrived);
        receiver.post(side)?;
        // Of receives that were posted again.
        let due = receiver.posted / shape.credit() - u64::from(CREDITS);
        receiver.grants.grant(side, due)?;
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

    /// Takes and checks what has come; false means: leave.
    fn complete<T: Transport>(&mut self, side: &mut Side<'_, T>) -> Result<bool, Failure> {
        let Side { slots, completions, control, latencies, .. } = side;
        let batch = completions.next()?;
        let now = control.now();
        for wc in batch {
            let done = done(wc)?;
            if done.is_recv() {
                received(&done, self.arrived, slots.size)?;
                let stamp = slots.check(slots.turn(self.arrived), self.arrived)?;
                stamp.into_iter().for_each(|stamp| latencies.record(now.saturating_sub(stamp)));
                self.arrived += 1;
            } else {
                self.grants.complete(&done)?;
            }
        }
        Ok(!batch.is_empty())
    }
}

/// Finds and checks messages where it polls its memory for them. What is recorded is the time from when the sender began
/// to write a message's batch to when the message was found; too short ones don't tell.
pub fn receive_writes<T: Transport>(side: &mut Side<'_, T>) -> Result<(), Failure> {
    let (mut grants, mut arrived) = (Grants::default(), 0);
    let credit = side.job.shape().credit();
    side.control.meet()?;
    while arrived < side.job.iters.get() {
        let Side { slots, completions, control, latencies, .. } = side;
        let slot = slots.turn(arrived);
        let outstanding = grants.sent > grants.completed;
        let Some(batch) = completions.watch(outstanding, || slots.marked(slot, arrived))? else {
            break;
        };
        for wc in batch {
            grants.complete(&done(wc)?)?;
        }
        if batch.is_empty() {
            let now = control.now();
            let stamp = slots.check_arrived(slot, arrived)?;
            stamp.into_iter().for_each(|stamp| latencies.record(now.saturating_sub(stamp)));
            arrived += 1;
            control.advance(arrived);
        }
        // What was checked may be written again.
        grants.grant(side, arrived / credit)?;
    }
    Ok(())
}
