//! Remote requests to run a queue pair: one bit for each queue pair, and a call to the service thread of the
//! process that owns it.
//!
//! 1. *Mark* the bit ([`RequestBits::leave`]), and only then *call*. The service thread reads its count of calls
//!    first, then the bits, and does not sleep if the count has changed since.
//! 2. *Take* the bits of its own queue pairs, each cleared before the queue pair is run: a request that
//!    arrives while it runs is a new one.
//! 3. Between checking the owner and clearing the bit, the queue pair may be destroyed and its table entry be
//!    claimed by another process. The cleared request may have been for that one, so it is left again. A
//!    process that is stopped between these instructions delays the request until it continues.
//!
//! If a process dies between marking and calling, those that recover from its death call all processes.

use super::steps::{self, Step};
use crate::sync::{self, AtomicU32, AtomicU64};

const BITS: u32 = u64::BITS;

/// The bits. Any content is harmless.
#[derive(Clone, Copy, Debug)]
pub struct RequestBits<'a>(&'a [AtomicU64]);

impl<'a> RequestBits<'a> {
    /// The requests in these words.
    pub const fn new(words: &'a [AtomicU64]) -> Self {
        Self(words)
    }

    /// Marks the queue pair at an index, if there is one. The caller then calls the process that owns it.
    pub fn leave(&self, index: u32) {
        let Some(word) = self.0.get((index / BITS) as usize) else { return };
        sync::fetch_update(word, |seen| Some(seen | 1 << (index % BITS)));
        steps::done(Step::Requested);
    }

    /// Whether the queue pair at an index is marked.
    ///
    /// # Staleness
    /// Its process may take the request at once.
    pub fn is_left(&self, index: u32) -> bool {
        let word = self.0.get((index / BITS) as usize);
        word.is_some_and(|word| sync::load(word) >> (index % BITS) & 1 != 0)
    }

    /// Clears the bits of the queue pairs that are `mine`, or unowned, and passes the index of each to
    /// `each`, which checks the owner again.
    pub fn take(&self, mine: impl Fn(u32) -> bool, mut each: impl FnMut(u32)) {
        for (word, base) in self.0.iter().zip((0..).step_by(BITS as usize)) {
            let mut left = sync::load(word);
            while left != 0 {
                let bit = left.trailing_zeros();
                left &= left - 1;
                let mut is_taken = false;
                sync::fetch_update(word, |seen| {
                    is_taken = seen >> bit & 1 != 0 && mine(base + bit);
                    is_taken.then_some(seen & !(1 << bit))
                });
                if is_taken {
                    each(base + bit);
                }
            }
        }
    }
}

/// Whether a process left requests for itself. Its own threads check this without being called.
#[derive(Debug, Default)]
pub struct Reminder(AtomicU32);

impl Reminder {
    /// A request was left.
    pub fn set(&self) {
        sync::release(&self.0, 1);
    }

    /// Whether a request was left since the last [`take`](Self::take).
    #[inline]
    pub fn is_set(&self) -> bool {
        sync::load(&self.0) != 0
    }

    /// Whether a request was left since the last call. If so, the caller has to take the requests.
    #[inline]
    #[must_use]
    pub fn take(&self) -> bool {
        self.is_set() && sync::cas(&self.0, 1, 0).is_ok()
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
