//! One end fetches, by READ or by atomics, as many requests at a time as its shape says; the other one only
//! has the memory. It sleeps until it is told that all is done, and then looks at what became of it.
//!
//! What is read changes from each turn of a slot to the next. An atomic counts: each one finds the number of
//! its request, and leaves the next.

use std::slice;

use bench::transport::Transport;
use cq_core::transport::Post;
use cq_core::wr::{RecvWr, SendFlags, SendOp, SendWr};

use crate::control::Failure;
use crate::op::Op;
use crate::sends::Sends;
use crate::shape::Shape;
use crate::side::{Side, in_turn, received};
use crate::stats::Latencies;

/// Where atomics count, at the target.
const COUNTER: u32 = 0;

/// Fetches `iters` times, and checks what came. What is recorded is the time from when a request's batch was
/// posted to the poll that found that it is done.
pub fn initiator<T: Transport>(
    side: &mut Side<'_, T>,
    (op, shape): (Op, Shape),
    iters: u64,
    latencies: &mut Latencies,
) -> Result<(), Failure> {
    let depth = shape.depth as usize;
    let sges = side.slots.sges();
    let fetches = Fetches { op, depth: shape.depth.into(), sources: side.slots.count().into() };
    let requests = sges[..depth]
        .iter()
        .map(|sge| SendWr::read(0, slice::from_ref(sge), side.slots.remote(0)))
        .collect();
    let sends = Sends::new(iters, shape.depth, shape.signal_every);
    let mut initiator = Initiator { requests, posted: vec![0; depth], fetches, sends };
    let control = side.completions.control();
    control.meet()?;
    while !initiator.sends.done() {
        match initiator.sends.ready(shape.batch, initiator.sends.free_slots()) {
            0 if !initiator.complete(side, latencies)? => return Ok(()),
            0 => control.advance(initiator.sends.retired()),
            count => initiator.post(side, count)?,
        }
    }
    farewell(side, iters)
}

/// Which memory each request is about.
#[derive(Clone, Copy)]
struct Fetches {
    op: Op,
    /// Slots that results go to, in turn.
    depth: u64,
    /// Slots of the target.
    sources: u64,
}

impl Fetches {
    /// The slot that the result of a request goes to.
    const fn slot(&self, number: u64) -> u32 {
        // Less than the depth.
        (number % self.depth) as u32
    }

    /// The slot of the target that a request reads: the next one at each turn of the slot that it goes to.
    const fn source(&self, number: u64) -> u32 {
        // Less than there are.
        ((number % self.depth + number / self.depth) % self.sources) as u32
    }
}

struct Initiator<'r> {
    /// The request of each slot.
    requests: Vec<SendWr<'r>>,
    /// When it was posted.
    posted: Vec<u64>,
    fetches: Fetches,
    sends: Sends,
}

impl Initiator<'_> {
    /// Posts the next `count` requests. They do not wrap, for there are whole batches of slots.
    fn post<T: Transport>(&mut self, side: &mut Side<'_, T>, count: usize) -> Result<(), Failure> {
        let first = self.fetches.slot(self.sends.posted()) as usize;
        let batch = &mut self.requests[first..][..count];
        for request in batch.iter_mut() {
            let (number, signaled) = self.sends.post();
            let remote = match self.fetches.op {
                Op::Read => side.slots.remote(self.fetches.source(number)),
                _ => side.slots.remote(COUNTER),
            };
            request.wr_id = number;
            request.op = match self.fetches.op {
                Op::Cas => SendOp::CompareSwap { remote, compare: number, swap: number + 1 },
                Op::Faa => SendOp::FetchAdd { remote, add: 1 },
                _ => SendOp::Read { remote },
            };
            request.flags.set(SendFlags::SIGNALED, signaled);
        }
        self.posted[first..][..count].fill(side.completions.control().now());
        Ok(side.pair.post_send(batch)?)
    }

    /// Takes and checks what has come; false means: leave.
    fn complete<T: Transport>(
        &mut self,
        side: &mut Side<'_, T>,
        latencies: &mut Latencies,
    ) -> Result<bool, Failure> {
        let Side { slots, completions, .. } = side;
        let control = completions.control();
        let batch = completions.next()?;
        let now = control.now();
        for wc in batch {
            in_turn(&wc.result()?, self.sends.next_completion())?;
            let first = self.sends.retired();
            self.sends.retire();
            for number in first..self.sends.retired() {
                let slot = self.fetches.slot(number);
                match self.fetches.op {
                    Op::Read => {
                        slots.check(slot, self.fetches.source(number).into())?;
                    }
                    _ => counted(slots.word(slot), number)?,
                }
                latencies.record(now - self.posted[slot as usize]);
            }
        }
        Ok(!batch.is_empty())
    }
}

/// Tells the target that all is done.
fn farewell<T: Transport>(side: &mut Side<'_, T>, iters: u64) -> Result<(), Failure> {
    side.pair.post_send(&[SendWr::send(iters, &[])])?;
    for wc in side.completions.next()? {
        in_turn(&wc.result()?, iters)?;
    }
    Ok(())
}

/// Has the memory, and looks at it when all is done.
pub fn target<T: Transport>(side: &mut Side<'_, T>, op: Op, iters: u64) -> Result<(), Failure> {
    let Side { pair, slots, completions } = side;
    if op == Op::Read {
        (0..slots.count()).for_each(|slot| slots.fill(slot, slot.into(), 0));
    }
    pair.post_recv(&[RecvWr::new(0, &[])])?;
    completions.control().meet()?;
    let batch = completions.idle()?;
    for wc in batch {
        received(&wc.result()?, 0, 0)?;
    }
    match op {
        _ if batch.is_empty() => Ok(()),
        // Reading leaves it as it was.
        Op::Read => {
            (0..slots.count()).try_for_each(|slot| Ok(slots.check(slot, slot.into()).map(drop)?))
        }
        _ => counted(slots.word(COUNTER), iters),
    }
}

fn counted(found: u64, expected: u64) -> Result<(), Failure> {
    match found {
        _ if found == expected => Ok(()),
        _ => Err(Failure::Count { found, expected }),
    }
}
