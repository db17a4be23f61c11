//! What several producers push, and what has come of it.

use cq_core::wc::Wc;

use crate::queue::{expect, numbered};

/// The `nth` completion, from 1, of a producer.
pub fn of(producer: u64, nth: u64) -> Wc {
    numbered(producer * 64 + nth)
}

/// What has come of each producer.
#[derive(Default)]
pub struct Taken([u64; 2]);

impl Taken {
    /// Checks that each of these is the next of its producer, whole.
    ///
    /// # Panics
    /// One is not.
    pub fn add(&mut self, wcs: &[Wc]) {
        for wc in wcs {
            let taken = &mut self.0[usize::from(wc.wr_id() >= 64)];
            *taken += 1;
            expect(wc, wc.wr_id() / 64 * 64 + *taken);
        }
    }

    /// How many have come.
    pub fn count(&self) -> u64 {
        self.0.iter().sum()
    }
}
