//! The only producer of a completion queue: a queue pair whose sends complete there, and nothing else does. It pushes
//! without the lock, while its in-flight marker is set.
//!
//! | word | state | left by |
//! |---|---|---|
//! | 0 | Unused | a queue pair that [is alone](SoleProducer::claim), to its number; any other use, to Shared |
//! | a number | only this queue pair pushes, and its process knows that it does by its marker | another use, or who has to exclude it, to Shared; its end, to Unused |
//! | 2^32 - 1 | Shared: producers take turns under the lock | – |
//!
//! Who [shares](SoleProducer::share) it waits for the marker of the queue pair that was alone:
//!
//! | who | does | then reads |
//! |---|---|---|
//! | the queue pair that is alone | sets its marker, fences | the word: if it has another's, it takes the lock |
//! | who shares the queue | changes the word, [fences](super::in_flight::ChangeFence) | the marker, until it is cleared |
//!
//! Only the process that has the queue and the queue pair changes the word. Another one that corrupts it does no more than by
//! corrupting the lock: completions are lost or torn.

use super::number::QpNumber;
use crate::sync::{self, AtomicU32};

const UNUSED: u32 = 0;
const SHARED: u32 = u32::MAX;

/// The word. Any value is a state.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct SoleProducer(AtomicU32);

impl SoleProducer {
    /// No queue pair uses the queue. Under its lock.
    pub fn begin(&self) {
        sync::store(&self.0, UNUSED);
    }

    /// A queue pair is to use the queue for its sends; false if it is not alone, and has to [share](Self::share).
    #[must_use]
    pub fn claim(&self, qp: QpNumber) -> bool {
        sync::cas(&self.0, UNUSED, qp.get()).is_ok()
    }

    /// Whether this queue pair is alone. For the owner of its send queue, with its marker set.
    #[inline(always)]
    pub fn is(&self, qp: QpNumber) -> bool {
        sync::load(&self.0) == qp.get()
    }

    /// The queue pair that is alone, if one is.
    ///
    /// # Staleness
    /// Another one may share the queue at once.
    pub fn producer(&self) -> Option<QpNumber> {
        let word = sync::load(&self.0);
        (word != UNUSED && word != SHARED).then(|| QpNumber::new(word))
    }

    /// Producers take turns under the lock from now on. Returns the queue pair that was alone: it may push without the lock
    /// until its marker is cleared.
    #[must_use]
    pub fn share(&self) -> Option<QpNumber> {
        let mut before = UNUSED;
        sync::fetch_update(&self.0, |word| {
            before = word;
            (word != SHARED).then_some(SHARED)
        });
        (before != UNUSED && before != SHARED).then(|| QpNumber::new(before))
    }

    /// A queue pair no longer uses the queue.
    pub fn end(&self, qp: QpNumber) {
        // Fails if it was not alone.
        let _ = sync::cas(&self.0, qp.get(), UNUSED);
    }
}
