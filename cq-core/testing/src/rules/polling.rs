//! The rules of polling.

use cq_core::transport::PollCq;

use super::{Check, Fixture, RuleError, Tested, buffer, checks, holds};

/// The length of the largest buffer.
const MOST: usize = 64;
/// How many times as many batches as the queue holds, or as the largest buffer holds.
const ROUNDS: usize = 5;

/// The checks of polling, [P1](cq_core::contract#p1)–[P7](cq_core::contract#p7). A transport that can't raise events has
/// these.
pub fn polling<F: Fixture>() -> impl Iterator<Item = Check> {
    checks![
        p03_empty_is_no_error::<F>,
        p06_empty_buffer::<F>,
        p07_no_more_than_asked::<F>,
        p01_order::<F>,
        p02_polled_is_gone::<F>,
        p04_the_rest_stays::<F>,
        p05_returns::<F>,
    ]
}

/// A poll returns the oldest completions, as many as the buffer holds. Checked with batches of all sizes up to the
/// capacity, and buffers of up to 64.
fn p01_order<F: Fixture>() -> Result<(), RuleError> {
    let (mut tested, mut next) = (Tested::<F>::new(), 0);
    let mut out = buffer::<_, MOST>();
    // A large queue gets batches of some sizes only.
    let step = F::CAPACITY.div_ceil(MOST);
    for round in 0..ROUNDS * F::CAPACITY.min(MOST) {
        (0..1 + round * step % F::CAPACITY).for_each(|_| tested.complete_any());
        while next < tested.completed {
            let most = 1 + (round + next as usize) % MOST;
            let count = tested.poll(&mut out[..most])?;
            let wanted = most.min((tested.completed - next) as usize);
            let how = "a poll took fewer completions than there were and the slice holds";
            holds(count >= wanted, "P1", how)?;
            for entry in &out[..count] {
                let is_next = tested.is_expected(entry, next);
                let how = "completions came in another order, not exactly once, or changed";
                holds(is_next, "P1", how)?;
                next += 1;
            }
        }
    }
    Ok(())
}

/// A polled completion does not come again. A poll that does not fill the buffer leaves the queue empty.
fn p02_polled_is_gone<F: Fixture>() -> Result<(), RuleError> {
    let (mut tested, mut out) = (Tested::<F>::new(), buffer::<_, MOST>());
    for count in 1..F::CAPACITY.min(MOST) {
        (0..count).for_each(|_| tested.complete_any());
        let how = "a poll that did not fill its slice left something in the queue";
        holds(tested.poll(&mut out[..count + 1])? == count, "P2", how)?;
        holds(tested.poll(&mut out)? == 0, "P2", "what was polled came again")?;
    }
    Ok(())
}

/// An empty queue is not an error.
fn p03_empty_is_no_error<F: Fixture>() -> Result<(), RuleError> {
    let mut tested = Tested::<F>::new();
    for _ in 0..2 {
        let how = "a completion came that nobody had completed";
        holds(tested.poll(&mut buffer::<_, 2>())? == 0, "P3", how)?;
    }
    Ok(())
}

/// Entries of the buffer past the count stay unchanged.
fn p04_the_rest_stays<F: Fixture>() -> Result<(), RuleError> {
    const MARK: u8 = 0xa5;
    let mut tested = Tested::<F>::new();
    for count in 0..2 {
        (0..count).for_each(|_| tested.complete_any());
        let mut out = buffer::<_, MOST>();
        bytemuck::cast_slice_mut::<_, u8>(&mut out).fill(MARK);
        let polled = tested.poll(&mut out)?;
        let stay = bytemuck::cast_slice::<_, u8>(&out[polled..]).iter().all(|byte| *byte == MARK);
        holds(stay, "P4", "a poll wrote to entries past those that it returned")?;
    }
    Ok(())
}

/// A poll returns, whether the queue is empty or not.
fn p05_returns<F: Fixture>() -> Result<(), RuleError> {
    let mut tested = Tested::<F>::new();
    tested.complete_any();
    for _ in 0..1000 {
        tested.poll(&mut buffer::<_, 1>())?;
    }
    Ok(())
}

/// A poll with an empty buffer returns 0 and takes no completion.
fn p06_empty_buffer<F: Fixture>() -> Result<(), RuleError> {
    let mut tested = Tested::<F>::new();
    for count in 0..2 {
        (0..count).for_each(|_| tested.complete_any());
        let polled = tested.fixture.queue().poll_into(&mut []);
        let how = "a poll into an empty slice returned something else than 0";
        holds(polled == Ok(0), "P6", how)?;
    }
    let how = "a poll into an empty slice took something";
    holds(tested.poll(&mut buffer::<_, 2>())? == 1, "P6", how)
}

/// A poll never returns more completions than it was asked for.
fn p07_no_more_than_asked<F: Fixture>() -> Result<(), RuleError> {
    let (mut tested, mut out) = (Tested::<F>::new(), buffer::<_, 2>());
    (0..F::CAPACITY).for_each(|_| tested.complete_any());
    for asked in [1, 0, 2, 1] {
        tested.poll(&mut out[..asked])?;
    }
    Ok(())
}
