//! The ping-pong: the client sends or writes a message, the server sends or writes one back, and the client takes the time
//! of the round trip. Messages are written and checked outside that time.
//!
//! A SEND goes back from where it arrived. A WRITE is found by its last byte, which each end looks at until it is there;
//! the server has its answer ready before.

use bench::Failure;
use bench::transport::Transport;
use cq_core::wc::Wc;
use cq_verbs::post::Post;
use cq_verbs::wr::{RecvWr, SendWr};

use crate::job::{DEPTH, Op};
use crate::side::{Side, done, in_turn, received};

/// The slot that the client sends from. Replies come to the others.
const OUT: u32 = 0;
/// The slots of replies.
const REPLIES: u32 = DEPTH - 1;
/// The slot that the server answers WRITEs from; messages go to the others in turn, so that one may come while the one
/// before is checked.
const ANSWER: u32 = DEPTH;

/// Exchanges messages and checks them. What is recorded is half of each round trip.
pub fn client<T: Transport>(side: &mut Side<'_, T>) -> Result<(), Failure> {
    exchange(side, true)
}

/// Answers messages and checks them.
pub fn server<T: Transport>(side: &mut Side<'_, T>) -> Result<(), Failure> {
    exchange(side, false)
}

/// The slot that the reply to a message goes to.
const fn reply_slot(number: u64) -> u32 {
    // Less than the depth.
    1 + (number % REPLIES as u64) as u32
}

/// The slot that a message goes to.
const fn message_slot(number: u64) -> u32 {
    // Less than the depth.
    (number % DEPTH as u64) as u32
}

fn exchange<T: Transport>(side: &mut Side<'_, T>, begins: bool) -> Result<(), Failure> {
    let writes = side.job.op == Op::Write;
    let (comes_to, ahead): (fn(u64) -> u32, u64) = match begins {
        true => (reply_slot, REPLIES.into()),
        false => (message_slot, DEPTH.into()),
    };
    for number in (0..ahead).filter(|_| !writes) {
        expect(side, number, comes_to(number))?;
    }
    side.control.meet()?;
    let mut seen = Seen::default();
    for number in 0..side.job.iters.get() {
        let slot = comes_to(number);
        let way = match (begins, writes) {
            (true, _) => [OUT, message_slot(number)],
            (false, true) => [ANSWER, reply_slot(number)],
            (false, false) => [slot; 2],
        };
        if begins || writes {
            side.slots.fill(way[0], number, 0);
        }
        let started = side.control.now();
        if begins {
            send(side, number, way)?;
        }
        if !seen.arrival(side, number, slot, begins)? {
            break;
        }
        let took = side.control.now() - started;
        if !begins {
            send(side, number, way)?;
        }
        side.slots.check_arrived(slot, number)?;
        if !seen.wait(side, |seen| seen.sent > number)? {
            break;
        }
        if !writes {
            expect(side, number + ahead, slot)?;
        }
        if begins {
            side.latencies.record(took / 2);
            side.control.advance(number + 1);
        }
    }
    Ok(())
}

fn expect<T: Transport>(side: &mut Side<'_, T>, number: u64, slot: u32) -> Result<(), Failure> {
    Ok(side.pair.post_recv(&[RecvWr::new(number, &[side.slots.sge(slot)])])?)
}

fn send<T: Transport>(
    side: &mut Side<'_, T>,
    number: u64,
    [from, to]: [u32; 2],
) -> Result<(), Failure> {
    let from = [side.slots.sge(from)];
    Ok(side.pair.post_send(&[match side.job.op {
        Op::Write => SendWr::write(number, &from, side.slots.remote(to)),
        _ => SendWr::send(number, &from),
    }])?)
}

/// How many receives and sends have completed.
#[derive(Default)]
struct Seen {
    received: u64,
    sent: u64,
}

impl Seen {
    /// Waits until enough have completed; false means: leave.
    fn wait<T: Transport>(
        &mut self,
        side: &mut Side<'_, T>,
        enough: impl Fn(&Self) -> bool,
    ) -> Result<bool, Failure> {
        while !enough(self) {
            let batch = side.completions.next()?;
            if batch.is_empty() {
                return Ok(false);
            }
            self.take(batch, side.slots.size)?;
        }
        Ok(true)
    }

    /// Waits for a message: its receive, or its mark, before which the completion of the WRITE may come that was
    /// `posted`; false means: leave.
    fn arrival<T: Transport>(
        &mut self,
        side: &mut Side<'_, T>,
        number: u64,
        slot: u32,
        posted: bool,
    ) -> Result<bool, Failure> {
        if side.job.op != Op::Write {
            return self.wait(side, |seen| seen.received > number);
        }
        let Side { slots, completions, .. } = side;
        let is_there = || slots.marked(slot, number);
        while let Some(batch) = completions.watch(posted && self.sent <= number, is_there)? {
            if batch.is_empty() {
                return Ok(true);
            }
            self.take(batch, slots.size)?;
        }
        Ok(false)
    }

    fn take(&mut self, batch: &[Wc], size: u32) -> Result<(), Failure> {
        for wc in batch {
            let done = done(wc)?;
            if done.is_recv() {
                received(&done, self.received, size)?;
                self.received += 1;
            } else {
                in_turn(&done, self.sent)?;
                self.sent += 1;
            }
        }
        Ok(())
    }
}
