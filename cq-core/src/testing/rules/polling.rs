//! The rules of polling.

use super::{Broken, Fixture, Kind, holds, poll};
use crate::transport::PollCq;
use crate::wc::{Wc, WcStatus};

/// How much is polled at once, at the most.
const MOST: usize = 16;
/// How often the ring goes round, at the least.
const ROUNDS: usize = 5;

/// Completes so many, numbered from `next` on.
fn complete<F: Fixture>(fixture: &mut F, next: &mut u64, count: usize) {
    for _ in 0..count {
        fixture.complete(Kind::Receive, *next);
        *next += 1;
    }
}

/// The oldest come first, as many as there is room for, over several rounds of the ring.
///
/// # Errors
/// They come in another order, more or less than once, or changed.
pub fn p01_order<F: Fixture>(fixture: &mut F) -> Result<(), Broken> {
    let (mut next, mut expected) = (1, 1);
    let mut out = [Wc::default(); MOST];
    for round in 0..ROUNDS * F::CAPACITY {
        complete(fixture, &mut next, 1 + round % F::CAPACITY);
        while expected < next {
            let most = 1 + (round + expected as usize) % MOST;
            let count = poll(fixture, &mut out[..most])?;
            let wanted = most.min((next - expected) as usize);
            holds(
                count >= wanted,
                "P1",
                "a poll took fewer completions than there were, and had room for",
            )?;
            for wc in &out[..count] {
                let is_next = wc.wr_id() == expected;
                holds(is_next, "P1", "completions came in another order, or not exactly once")?;
                holds(*wc == Kind::Receive.wc(expected), "P1", "a completion was changed")?;
                expected += 1;
            }
        }
    }
    Ok(())
}

/// What was polled does not come again; fewer than there was room for means that the queue was empty.
///
/// # Errors
/// It does, or there was more.
pub fn p02_polled_is_gone<F: Fixture>(fixture: &mut F) -> Result<(), Broken> {
    let (mut next, mut out) = (1, [Wc::default(); MOST]);
    for count in 1..F::CAPACITY.min(MOST) {
        complete(fixture, &mut next, count);
        let polled = poll(fixture, &mut out[..count + 1])?;
        holds(polled == count, "P2", "a poll with room to spare left something in the queue")?;
        let again = poll(fixture, &mut out)?;
        holds(again == 0, "P2", "what was polled came again")?;
    }
    Ok(())
}

/// An empty queue is no error.
///
/// # Errors
/// It is one, or something came that nobody completed.
pub fn p03_empty_is_no_error<F: Fixture>(fixture: &mut F) -> Result<(), Broken> {
    let mut out = [Wc::default(); 2];
    for _ in 0..2 {
        let count = poll(fixture, &mut out)?;
        holds(count == 0, "P3", "a completion came that nobody had completed")?;
    }
    Ok(())
}

/// Entries past the count stay as they are.
///
/// # Errors
/// They do not.
pub fn p04_the_rest_stays<F: Fixture>(fixture: &mut F) -> Result<(), Broken> {
    let mark = Wc::poisoned(u64::MAX, WcStatus::FATAL_ERR, u32::MAX);
    for count in 0..2 {
        (0..count).for_each(|wr_id| fixture.complete(Kind::Send, wr_id));
        let mut out = [mark; MOST];
        let polled = poll(fixture, &mut out)?;
        let stay = out[polled..].iter().all(|wc| *wc == mark);
        holds(stay, "P4", "a poll wrote to entries past those that it returned")?;
    }
    Ok(())
}

/// A poll comes back, whatever there is.
///
/// # Errors
/// It fails.
pub fn p05_returns<F: Fixture>(fixture: &mut F) -> Result<(), Broken> {
    let mut out = [Wc::default(); 1];
    fixture.complete(Kind::Send, 1);
    for _ in 0..1000 {
        poll(fixture, &mut out)?;
    }
    Ok(())
}

/// Room for nothing returns nothing, and takes nothing.
///
/// # Errors
/// It does, or is an error.
pub fn p06_room_for_nothing<F: Fixture>(fixture: &mut F) -> Result<(), Broken> {
    for count in 0..2 {
        (0..count).for_each(|wr_id| fixture.complete(Kind::Send, wr_id));
        let polled = fixture.queue().poll(&mut []);
        holds(
            polled == Ok(0),
            "P6",
            "a poll with room for nothing returned something else than 0",
        )?;
    }
    let count = poll(fixture, &mut [Wc::default(); 2])?;
    holds(count == 1, "P6", "a poll with room for nothing took something")
}

/// No poll claims more than it was asked for.
///
/// # Errors
/// One does.
pub fn p07_no_more_than_asked<F: Fixture>(fixture: &mut F) -> Result<(), Broken> {
    let mut next = 1;
    complete(fixture, &mut next, F::CAPACITY);
    let mut out = [Wc::default(); MOST];
    for asked in [1, 0, 2, 1] {
        poll(fixture, &mut out[..asked])?;
    }
    Ok(())
}
