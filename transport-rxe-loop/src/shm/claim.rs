//! The places of processes: a word each, which says whether the place is taken, and how often it was.
//!
//! | low half | state | left by |
//! |---|---|---|
//! | 0 | Free | who attaches and has locked the byte, to Attached |
//! | 1, and any other | Attached | its process as it ends, to Leaving; who swept what it had, to Free |
//! | 2 | Leaving | who swept what it had, to Free |
//!
//! The high half is the generation: it counts how often the place was taken. The lock on the owner's
//! [byte](super::liveness) says whether the process lives, the word whether the place may be taken: a dead
//! process keeps it until what it had is repaired and freed.
//!
//! An *owner* is a process by its place, plus 1, in the low half of a word and its generation in the high
//! half: who writes it into shared memory is told from the next process in the same place.

use crate::protocol::steps::{self, Step};
use crate::sync::{self, AtomicU32};

const FREE: u32 = 0;
const ATTACHED: u32 = 1;
const LEAVING: u32 = 2;
const GENERATION: u32 = 1 << 16;

const fn state(word: u32) -> u32 {
    word % GENERATION
}

const fn generation(word: u32) -> u32 {
    word - state(word)
}

/// The owner at an index, who took the place when its word became this.
const fn owner(index: u32, word: u32) -> u32 {
    generation(word) | (index + 1)
}

/// At which index an owner has its place. Any number is harmless, and most are nobody's.
pub const fn index(owner: u32) -> Option<u32> {
    state(owner).checked_sub(1)
}

/// Whether a place may be taken.
pub fn is_free(word: &AtomicU32) -> bool {
    state(sync::acquire(word)) == FREE
}

/// Who the next one at an index is going to be.
pub fn next(index: u32, word: &AtomicU32) -> u32 {
    owner(index, sync::acquire(word).wrapping_add(GENERATION))
}

/// Takes a free place for its [next] owner, whose byte is locked.
pub fn take(word: &AtomicU32, next: u32) -> bool {
    let before = generation(next).wrapping_sub(GENERATION);
    let taken = sync::swap_if(word, before | FREE, generation(next) | ATTACHED);
    taken.inspect(|()| steps::done(Step::Attached)).is_ok()
}

/// Takes a place for its [next] owner, who is said, if it is free and `lock` had that one's byte.
pub fn attempt<E>(
    index: u32,
    word: &AtomicU32,
    lock: impl FnOnce(u32) -> Result<bool, E>,
) -> Result<Option<u32>, E> {
    let next = next(index, word);
    let taken = is_free(word) && lock(next)? && take(word, next);
    Ok(taken.then_some(next))
}

/// Who has the place at an index, or had it last.
pub fn last(index: u32, word: &AtomicU32) -> u32 {
    owner(index, sync::acquire(word))
}

/// That its process is about to end.
pub fn leave(word: &AtomicU32) {
    sync::release(word, generation(sync::load(word)) | LEAVING);
}

/// Whether its process is about to end.
pub fn is_leaving(word: &AtomicU32) -> bool {
    state(sync::acquire(word)) == LEAVING
}

/// Frees the place of an owner that is dead and has nothing left, if it is still the owner's.
pub fn free(word: &AtomicU32, owner: u32) {
    let seen = sync::acquire(word);
    if generation(seen) == generation(owner) {
        // Who was quicker has freed it.
        let _ = sync::swap_if(word, seen, generation(seen));
    }
}

#[cfg(test)]
mod tests;
