//! The ping-pong of SENDs: the server sends each message back from where it arrived.

use bench::Failure;
use bench::transport::Transport;
use cq_core::transport::Post;
use cq_core::wr::{RecvWr, SendWr};

use super::{OUT, REPLIES, message_slot, reply_slot};
use crate::job::DEPTH;
use crate::side::{Side, done, in_turn, received};

/// Sends messages and takes them back. What is recorded is half of each round trip.
pub fn client<T: Transport>(side: &mut Side<'_, T>) -> Result<(), Failure> {
    for number in 0..REPLIES {
        expect_reply(side, number)?;
    }
    side.control.meet()?;
    for number in 0..side.job.iters.get() {
        side.slots.fill(OUT, number, 0);
        let Some(took) = round_trip(side, number)? else {
            break;
        };
        side.slots.check(reply_slot(number), number)?;
        expect_reply(side, number + REPLIES)?;
        side.latencies.record(took / 2);
        side.control.advance(number + 1);
    }
    Ok(())
}

fn expect_reply<T: Transport>(side: &mut Side<'_, T>, number: u64) -> Result<(), Failure> {
    let sge = side.slots.sge(reply_slot(number));
    Ok(side.pair.post_recv(&[RecvWr::new(number, &[sge])])?)
}

/// How many nanoseconds from posting the message to finding the reply; `None` means: leave.
fn round_trip<T: Transport>(side: &mut Side<'_, T>, number: u64) -> Result<Option<u64>, Failure> {
    let Side { pair, slots, completions, control, .. } = side;
    let started = control.now();
    pair.post_send(&[SendWr::send(number, &[slots.sge(OUT)])])?;
    let (mut sent, mut took) = (false, None);
    while !sent || took.is_none() {
        let batch = completions.next()?;
        if batch.is_empty() {
            return Ok(None);
        }
        for wc in batch {
            let done = done(wc)?;
            if done.is_recv() {
                took = Some(control.now() - started);
                received(&done, number, slots.size())?;
            } else {
                in_turn(&done, number)?;
                sent = true;
            }
        }
    }
    Ok(took)
}

/// Sends the messages back.
pub fn server<T: Transport>(side: &mut Side<'_, T>) -> Result<(), Failure> {
    let Side { pair, slots, completions, .. } = side;
    for number in 0..DEPTH.into() {
        pair.post_recv(&[RecvWr::new(number, &[slots.sge(message_slot(number))])])?;
    }
    side.control.meet()?;
    let (mut arrived, mut returned) = (0, 0);
    while returned < side.job.iters.get() {
        let batch = completions.next()?;
        if batch.is_empty() {
            break;
        }
        for wc in batch {
            let done = done(wc)?;
            if done.is_recv() {
                let slot = message_slot(arrived);
                received(&done, arrived, slots.size())?;
                pair.post_send(&[SendWr::send(arrived, &[slots.sge(slot)])])?;
                slots.check(slot, arrived)?;
                arrived += 1;
            } else {
                in_turn(&done, returned)?;
                let next = returned + u64::from(DEPTH);
                pair.post_recv(&[RecvWr::new(next, &[slots.sge(message_slot(next))])])?;
                returned += 1;
            }
        }
    }
    Ok(())
}
