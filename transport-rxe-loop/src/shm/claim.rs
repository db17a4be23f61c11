//! Attachment ids: a word for each, which says whether the id is in use, and how often it was.
//!
//! | low half | state | left by |
//! |---|---|---|
//! | 0 | Free | a process that attaches and has locked the byte, to Attached |
//! | 1, and any other | Attached | its process as it ends, to Leaving; a process that recovered from its death, to Free |
//! | 2 | Leaving | a process that recovered from its death, to Free |
//!
//! The high half is the generation: how often the id was used. The lock on the owner's [byte](super::liveness) says
//! whether the process is alive, the word whether the id may be used: a dead process keeps it until what it had is
//! repaired and freed.
//!
//! An *owner* identifies an attachment by its id, plus 1, in the low half of a word, and its generation in the high
//! half. So in shared memory it differs from the next attachment with the same id.

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

/// The owner of the id at an index, when its word became this.
const fn owner(index: u32, word: u32) -> u32 {
    generation(word) | (index + 1)
}

/// The id of an owner. Any number is harmless, and most are of no owner.
pub const fn index(owner: u32) -> Option<u32> {
    state(owner).checked_sub(1)
}

/// Whether the id may be used.
pub fn is_free(word: &AtomicU32) -> bool {
    state(sync::acquire(word)) == FREE
}

/// The next owner of the id at an index.
pub fn next(index: u32, word: &AtomicU32) -> u32 {
    owner(index, sync::acquire(word).wrapping_add(GENERATION))
}

/// Claims a free id for its [next] owner, whose byte is locked.
pub fn take(word: &AtomicU32, next: u32) -> bool {
    let before = generation(next).wrapping_sub(GENERATION);
    let taken = sync::cas(word, before | FREE, generation(next) | ATTACHED);
    taken.inspect(|()| steps::done(Step::Attached)).is_ok()
}

/// Claims an id for its [next] owner, which is returned, if it is free and `lock` locked that owner's byte.
pub fn attempt<E>(
    index: u32,
    word: &AtomicU32,
    lock: impl FnOnce(u32) -> Result<bool, E>,
) -> Result<Option<u32>, E> {
    let next = next(index, word);
    let taken = is_free(word) && lock(next)? && take(word, next);
    Ok(taken.then_some(next))
}

/// The current owner of the id at an index, or the last one.
pub fn last(index: u32, word: &AtomicU32) -> u32 {
    owner(index, sync::acquire(word))
}

/// Records that the process is about to end.
pub fn leave(word: &AtomicU32) {
    sync::release(word, generation(sync::load(word)) | LEAVING);
}

/// Whether the process is about to end.
pub fn is_leaving(word: &AtomicU32) -> bool {
    state(sync::acquire(word)) == LEAVING
}

/// Frees the id of a dead owner that has nothing left, if it is still the owner's.
pub fn free(word: &AtomicU32, owner: u32) {
    let seen = sync::acquire(word);
    if generation(seen) == generation(owner) {
        // Fails if another process freed it first.
        let _ = sync::cas(word, seen, generation(seen));
    }
}

#[cfg(test)]
mod tests;
