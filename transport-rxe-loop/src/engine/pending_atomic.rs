//! Atomics that another process has begun and not answered. They are never started again.

use super::Engine;
use crate::memory::copier::client::{self, PendingAtomic};
use crate::protocol::number::QpNumber;
use crate::sync;

/// Takes the unanswered atomic of the oldest request. Called by the owner of its send queue.
pub fn take(engine: &'static Engine, number: QpNumber) -> Option<PendingAtomic> {
    let words = &engine.own(engine.index(number)).begun;
    let begun = PendingAtomic::from_words(words.each_ref().map(sync::load))?;
    sync::store(&words[0], 0);
    Some(begun)
}

/// The oldest request of a queue pair ends without an answer: whether its atomic was carried out is
/// unknown. Called by the owner of its send queue.
#[inline]
pub fn abandon(engine: &'static Engine, number: QpNumber) {
    if let Some(begun) = take(engine, number) {
        client::abandon(engine.memory, begun);
    }
}

/// Stores the unanswered atomic of the oldest request. Called by the owner of its send queue.
pub fn keep(engine: &'static Engine, number: QpNumber, begun: PendingAtomic) {
    let words = &engine.own(engine.index(number)).begun;
    words.iter().zip(begun.to_words()).for_each(|(word, value)| sync::store(word, value));
}
