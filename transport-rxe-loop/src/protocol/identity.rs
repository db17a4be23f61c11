//! Number and state of a queue pair, in one word: who changes the state of a queue pair names it, so that
//! a change that comes late can't hit another one that has taken its place. The word is 0 where there is no
//! queue pair.
//!
//! Whoever acts on a change, to flush, to empty, to destroy, calls [`Shut::after_change`] first.
//!
//! ```
//! use transport_rxe_loop::QpState;
//! use transport_rxe_loop::protocol::identity;
//! use transport_rxe_loop::sync::AtomicU32;
//!
//! let word = AtomicU32::new(0);
//! identity::enter(&word, 0x1001);
//! let seen = identity::read(&word);
//! assert!(identity::change(&word, seen, QpState::Init));
//! assert!(!identity::fail(&word, 0x2001)); // another one
//! assert!(identity::fail(&word, 0x1001));
//! assert_eq!(identity::read(&word).state, QpState::Err);
//! ```
//!
//! [`Shut::after_change`]: super::window::Shut::after_change

use super::state::QpState;
use super::steps::{self, Step};
use crate::sync::{self, AtomicU32};

const STATE_BITS: u32 = 8;

/// A number, of 24 bits, and a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Which queue pair.
    pub number: u32,
    /// How it is.
    pub state: QpState,
}

impl Identity {
    const fn to_word(self) -> u32 {
        self.number << STATE_BITS | self.state as u32
    }

    const fn from_word(word: u32) -> Self {
        let state = QpState::from_bits(word & ((1 << STATE_BITS) - 1));
        Self { number: word >> STATE_BITS, state }
    }
}

/// Who is there now, and everything that was stored before it got its state.
#[inline]
#[must_use]
pub fn read(word: &AtomicU32) -> Identity {
    Identity::from_word(sync::acquire(word))
}

/// Puts a new queue pair there, or the same one back to RESET.
pub fn enter(word: &AtomicU32, number: u32) {
    sync::release(word, Identity { number, state: QpState::Reset }.to_word());
    steps::done(Step::Changed);
}

/// Takes a queue pair away.
pub fn vacate(word: &AtomicU32) {
    sync::release(word, 0);
    steps::done(Step::Changed);
}

/// Takes the queue pair with this number away, in whatever state; false if it is not there any more.
#[must_use]
pub fn vacate_if(word: &AtomicU32, number: u32) -> bool {
    swap_while(word, |seen| (seen.number == number).then_some(0))
}

/// Changes `seen` to another state; false if it is not so any more.
#[must_use]
pub fn change(word: &AtomicU32, seen: Identity, state: QpState) -> bool {
    let to = Identity { state, ..seen }.to_word();
    swap_while(word, |now| (now == seen).then_some(to))
}

/// Stores what `next` makes of what is there, until that is nothing. What is there may be no state, and
/// only looks like one.
fn swap_while(word: &AtomicU32, next: impl Fn(Identity) -> Option<u32>) -> bool {
    let mut seen = sync::acquire(word);
    while let Some(to) = next(Identity::from_word(seen)) {
        match sync::swap_if(word, seen, to) {
            Ok(()) => {
                steps::done(Step::Changed);
                return true;
            }
            Err(now) => seen = now,
        }
    }
    false
}

/// Puts the queue pair into SQE, if it is the one named, and in a state from where that is possible.
pub fn fail_sends(word: &AtomicU32, number: u32) {
    swap_while(word, |seen| {
        let can_fail = matches!(seen.state, QpState::Rts | QpState::Sqd);
        let failed = Identity { number, state: QpState::Sqe };
        (seen.number == number && can_fail).then_some(failed.to_word())
    });
}

/// Puts the queue pair into ERR if it is the one named, and in a state from where that is possible; whether
/// it did.
pub fn fail(word: &AtomicU32, number: u32) -> bool {
    swap_while(word, |seen| {
        let can_fail = !matches!(seen.state, QpState::Reset | QpState::Err);
        let failed = Identity { number, state: QpState::Err };
        (seen.number == number && can_fail).then_some(failed.to_word())
    })
}

#[cfg(test)]
mod tests;
