//! One end fetches, by READ or by atomics, as many requests at a time as its shape says; the other one only
//! has the memory. It sleeps until it is told that all is done, and then looks at what became of it.
//!
//! What is read changes from each turn of a slot to the next. An atomic counts: each one finds the number of
//! its request, and leaves the next.

use std::slice;

use bench::Failure;
use bench::transport::Transport;
use cq_core::transport::Post;
use cq_core::wr::{RecvWr, SendFlags, SendOp, SendWr};

use crate::job::Op;
use crate::payload::Slots;
use crate::sends::Sends;
use crate::side::{Side, done, in_turn, received};

/// Where atomics count, at the target.
const COUNTER: u32 = 0;

/// Fetches, and checks what came. What is recorded is the time from when a request's batch was posted to the poll that
/// found that it is done.
pub fn initiator<T: Transport>(side: &mut Side<'_, T>) -> Result<(), Failure> {
    let (sges, shape) = (side.slots.sges(), side.job.shape());
    let depth = shape.depth as usize;
    let fetch = |sge| SendWr::read(0, slice::from_ref(sge), side.slots.remote(0));
    let requests = sges[..depth].iter().map(fetch).collect();
    let sends = Sends::new(side.job.iters.get(), shape.depth, shape.signal_every);
    let mut initiator = Initiator { requests, posted: vec![0; depth], sends };
    side.control.meet()?;
    while !initiator.sends.done() {
        match initiator.sends.ready(shape.batch, initiator.sends.free_slots()) {
            0 if !initiator.complete(side)? => return Ok(()),
            0 => side.control.advance(initiator.sends.retired()),
            count => initiator.post(side, count)?,
        }
    }
    // Tells the target that all is done.
    let last = side.job.iters.get();
    side.pair.post_send(&[SendWr::send(last, &[])])?;
    side.completions.next()?.iter().try_for_each(|wc| in_turn(&done(wc)?, last))
}

struct Initiator<'r> {
    /// The request of each slot, of which there are as many as the queue is deep.
    requests: Vec<SendWr<'r>>,
    /// When it was posted.
    posted: Vec<u64>,
    sends: Sends,
}

impl Initiator<'_> {
    /// The slot that the result of a request goes to.
    const fn slot(&self, number: u64) -> u32 {
        // Less than the depth.
        (number % self.requests.len() as u64) as u32
    }

    /// The slot of the target that a request reads: the next one at each turn of the slot that it goes to.
    fn source(&self, slots: &Slots, number: u64) -> u32 {
        let depth = self.requests.len() as u64;
        slots.turn(number % depth + number / depth)
    }

    /// Posts the next `count` requests. They do not wrap, for there are whole batches of slots.
    fn post<T: Transport>(&mut self, side: &mut Side<'_, T>, count: usize) -> Result<(), Failure> {
        let first = self.slot(self.sends.posted()) as usize;
        let counter = side.slots.remote(COUNTER);
        for slot in first..first + count {
            let (number, signaled) = self.sends.post();
            let remote = side.slots.remote(self.source(&side.slots, number));
            let request = &mut self.requests[slot];
            request.wr_id = number;
            request.op = match side.job.op {
                Op::Cas => {
                    SendOp::CompareSwap { remote: counter, compare: number, swap: number + 1 }
                }
                Op::Faa => SendOp::FetchAdd { remote: counter, add: 1 },
                _ => SendOp::Read { remote },
            };
            request.flags.set(SendFlags::SIGNALED, signaled);
        }
        self.posted[first..][..count].fill(side.control.now());
        Ok(side.pair.post_send(&self.requests[first..][..count])?)
    }

    /// Takes and checks what has come; false means: leave.
    fn complete<T: Transport>(&mut self, side: &mut Side<'_, T>) -> Result<bool, Failure> {
        let Side { slots, completions, control, latencies, job, .. } = side;
        let batch = completions.next()?;
        let now = control.now();
        for wc in batch {
            in_turn(&done(wc)?, self.sends.next_completion())?;
            let first = self.sends.retired();
            self.sends.retire();
            for number in first..self.sends.retired() {
                let slot = self.slot(number);
                match job.op {
                    Op::Read => drop(slots.check(slot, self.source(slots, number).into())?),
                    _ => counted(slots.word(slot), number)?,
                }
                latencies.record(now - self.posted[slot as usize]);
            }
        }
        Ok(!batch.is_empty())
    }
}

/// Has the memory, and looks at it when all is done.
pub fn target<T: Transport>(side: &mut Side<'_, T>) -> Result<(), Failure> {
    let Side { pair, slots, completions, control, job, .. } = side;
    if job.op == Op::Read {
        (0..slots.count()).for_each(|slot| slots.fill(slot, slot.into(), 0));
    }
    pair.post_recv(&[RecvWr::new(0, &[])])?;
    control.meet()?;
    let batch = completions.idle()?;
    batch.iter().try_for_each(|wc| received(&done(wc)?, 0, 0))?;
    match job.op {
        _ if batch.is_empty() => Ok(()),
        // Reading leaves it as it was.
        Op::Read => {
            (0..slots.count()).try_for_each(|slot| slots.check(slot, slot.into()).map(drop))
        }
        _ => counted(slots.word(COUNTER), job.iters.get()),
    }
}

fn counted(found: u64, expected: u64) -> Result<(), Failure> {
    match found {
        _ if found == expected => Ok(()),
        _ => Err(format!("the counter was at {found} instead of {expected}").into()),
    }
}
