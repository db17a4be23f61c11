//! Number and state of a queue pair, in one word: who changes the state of a queue pair names it, so that
//! a change that comes late can't hit another one that has taken its place.
//!
//! A number has 24 bits: the index of its place in the table, and above that a generation which is never
//! 0, so that no number is 0 or 1. The word is 0 where there is no queue pair.

use crate::layout::{MAX_QP, QpSlot};
use crate::state::QpState;
use crate::sync;

const STATE_BITS: u32 = 8;
const INDEX_BITS: u32 = MAX_QP.trailing_zeros();
const GENERATIONS: u32 = (1 << (24 - INDEX_BITS)) - 1;

/// A number and a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    pub number: u32,
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

/// The number of the queue pair that is the `generation`th, from 0, at `index`.
pub const fn number_of(index: u32, generation: u32) -> u32 {
    (1 + generation % GENERATIONS) << INDEX_BITS | index
}

/// Who is there now, and everything that was stored before it got its state.
#[inline]
pub fn read(slot: &QpSlot) -> Identity {
    Identity::from_word(sync::acquire(&slot.identity))
}

/// Puts a new queue pair there.
pub fn enter(slot: &QpSlot, number: u32) {
    sync::release(&slot.identity, Identity { number, state: QpState::Reset }.to_word());
}

/// Takes a queue pair away.
pub fn vacate(slot: &QpSlot) {
    sync::release(&slot.identity, 0);
}

/// Changes `seen` to another state; false if it is not so any more.
pub fn change(slot: &QpSlot, seen: Identity, state: QpState) -> bool {
    let to = Identity { state, ..seen };
    sync::swap_if(&slot.identity, seen.to_word(), to.to_word()).is_ok()
}

/// Puts the queue pair into ERR if it is the one named, and in a state from where that is possible; whether
/// it did.
pub fn fail(slot: &QpSlot, number: u32) -> bool {
    loop {
        let seen = read(slot);
        if seen.number != number || matches!(seen.state, QpState::Reset | QpState::Err) {
            return false;
        }
        if change(slot, seen, QpState::Err) {
            return true;
        }
    }
}
