//! The ping-pong of WRITEs: each end writes into memory of the other one, which looks at the last byte of
//! where the message goes until it is there. The server has its answer ready before.

use bench::Failure;
use bench::transport::Transport;
use cq_core::transport::Post;
use cq_core::wr::SendWr;

use super::{OUT, message_slot, reply_slot};
use crate::job::DEPTH;
use crate::side::{Side, done, in_turn};

/// The slot that the server answers from; messages go to the others in message_slot, so that one may come while the
/// one before is checked.
const ANSWER: u32 = DEPTH;

/// Writes and awaits messages. What is recorded is half of each round trip.
pub fn client<T: Transport>(side: &mut Side<'_, T>) -> Result<(), Failure> {
    side.control.meet()?;
    for number in 0..side.job.iters.get() {
        side.slots.fill(OUT, number, 0);
        let started = side.control.now();
        write(side, number, [OUT, message_slot(number)])?;
        let Some(sent) = arrival(side, number, reply_slot(0), false)? else {
            break;
        };
        side.latencies.record((side.control.now() - started) / 2);
        side.slots.check_marked(reply_slot(0), number)?;
        if !sent && !completion(side, number)? {
            break;
        }
        side.control.advance(number + 1);
    }
    Ok(())
}

/// Awaits messages, and answers each.
pub fn server<T: Transport>(side: &mut Side<'_, T>) -> Result<(), Failure> {
    side.control.meet()?;
    for number in 0..side.job.iters.get() {
        side.slots.fill(ANSWER, number, 0);
        if arrival(side, number, message_slot(number), true)?.is_none() {
            break;
        }
        write(side, number, [ANSWER, reply_slot(0)])?;
        side.slots.check_marked(message_slot(number), number)?;
        if !completion(side, number)? {
            break;
        }
    }
    Ok(())
}

fn write<T: Transport>(
    side: &mut Side<'_, T>,
    number: u64,
    [from, to]: [u32; 2],
) -> Result<(), Failure> {
    let Side { pair, slots, .. } = side;
    Ok(pair.post_send(&[SendWr::write(number, &[slots.sge(from)], slots.remote(to))])?)
}

/// Waits for the mark of a message: whether the WRITE that was posted has `sent` its own by then. `None`
/// means: leave.
fn arrival<T: Transport>(
    side: &mut Side<'_, T>,
    number: u64,
    slot: u32,
    mut sent: bool,
) -> Result<Option<bool>, Failure> {
    let Side { slots, completions, .. } = side;
    while let Some(batch) = completions.watch(!sent, || slots.marked(slot, number))? {
        if batch.is_empty() {
            return Ok(Some(sent));
        }
        for wc in batch {
            in_turn(&done(wc)?, number)?;
            sent = true;
        }
    }
    Ok(None)
}

/// Waits until the WRITE that was posted is done; false means: leave.
fn completion<T: Transport>(side: &mut Side<'_, T>, number: u64) -> Result<bool, Failure> {
    let batch = side.completions.next()?;
    for wc in batch {
        in_turn(&done(wc)?, number)?;
    }
    Ok(!batch.is_empty())
}
