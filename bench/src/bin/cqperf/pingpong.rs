//! The ping-pong: the client sends or writes a message, the server sends or writes one back, and the client takes the time
//! of the round trip. Messages are written and checked outside that time.
//!
//! A SEND goes back from where it arrived. A WRITE is found by its last byte, which each end looks at until it is there;
//! the server has its answer ready before.

use bench::Failure;
use bench::transport::Transport;
use cq_core::transport::Post;
use cq_core::wc::Wc;
use cq_core::wr::{RecvWr, SendWr};

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

fn exchange<T: Transport>(side: &mut Side<'_, T>, begins: bool) -> Result<(), Failure> {
    // All less than the depth.
    let reply_slot = |number: u64| 1 + (number % u64::from(REPLIES)) as u32;
    let message_slot = |number: u64| (number % u64::from(DEPTH)) as u32;
    let writes = side.job.op == Op::Write;
    let arrives_at = |number| if begins { reply_slot(number) } else { message_slot(number) };
    let goes = |number| match (begins, writes) {
        (true, _) => [OUT, message_slot(number)],
        (false, true) => [ANSWER, reply_slot(number)],
        (false, false) => [message_slot(number); 2],
    };
    let ahead = u64::from(if begins { REPLIES } else { DEPTH });
    for number in (0..ahead).filter(|_| !writes) {
        expect(side, number, arrives_at(number))?;
    }
    side.control.meet()?;
    let mut seen = Seen::default();
    for number in 0..side.job.iters.get() {
        if begins || writes {
            let [from, _] = goes(number);
            side.slots.fill(from, number, 0);
        }
        let started = side.control.now();
        if begins {
            send(side, number, goes(number))?;
        }
        let slot = arrives_at(number);
        let has_arrived = match writes {
            true => seen.find(side, number, slot, begins)?,
            false => seen.wait(side, |seen| seen.received > number)?,
        };
        if !has_arrived {
            break;
        }
        let took = side.control.now() - started;
        if !begins {
            send(side, number, goes(number))?;
        }
        if writes {
            side.slots.check_marked(slot, number)?;
        } else {
            side.slots.check(slot, number)?;
        }
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

    /// Waits for the mark of a message, and takes the completion of the WRITE that was `posted`, if it comes before;
    /// false means: leave.
    fn find<T: Transport>(
        &mut self,
        side: &mut Side<'_, T>,
        number: u64,
        slot: u32,
        posted: bool,
    ) -> Result<bool, Failure> {
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
