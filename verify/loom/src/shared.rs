//! What several producers push, and what has come of it.

use cq_core::wc::Wc;

use crate::queue::{Modelled, expect};

/// The `nth` completion, from 1, of a producer.
pub fn of(producer: u64, nth: u64) -> Wc {
    entry_of(producer, nth)
}

/// The `nth` entry.
pub fn entry_of<E: Modelled>(producer: u64, nth: u64) -> E {
    E::numbered(producer * 64 + nth)
}

/// What has come of each producer.
#[derive(Default)]
pub struct Taken([u64; 2]);

impl Taken {
    /// Checks that each of these is the next of its producer, whole.
    ///
    /// # Panics
    /// One is not.
    pub fn add<E: Modelled>(&mut self, entries: &[E]) {
        for entry in entries {
            let taken = &mut self.0[usize::from(entry.number() >= 64)];
            *taken += 1;
            expect(entry, entry.number() / 64 * 64 + *taken);
        }
    }

    /// How many have come.
    pub fn count(&self) -> u64 {
        self.0.iter().sum()
    }
}
