//! A fixture at work.

use cq_core::transport::Notify;

use super::{Broken, EntryOf, Fixture, Kind, poll};

/// A new fixture, whose completions are numbered.
pub(super) struct Tested<F> {
    pub fixture: F,
    /// How many completions there were so far.
    pub completed: u64,
}

impl<F: Fixture> Tested<F> {
    pub fn new() -> Self {
        const {
            assert!(F::CAPACITY >= 2, "the checks need a queue of at least 2");
            assert!(has_others(F::KINDS), "the checks need a kind that is not urgent");
        }
        Self { fixture: F::new(), completed: 0 }
    }

    /// The device's kinds, from that of a completion with this number on.
    fn kinds(number: u64) -> impl Iterator<Item = Kind> {
        let kinds = F::KINDS.iter().copied().cycle();
        kinds.skip((number % F::KINDS.len() as u64) as usize).take(F::KINDS.len())
    }

    pub fn complete(&mut self, kind: Kind) {
        self.fixture.complete(kind, self.completed);
        self.completed += 1;
    }

    /// Completes a request of the kind that is next. [`expected`](Self::expected) knows which.
    pub fn complete_any(&mut self) {
        Self::kinds(self.completed).take(1).for_each(|kind| self.complete(kind));
    }

    /// The entry of such a completion.
    pub fn expected(&self, number: u64) -> Option<EntryOf<F>> {
        Self::kinds(number).next().map(|kind| self.fixture.expected(kind, number))
    }

    /// Completes a request that is urgent, or one that is not: what such an arm is for at the least. Returns whether the
    /// device has such a kind.
    pub fn complete_for(&mut self, on: Notify) -> bool {
        let is_urgent = on == Notify::Solicited;
        let kind = Self::kinds(self.completed).find(|kind| kind.is_urgent() == is_urgent);
        kind.map(|kind| self.complete(kind)).is_some()
    }

    pub fn poll(&mut self, out: &mut [EntryOf<F>]) -> Result<usize, Broken> {
        poll(self.fixture.queue(), out)
    }
}

/// Whether one of these kinds is not urgent.
const fn has_others(kinds: &[Kind]) -> bool {
    match kinds {
        [] => false,
        [kind, others @ ..] => !kind.is_urgent() || has_others(others),
    }
}
