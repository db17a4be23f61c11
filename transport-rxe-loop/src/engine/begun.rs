//! Atomics that another process has begun and not answered. They are never started again.

use super::Engine;
use crate::memory::copier::asking::{self, Begun};
use crate::protocol::number::QpNumber;
use crate::sync;

/// Takes what the oldest request of a queue pair has begun. Called by the owner of its send queue.
pub fn take(engine: &'static Engine, number: QpNumber) -> Option<Begun> {
    let words = &engine.own(engine.index(number)).begun;
    let begun = Begun::from_words(words.each_ref().map(sync::load))?;
    sync::store(&words[0], 0);
    Some(begun)
}

/// The oldest request of a queue pair ends without an answer: whether the atomic that it has begun was done is not
/// known. Called by the owner of its send queue.
#[inline]
pub fn abandon(engine: &'static Engine, number: QpNumber) {
    if let Some(begun) = take(engine, number) {
        asking::abandon(engine.memory, begun);
    }
}

/// Keeps what the oldest request of a queue pair has begun. Called by the owner of its send queue.
pub fn keep(engine: &'static Engine, number: QpNumber, begun: Begun) {
    let words = &engine.own(engine.index(number)).begun;
    words.iter().zip(begun.to_words()).for_each(|(word, value)| sync::store(word, value));
}
