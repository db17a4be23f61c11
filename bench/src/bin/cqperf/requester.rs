//! The end that posts requests, as many at a time as its shape says: it sends or writes the messages of a stream, or it
//! fetches, by READ or by atomics, from an end that only has the memory.
//!
//! What is read changes from each turn of a slot to the next. An atomic counts: each one finds the number of
//! its request, and leaves the next.

use std::slice;

use bench::Failure;
use bench::transport::Transport;
use cq_verbs::post::Post;
use cq_verbs::wr::{RecvWr, SendFlags, SendOp, SendWr};

use crate::job::{CREDITS, Op, Shape};
use crate::payload::Slots;
use crate::sends::Sends;
use crate::side::{Side, done, in_turn, received};

/// Where atomics count, at the target.
const COUNTER: u32 = 0;

/// Posts all requests, and sees that each is done. Of those that fetch, it checks what came, and records the time from when
/// a request's batch was posted to the poll that found that it is done.
pub fn request<T: Transport>(side: &mut Side<'_, T>) -> Result<(), Failure> {
    let (sges, shape) = (side.slots.sges(), side.job.shape());
    let (depth, iters) = (shape.depth as usize, side.job.iters.get());
    let requests = sges[..depth].iter().map(|sge| SendWr::send(0, slice::from_ref(sge))).collect();
    let sends = Sends::new(iters, shape.depth, shape.signal_every);
    let mut requester = Requester { requests, posted: vec![0; depth], sends, shape, credits: 0 };
    let fetches = side.job.op.fetches();
    for number in (0..CREDITS.into()).filter(|_| !fetches) {
        side.pair.post_recv(&[RecvWr::new(number, &[])])?;
    }
    side.control.meet()?;
    while !requester.sends.done() {
        match requester.ready(fetches) {
            0 if !requester.complete(side)? => return Ok(()),
            0 if fetches => side.control.advance(requester.sends.retired),
            0 => {}
            count => requester.post(side, count)?,
        }
    }
    if fetches {
        // Tells the target that all is done.
        side.pair.post_send(&[SendWr::send(iters, &[])])?;
        side.completions.next()?.iter().try_for_each(|wc| in_turn(&done(wc)?, iters))?;
    }
    Ok(())
}

struct Requester<'r> {
    /// The request of each slot, of which there are as many as the queue is deep.
    requests: Vec<SendWr<'r>>,
    /// When it was posted.
    posted: Vec<u64>,
    sends: Sends,
    shape: Shape,
    /// Credit messages received.
    credits: u64,
}

impl Requester<'_> {
    /// How many to post now: a whole batch, what is left, or none. Fetching needs no credit.
    fn ready(&self, fetches: bool) -> usize {
        let free = self.sends.free_slots();
        let allowed = u64::from(self.shape.depth) + self.credits * self.shape.credit();
        let free = if fetches { free } else { free.min(allowed - self.sends.posted) };
        self.sends.ready(self.shape.batch, free)
    }

    /// The slot of this end that a request is about.
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
        let Side { job, control, slots, pair, .. } = side;
        let first = self.slot(self.sends.posted);
        let now = control.now();
        for slot in first..first + count as u32 {
            let (number, signaled) = self.sends.post();
            let remote = slots.remote(match job.op {
                Op::Send | Op::Write => slot,
                Op::Read => self.source(slots, number),
                Op::Cas | Op::Faa => COUNTER,
            });
            let op = match job.op {
                Op::Send => SendOp::Send { imm: None },
                Op::Write => SendOp::Write { remote, imm: None },
                Op::Read => SendOp::Read { remote },
                Op::Cas => SendOp::CompareSwap { remote, compare: number, swap: number + 1 },
                Op::Faa => SendOp::FetchAdd { remote, add: 1 },
            };
            if !job.op.fetches() {
                slots.fill(slot, number, now);
            }
            let request = &mut self.requests[slot as usize];
            request.op = op;
            request.wr_id = number;
            request.flags.set(SendFlags::SIGNALED, signaled);
        }
        let first = first as usize;
        self.posted[first..][..count].fill(now);
        Ok(pair.post_send(&self.requests[first..][..count])?)
    }

    /// Takes back slots and credits, and checks what was fetched; false means: leave.
    fn complete<T: Transport>(&mut self, side: &mut Side<'_, T>) -> Result<bool, Failure> {
        let Side { job, control, slots, pair, completions, latencies } = side;
        let batch = completions.next()?;
        let now = control.now();
        for wc in batch {
            let done = done(wc)?;
            if done.is_recv() {
                received(&done, self.credits, 0)?;
                let next = self.credits + u64::from(CREDITS);
                pair.post_recv(&[RecvWr::new(next, &[])])?;
                self.credits += 1;
                continue;
            }
            in_turn(&done, self.sends.to_complete)?;
            let first = self.sends.retired;
            self.sends.retire();
            for number in (first..self.sends.retired).filter(|_| job.op.fetches()) {
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

/// Has the memory that is fetched from. It sleeps until it is told that all is done, and then looks at what became of it.
pub fn target<T: Transport>(side: &mut Side<'_, T>) -> Result<(), Failure> {
    let Side { pair, slots, completions, control, job, .. } = side;
    if job.op == Op::Read {
        (0..slots.count).for_each(|slot| slots.fill(slot, slot.into(), 0));
    }
    pair.post_recv(&[RecvWr::new(0, &[])])?;
    control.meet()?;
    let batch = completions.idle()?;
    batch.iter().try_for_each(|wc| received(&done(wc)?, 0, 0))?;
    match job.op {
        _ if batch.is_empty() => Ok(()),
        // Reading leaves it as it was.
        Op::Read => (0..slots.count).try_for_each(|slot| slots.check(slot, slot.into()).map(drop)),
        _ => counted(slots.word(COUNTER), job.iters.get()),
    }
}

fn counted(found: u64, expected: u64) -> Result<(), Failure> {
    match found {
        _ if found == expected => Ok(()),
        _ => Err(format!("the counter was at {found} instead of {expected}").into()),
    }
}
