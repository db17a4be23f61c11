//! Requests to run a queue pair that others leave for its process: a bit for each queue pair, and then a call to the
//! service thread of the process that has it.
//!
//! 1. *Mark* the bit ([`Requests::leave`]), and only then *call*: the service thread takes the calls that it has seen
//!    first, then looks at the bits, and does not sleep where it was called since.
//! 2. *Take* the bits of its own queue pairs, and clear each before the queue pair is run: a request that comes while it
//!    runs is another one.
//! 3. Between the look at whose it is and the clearing, a queue pair may go and its place become another process': the
//!    request that was cleared may have been that one's, and is left once more. Who is stopped between these
//!    instructions keeps it back until it goes on.
//!
//! A process that dies between marking and calling is made up for by those who sweep up after it: they call all.
//!
//! ```
//! use transport_rxe_loop::protocol::requests::Requests;
//! use transport_rxe_loop::sync::AtomicU64;
//!
//! let words = [const { AtomicU64::new(0) }; 2];
//! let requests = Requests::new(&words);
//! [70, 3, 70, 5].into_iter().for_each(|index| requests.leave(index));
//! let mut taken = Vec::new();
//! requests.take(|index| index != 5, |index| taken.push(index));
//! assert_eq!(taken, [3, 70]);
//! ```

use super::steps::{self, Step};
use crate::sync::{self, AtomicU32, AtomicU64};

const BITS: u32 = u64::BITS;

/// A bit for each queue pair. Any content is harmless.
#[derive(Clone, Copy, Debug)]
pub struct Requests<'a>(&'a [AtomicU64]);

impl<'a> Requests<'a> {
    /// The bits that lie there.
    #[must_use]
    pub const fn new(words: &'a [AtomicU64]) -> Self {
        Self(words)
    }

    /// Marks the queue pair at an index, if there is one. Whose it is has to be called after that.
    pub fn leave(&self, index: u32) {
        let Some(word) = self.0.get((index / BITS) as usize) else { return };
        sync::raise_from(word, |seen| Some(seen | 1 << (index % BITS)));
        steps::done(Step::Noted);
    }

    /// Clears the bits of those that are `mine`, or nobody's, and then gives each by its index to `each`, which looks
    /// again whose it is.
    pub fn take(&self, mine: impl Fn(u32) -> bool, mut each: impl FnMut(u32)) {
        for (word, base) in self.0.iter().zip((0..).step_by(BITS as usize)) {
            let mut left = sync::load(word);
            while left != 0 {
                let bit = left.trailing_zeros();
                left &= left - 1;
                let mut is_taken = false;
                sync::raise_from(word, |seen| {
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

/// Whether a process has left requests for itself: for its threads, which look without being called.
#[derive(Debug, Default)]
pub struct Reminder(AtomicU32);

impl Reminder {
    /// A request was left.
    pub fn set(&self) {
        sync::release(&self.0, 1);
    }

    /// Whether one was, since this was last asked: who is told so has to take it.
    #[inline]
    #[must_use]
    pub fn take(&self) -> bool {
        sync::load(&self.0) != 0 && sync::swap_if(&self.0, 1, 0).is_ok()
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
