//! A fixture at work.

use cq_core::transport::Notify;

use super::{EntryOf, Fixture, Kind, RuleError, poll};

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

    /// The kind whose turn it is.
    fn kind(number: u64) -> Kind {
        F::KINDS[(number % F::KINDS.len() as u64) as usize]
    }

    pub fn complete(&mut self, kind: Kind) {
        self.fixture.complete(kind, self.completed);
        self.completed += 1;
    }

    /// Completes a request of each kind in turn.
    pub fn complete_any(&mut self) {
        self.complete(Self::kind(self.completed));
    }

    /// Whether this is the entry of such a completion.
    pub fn is_expected(&self, entry: &EntryOf<F>, number: u64) -> bool {
        self.fixture.is_expected(entry, Self::kind(number), number)
    }

    /// Completes a request that is urgent, if armed for [`Notify::Solicited`], or else one that is not. Returns whether the
    /// device has such a kind.
    pub fn complete_for(&mut self, on: Notify) -> bool {
        let is_urgent = on == Notify::Solicited;
        let mut kinds = (self.completed..).take(F::KINDS.len()).map(Self::kind);
        kinds.find(|kind| kind.is_urgent() == is_urgent).map(|kind| self.complete(kind)).is_some()
    }

    pub fn poll(&mut self, out: &mut [EntryOf<F>]) -> Result<usize, RuleError> {
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
