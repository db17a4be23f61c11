//! The end that sends, or writes.

use std::slice;

use bench::transport::Transport;
use cq_core::transport::Post;
use cq_core::wr::{RecvWr, SendFlags, SendWr};

use crate::control::Failure;
use crate::op::Op;
use crate::sends::Sends;
use crate::shape::{CREDITS, Shape};
use crate::side::{Side, in_turn, received};

/// Sends `iters` messages, or writes them into the slots of the peer, and sees that each is done.
pub fn send<T: Transport>(
    side: &mut Side<'_, T>,
    op: Op,
    shape: Shape,
    iters: u64,
) -> Result<(), Failure> {
    let sges = side.slots.sges();
    let request = |(slot, sge)| match op {
        Op::Write => SendWr::write(0, slice::from_ref(sge), side.slots.remote(slot)),
        _ => SendWr::send(0, slice::from_ref(sge)),
    };
    let requests = (0..).zip(&sges).map(request).collect();
    let sends = Sends::new(iters, shape.depth, shape.signal_every);
    let mut sender = Sender { requests, sends, shape, credits: 0 };
    for number in 0..CREDITS.into() {
        side.pair.post_recv(&[RecvWr::new(number, &[])])?;
    }
    side.completions.control().meet()?;
    while !sender.sends.done() {
        match sender.ready() {
            0 if !sender.complete(side)? => break,
            0 => {}
            count => sender.post(side, count)?,
        }
    }
    Ok(())
}

struct Sender<'r> {
    /// The send of each slot.
    requests: Vec<SendWr<'r>>,
    sends: Sends,
    shape: Shape,
    /// Credit messages received.
    credits: u64,
}

impl Sender<'_> {
    /// How many sends to post now: a whole batch, what is left, or none.
    fn ready(&self) -> usize {
        let allowed = u64::from(self.shape.depth) + self.credits * self.shape.credit();
        let free = self.sends.free_slots().min(allowed - self.sends.posted());
        self.sends.ready(self.shape.batch, free)
    }

    /// Writes and posts the next `count` messages. They do not wrap, for there are whole batches of slots.
    fn post<T: Transport>(&mut self, side: &mut Side<'_, T>, count: usize) -> Result<(), Failure> {
        let first = side.slots.turn(self.sends.posted());
        let batch = &mut self.requests[first as usize..][..count];
        let now = side.completions.control().now();
        for (slot, request) in (first..).zip(batch.iter_mut()) {
            let (number, signaled) = self.sends.post();
            side.slots.fill(slot, number, now);
            request.wr_id = number;
            request.flags.set(SendFlags::SIGNALED, signaled);
        }
        Ok(side.pair.post_send(batch)?)
    }

    /// Takes back slots and credits; false means: leave.
    fn complete<T: Transport>(&mut self, side: &mut Side<'_, T>) -> Result<bool, Failure> {
        let batch = side.completions.next()?;
        for wc in batch {
            let done = wc.result()?;
            if done.is_recv() {
                received(&done, self.credits, 0)?;
                let next = self.credits + u64::from(CREDITS);
                side.pair.post_recv(&[RecvWr::new(next, &[])])?;
                self.credits += 1;
            } else {
                in_turn(&done, self.sends.next_completion())?;
                self.sends.retire();
            }
        }
        Ok(!batch.is_empty())
    }
}
