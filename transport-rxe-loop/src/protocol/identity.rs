//! Number, state and epoch of a queue pair in one word. A change of the state names the queue pair, so that a late
//! change cannot hit a later queue pair in the same table entry. The number is 0 where there is no queue pair.
//!
//! The *epoch* counts the changes: of the state, of the number, and of the attributes by which others judge their
//! requests. So whoever has validated a queue pair and finds the same word knows that everything is as it was.
//!
//! A caller that acts on a change (to flush, empty or destroy) calls [`ChangeFence::after_change`] first.
//!
//! ```
//! use transport_rxe_loop::QpState;
//! use transport_rxe_loop::protocol::identity;
//! use transport_rxe_loop::protocol::number::QpNumber;
//! use transport_rxe_loop::sync::AtomicU64;
//!
//! let (word, number) = (AtomicU64::new(0), QpNumber::new(0x1001));
//! identity::enter(&word, number);
//! let seen = identity::read(&word);
//! assert!(identity::change(&word, seen, QpState::Init));
//! assert!(!identity::change(&word, seen, QpState::Rts)); // of an earlier epoch
//! assert!(!identity::fail(&word, QpNumber::new(0x2001))); // another one
//! assert!(identity::fail(&word, number));
//! assert_eq!(identity::read(&word).state, QpState::Err);
//! ```
//!
//! [`ChangeFence::after_change`]: super::in_flight::ChangeFence::after_change

use super::number::QpNumber;
use super::state::QpState;
use super::steps::{self, Step};
use crate::sync::{self, AtomicU64};

const STATE_BITS: u32 = 8;

const EPOCH_AT: u32 = 32;

/// A queue pair number, of 24 bits, a state, and an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The number of the queue pair.
    pub number: QpNumber,
    /// Its state.
    pub state: QpState,
    /// How often the table entry was changed, wrapping.
    pub epoch: u32,
}

impl Identity {
    const fn to_word(self) -> u64 {
        (self.epoch as u64) << EPOCH_AT
            | (self.number.get() << STATE_BITS) as u64
            | self.state as u64
    }

    const fn from_word(word: u64) -> Self {
        let state = QpState::from_bits(word as u32 & ((1 << STATE_BITS) - 1));
        let number = QpNumber::new(word as u32 >> STATE_BITS);
        Self { number, state, epoch: (word >> EPOCH_AT) as u32 }
    }

    /// What follows this, with another number or state.
    const fn then(self, number: QpNumber, state: QpState) -> Self {
        Self { number, state, epoch: self.epoch.wrapping_add(1) }
    }
}

/// The current number, state and epoch. Acquires: what was stored before the word was changed can be read.
#[inline]
#[must_use]
pub fn read(word: &AtomicU64) -> Identity {
    Identity::from_word(sync::acquire(word))
}

/// Enters a new queue pair, or the same one again, in RESET.
pub fn enter(word: &AtomicU64, number: QpNumber) {
    swap_while(word, |seen| Some(seen.then(number, QpState::Reset)));
}

/// Removes the queue pair.
pub fn vacate(word: &AtomicU64) {
    enter(word, QpNumber::NONE);
}

/// Removes the queue pair with this number, in any state; false if the entry is no longer its own.
#[must_use]
pub fn vacate_if(word: &AtomicU64, number: QpNumber) -> bool {
    let none = |seen: Identity| seen.then(QpNumber::NONE, QpState::Reset);
    swap_while(word, |seen| (seen.number == number).then_some(none(seen)))
}

/// Changes `seen` to another state; false if the word has changed.
#[must_use]
pub fn change(word: &AtomicU64, seen: Identity, state: QpState) -> bool {
    swap_while(word, |now| (now == seen).then_some(seen.then(seen.number, state)))
}

/// Begins another epoch of the queue pair with this number: attributes were stored by which others judge.
pub fn changed(word: &AtomicU64, number: QpNumber) {
    swap_while(word, |seen| (seen.number == number).then_some(seen.then(number, seen.state)));
}

/// Replaces the word by what `next` returns, until that is `None`. The exchange compares the raw word, since
/// a word corrupted by another process may only look like a valid state.
fn swap_while(word: &AtomicU64, next: impl Fn(Identity) -> Option<Identity>) -> bool {
    let mut seen = sync::acquire(word);
    while let Some(to) = next(Identity::from_word(seen)) {
        match sync::cas(word, seen, to.to_word()) {
            Ok(()) => {
                steps::done(Step::Changed);
                return true;
            }
            Err(now) => seen = now,
        }
    }
    false
}

/// Moves the queue pair with this number to SQE, from RTS or SQD.
pub fn fail_sends(word: &AtomicU64, number: QpNumber) {
    swap_while(word, |seen| {
        let can_fail = matches!(seen.state, QpState::Rts | QpState::Sqd);
        (seen.number == number && can_fail).then_some(seen.then(number, QpState::Sqe))
    });
}

/// Moves the queue pair with this number to ERR, from any state but RESET and ERR; true if it did.
pub fn fail(word: &AtomicU64, number: QpNumber) -> bool {
    swap_while(word, |seen| {
        let can_fail = !matches!(seen.state, QpState::Reset | QpState::Err);
        (seen.number == number && can_fail).then_some(seen.then(number, QpState::Err))
    })
}

#[cfg(test)]
mod tests;
