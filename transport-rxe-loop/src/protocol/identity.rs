//! Number and state of a queue pair in one word. A change of the state names the queue pair, so that a late
//! change cannot hit a later queue pair in the same table entry. The word is 0 where there is no queue pair.
//!
//! A caller that acts on a change (to flush, empty or destroy) calls [`ChangeFence::after_change`] first.
//!
//! ```
//! use transport_rxe_loop::QpState;
//! use transport_rxe_loop::protocol::identity;
//! use transport_rxe_loop::protocol::number::QpNumber;
//! use transport_rxe_loop::sync::AtomicU32;
//!
//! let (word, number) = (AtomicU32::new(0), QpNumber::new(0x1001));
//! identity::enter(&word, number);
//! let seen = identity::read(&word);
//! assert!(identity::change(&word, seen, QpState::Init));
//! assert!(!identity::fail(&word, QpNumber::new(0x2001))); // another one
//! assert!(identity::fail(&word, number));
//! assert_eq!(identity::read(&word).state, QpState::Err);
//! ```
//!
//! [`ChangeFence::after_change`]: super::in_flight::ChangeFence::after_change

use super::number::QpNumber;
use super::state::QpState;
use super::steps::{self, Step};
use crate::sync::{self, AtomicU32};

const STATE_BITS: u32 = 8;

/// A queue pair number, of 24 bits, and a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The number of the queue pair.
    pub number: QpNumber,
    /// Its state.
    pub state: QpState,
}

impl Identity {
    const fn to_word(self) -> u32 {
        self.number.get() << STATE_BITS | self.state as u32
    }

    const fn from_word(word: u32) -> Self {
        let state = QpState::from_bits(word & ((1 << STATE_BITS) - 1));
        Self { number: QpNumber::new(word >> STATE_BITS), state }
    }
}

/// The current number and state. Acquires: what was stored before the state was changed can be read.
#[inline]
#[must_use]
pub fn read(word: &AtomicU32) -> Identity {
    Identity::from_word(sync::acquire(word))
}

/// Enters a new queue pair, or the same one again, in RESET.
pub fn enter(word: &AtomicU32, number: QpNumber) {
    sync::release(word, Identity { number, state: QpState::Reset }.to_word());
    steps::done(Step::Changed);
}

/// Removes the queue pair.
pub fn vacate(word: &AtomicU32) {
    sync::release(word, 0);
    steps::done(Step::Changed);
}

/// Removes the queue pair with this number, in any state; false if the entry is no longer its own.
#[must_use]
pub fn vacate_if(word: &AtomicU32, number: QpNumber) -> bool {
    swap_while(word, |seen| (seen.number == number).then_some(0))
}

/// Changes `seen` to another state; false if the word has changed.
#[must_use]
pub fn change(word: &AtomicU32, seen: Identity, state: QpState) -> bool {
    let to = Identity { state, ..seen }.to_word();
    swap_while(word, |now| (now == seen).then_some(to))
}

/// Replaces the word by what `next` returns, until that is `None`. The exchange compares the raw word, since
/// a word corrupted by another process may only look like a valid state.
fn swap_while(word: &AtomicU32, next: impl Fn(Identity) -> Option<u32>) -> bool {
    let mut seen = sync::acquire(word);
    while let Some(to) = next(Identity::from_word(seen)) {
        match sync::cas(word, seen, to) {
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
pub fn fail_sends(word: &AtomicU32, number: QpNumber) {
    swap_while(word, |seen| {
        let can_fail = matches!(seen.state, QpState::Rts | QpState::Sqd);
        let failed = Identity { number, state: QpState::Sqe };
        (seen.number == number && can_fail).then_some(failed.to_word())
    });
}

/// Moves the queue pair with this number to ERR, from any state but RESET and ERR; true if it did.
pub fn fail(word: &AtomicU32, number: QpNumber) -> bool {
    swap_while(word, |seen| {
        let can_fail = !matches!(seen.state, QpState::Reset | QpState::Err);
        let failed = Identity { number, state: QpState::Err };
        (seen.number == number && can_fail).then_some(failed.to_word())
    })
}

#[cfg(test)]
mod tests;
