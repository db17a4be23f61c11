//! Number, state and epoch of a queue pair in one word. A change of the state names the queue pair, so that a late
//! change cannot hit a later queue pair in the same table entry. The number is 0 where there is no queue pair.
//!
//! The *epoch* counts the changes: of the state, of the number, and of the attributes by which others judge their
//! requests. A requester that has validated a queue pair and finds the same word knows that nothing has changed.
//!
//! A caller that acts on a change (to flush, empty or destroy) calls [`ChangeFence::after_change`] first.
//!
//! [`ChangeFence::after_change`]: super::in_flight::ChangeFence::after_change

use std::fmt;

use cq_verbs::setup::QpState;

use super::number::QpNumber;
use super::steps::{self, Step};
use crate::sync::{self, AtomicU64};

const STATE_BITS: u32 = 8;

const EPOCH_AT: u32 = 32;

/// A queue pair number, of 24 bits, a state, and an epoch: how often the table entry was changed, wrapping.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Identity(u64);

impl Identity {
    /// That of the queue pair with this number, in this state and epoch.
    pub const fn new(number: QpNumber, state: QpState, epoch: u32) -> Self {
        let low = number.get() << STATE_BITS | state.0;
        Self((epoch as u64) << EPOCH_AT | low as u64)
    }

    /// The number of the queue pair.
    #[inline]
    pub const fn number(self) -> QpNumber {
        QpNumber::new(self.0 as u32 >> STATE_BITS)
    }

    /// Its state; ERR, in which a queue pair does no harm, for a number that is none.
    #[inline]
    pub const fn state(self) -> QpState {
        let bits = self.0 as u32 & ((1 << STATE_BITS) - 1);
        if bits < QpState::ERR.0 { QpState(bits) } else { QpState::ERR }
    }

    /// The epoch.
    pub const fn epoch(self) -> u32 {
        (self.0 >> EPOCH_AT) as u32
    }

    /// What follows this, with another number or state.
    const fn then(self, number: QpNumber, state: QpState) -> Self {
        Self::new(number, state, self.epoch().wrapping_add(1))
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, state, epoch) = (self.number(), self.state(), self.epoch());
        write!(f, "Identity({number:?}, {state:?}, epoch {epoch})")
    }
}

/// The current number, state and epoch. Acquires: what was stored before the word was changed can be read.
#[inline]
pub fn read(word: &AtomicU64) -> Identity {
    Identity(sync::acquire(word))
}

/// Enters a new queue pair, or the same one again, in RESET.
pub fn enter(word: &AtomicU64, number: QpNumber) {
    swap_while(word, |seen| Some(seen.then(number, QpState::RESET)));
}

/// Removes the queue pair.
pub fn vacate(word: &AtomicU64) {
    enter(word, QpNumber::NONE);
}

/// Removes the queue pair with this number, in any state; false if the entry is no longer its own.
#[must_use]
pub fn vacate_if(word: &AtomicU64, number: QpNumber) -> bool {
    let none = |seen: Identity| seen.then(QpNumber::NONE, QpState::RESET);
    swap_while(word, |seen| (seen.number() == number).then_some(none(seen)))
}

/// Changes `seen` to another state; false if the word has changed.
#[must_use]
pub fn change(word: &AtomicU64, seen: Identity, state: QpState) -> bool {
    swap_while(word, |now| (now == seen).then_some(seen.then(seen.number(), state)))
}

/// Begins another epoch of the queue pair with this number: attributes were stored by which others judge.
pub fn changed(word: &AtomicU64, number: QpNumber) {
    swap_while(word, |seen| (seen.number() == number).then_some(seen.then(number, seen.state())));
}

/// Replaces the word by what `next` returns, until that is `None`. The exchange compares the raw word, since
/// a word corrupted by another process may only look like a valid state.
fn swap_while(word: &AtomicU64, next: impl Fn(Identity) -> Option<Identity>) -> bool {
    let mut seen = sync::acquire(word);
    while let Some(to) = next(Identity(seen)) {
        match sync::cas(word, seen, to.0) {
            Ok(()) => {
                steps::done(Step::Changed);
                return true;
            }
            Err(now) => seen = now,
        }
    }
    false
}

/// Moves the queue pair with this number to SQE, from RTS or SQD; true if it did.
pub fn fail_sends(word: &AtomicU64, number: QpNumber) -> bool {
    swap_while(word, |seen| {
        let can_fail = matches!(seen.state(), QpState::RTS | QpState::SQD);
        (seen.number() == number && can_fail).then_some(seen.then(number, QpState::SQE))
    })
}

/// Moves the queue pair with this number to ERR, from any state but RESET and ERR; true if it did.
pub fn fail(word: &AtomicU64, number: QpNumber) -> bool {
    swap_while(word, |seen| {
        let can_fail = !matches!(seen.state(), QpState::RESET | QpState::ERR);
        (seen.number() == number && can_fail).then_some(seen.then(number, QpState::ERR))
    })
}

#[cfg(test)]
mod tests;
