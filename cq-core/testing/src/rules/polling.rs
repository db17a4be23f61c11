//! The rules of polling.

use cq_core::transport::PollCq;

use super::{Broken, EntryOf, Fixture, Kind, Numbered, buffer, holds, poll};

/// The length of the largest buffer.
const MOST: usize = 64;
/// How many times as many batches as the queue holds, or as the largest buffer holds.
const ROUNDS: usize = 5;

/// Completes `count` receives, numbered from `next` on.
fn complete<F: Fixture>(fixture: &mut F, next: &mut u64, count: usize) {
    for _ in 0..count {
        fixture.complete(Kind::Receive, *next);
        *next += 1;
    }
}

/// A poll returns the oldest completions, as many as the buffer holds. Checked with batches of all sizes up to the
/// capacity, and buffers of up to 64.
///
/// # Errors
/// Completions are missing, reordered, duplicated or changed.
pub fn p01_order<F: Fixture>(fixture: &mut F) -> Result<(), Broken> {
    let (mut next, mut expected) = (1, 1);
    let mut out = buffer::<_, MOST>();
    // A large queue gets batches of some sizes only.
    let step = F::CAPACITY.div_ceil(MOST);
    for round in 0..ROUNDS * F::CAPACITY.min(MOST) {
        complete(fixture, &mut next, 1 + round * step % F::CAPACITY);
        while expected < next {
            let most = 1 + (round + expected as usize) % MOST;
            let count = poll(fixture.queue(), &mut out[..most])?;
            let wanted = most.min((next - expected) as usize);
            let how = "a poll took fewer completions than there were and the slice holds";
            holds(count >= wanted, "P1", how)?;
            for entry in &out[..count] {
                let is_next = entry.number() == expected;
                holds(is_next, "P1", "completions came in another order, or not exactly once")?;
                let is_whole = *entry == fixture.expected(Kind::Receive, expected);
                holds(is_whole, "P1", "a completion was changed")?;
                expected += 1;
            }
        }
    }
    Ok(())
}

/// A polled completion does not come again. A poll that does not fill the buffer leaves the queue empty.
///
/// # Errors
/// A completion comes again, or is left in the queue.
pub fn p02_polled_is_gone<F: Fixture>(fixture: &mut F) -> Result<(), Broken> {
    let (mut next, mut out) = (1, buffer::<_, MOST>());
    for count in 1..F::CAPACITY.min(MOST) {
        complete(fixture, &mut next, count);
        let polled = poll(fixture.queue(), &mut out[..count + 1])?;
        holds(
            polled == count,
            "P2",
            "a poll that did not fill its slice left something in the queue",
        )?;
        let again = poll(fixture.queue(), &mut out)?;
        holds(again == 0, "P2", "what was polled came again")?;
    }
    Ok(())
}

/// An empty queue is not an error.
///
/// # Errors
/// A poll of an empty queue fails, or returns a completion.
pub fn p03_empty_is_no_error<F: Fixture>(fixture: &mut F) -> Result<(), Broken> {
    let mut out = buffer::<_, 2>();
    for _ in 0..2 {
        let count = poll(fixture.queue(), &mut out)?;
        holds(count == 0, "P3", "a completion came that nobody had completed")?;
    }
    Ok(())
}

/// Entries of the buffer past the count stay unchanged.
///
/// # Errors
/// A poll writes to them.
pub fn p04_the_rest_stays<F: Fixture>(fixture: &mut F) -> Result<(), Broken> {
    let mark = EntryOf::<F>::polled(Kind::Failure, u64::MAX);
    for count in 0..2 {
        (0..count).for_each(|number| fixture.complete(Kind::Send, number));
        let mut out = [mark; MOST];
        let polled = poll(fixture.queue(), &mut out)?;
        let stay = out[polled..].iter().all(|entry| *entry == mark);
        holds(stay, "P4", "a poll wrote to entries past those that it returned")?;
    }
    Ok(())
}

/// A poll returns, whether the queue is empty or not.
///
/// # Errors
/// A poll fails.
pub fn p05_returns<F: Fixture>(fixture: &mut F) -> Result<(), Broken> {
    let mut out = buffer::<_, 1>();
    fixture.complete(Kind::Send, 1);
    for _ in 0..1000 {
        poll(fixture.queue(), &mut out)?;
    }
    Ok(())
}

/// A poll with an empty buffer returns 0 and takes no completion.
///
/// # Errors
/// It fails, returns another count, or takes a completion.
pub fn p06_empty_buffer<F: Fixture>(fixture: &mut F) -> Result<(), Broken> {
    for count in 0..2 {
        (0..count).for_each(|number| fixture.complete(Kind::Send, number));
        let polled = fixture.queue().poll(&mut []);
        let how = "a poll into an empty slice returned something else than 0";
        holds(polled == Ok(0), "P6", how)?;
    }
    let count = poll(fixture.queue(), &mut buffer::<_, 2>())?;
    holds(count == 1, "P6", "a poll into an empty slice took something")
}

/// A poll never returns more completions than it was asked for.
///
/// # Errors
/// A poll does.
pub fn p07_no_more_than_asked<F: Fixture>(fixture: &mut F) -> Result<(), Broken> {
    let mut next = 1;
    complete(fixture, &mut next, F::CAPACITY);
    let mut out = buffer::<_, MOST>();
    for asked in [1, 0, 2, 1] {
        poll(fixture.queue(), &mut out[..asked])?;
    }
    Ok(())
}
