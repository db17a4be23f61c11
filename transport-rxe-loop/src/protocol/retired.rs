//! Up to where the slots of a send queue have been given back (Q5). Three words, each with one writer at a time, so that
//! none needs a read-modify-write; the furthest of them counts.
//!
//! | word | written by | when |
//! |---|---|---|
//! | `polled` | the thread that polls the completion queue | a completion was polled |
//! | `dropped` | the producer that drops a completion, under the lock of the completion queue | nobody will poll it |
//! | `emptied` | the owner of the send queue | RESET: nothing that was posted will complete |
//!
//! Positions only grow. A thread that polled a completion and is late stores one that another word has passed: it gives
//! back nothing, and takes nothing back.
//!
//! ```
//! use transport_rxe_loop::protocol::number::Position;
//! use transport_rxe_loop::protocol::retired::Retired;
//! use transport_rxe_loop::protocol::tag;
//!
//! const CAPACITY: u32 = 4;
//! let retired = Retired::default();
//! retired.poll(tag::of_send(Position::new(2)), CAPACITY);
//! retired.drop(tag::of_send(Position::new(3)), CAPACITY);
//! retired.poll(tag::of_send(Position::new(1)), CAPACITY); // behind the others
//! retired.poll(tag::of_send(Position::new(9)), CAPACITY); // more than possible: corrupted by another process
//! assert_eq!(retired.position(), Position::new(3));
//! retired.empty(Position::new(5));
//! assert_eq!(retired.position(), Position::new(5));
//! ```

use super::number::Position;
use super::tag;
use crate::sync::{self, AtomicU64, Site};

/// The positions. Zeros are those of a new queue.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub struct Retired {
    polled: AtomicU64,
    dropped: AtomicU64,
    emptied: AtomicU64,
}

impl Retired {
    /// The position up to which slots can be used again.
    ///
    /// # Staleness
    /// There may be more by now, never fewer.
    #[inline]
    #[must_use]
    pub fn position(&self) -> Position {
        let [polled, dropped, emptied] = [&self.polled, &self.dropped, &self.emptied]
            .map(|word| Position::new(sync::acquire_at(word, Site::SeeRetired)));
        later(polled, later(dropped, emptied))
    }

    /// The completion with this tag was polled. An invalid tag is ignored.
    #[inline]
    pub fn poll(&self, tag: u32, capacity: u32) {
        self.advance(&self.polled, tag, capacity);
    }

    /// The completion with this tag was dropped.
    pub fn drop(&self, tag: u32, capacity: u32) {
        self.advance(&self.dropped, tag, capacity);
    }

    /// Everything before this position was dropped without completions.
    pub fn empty(&self, position: Position) {
        sync::release_at(&self.emptied, position.get(), Site::Retire);
    }

    #[inline]
    fn advance(&self, word: &AtomicU64, tag: u32, capacity: u32) {
        if let Some(next) = tag::past(self.position(), tag, capacity) {
            sync::release_at(word, next.get(), Site::Retire);
        }
    }

    /// The words, for a test to write.
    #[cfg(all(test, not(loom)))]
    pub(crate) const fn words(&self) -> [&AtomicU64; 3] {
        [&self.polled, &self.dropped, &self.emptied]
    }
}

/// The later of two positions, which may have wrapped.
#[inline]
const fn later(one: Position, other: Position) -> Position {
    if other.since(one) <= u64::MAX / 2 { other } else { one }
}

#[cfg(all(test, not(loom)))]
mod tests;
