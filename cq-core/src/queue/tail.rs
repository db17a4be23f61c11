//! Where a producer stopped, for the next one.

use super::ring::Position;

/// The state of a producer, with which another one can resume. Of use to producers that share, under a lock, a
/// [raw](super::raw) queue.
///
/// ```
/// use cq_core::queue::raw::{RawQueue, Slot};
/// use cq_core::queue::{Control, NoChannel, Tail};
/// use cq_core::wc::{Wc, WcStatus};
///
/// let (control, slots) = (Control::new(), [const { Slot::new() }; 4]);
/// // SAFETY: one producer at a time is made of it, and there is no other.
/// let mut queue = unsafe { RawQueue::of(&control, &slots, &[], 4) }?;
/// let mut saved = Tail::at(0).to_words(); // in memory that the producers' lock protects
/// for wr_id in [1, 2] {
///     let mut producer = queue.producer(Tail::from_words(saved), NoChannel);
///     producer.push(&Wc::new(wr_id, WcStatus::SUCCESS, 5))?;
///     saved = producer.tail().to_words();
/// }
/// assert_eq!(Tail::from_words(saved).position(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Tail {
    position: Position,
    /// The position up to which slots were free when a producer last loaded the head.
    limit: Position,
}

impl Tail {
    /// The tail at `position`. Its producer loads the head before the first push.
    #[must_use]
    pub const fn at(position: Position) -> Self {
        Self { position, limit: position }
    }

    /// The number of entries stored, wrapping.
    #[inline]
    #[must_use]
    pub const fn position(&self) -> Position {
        self.position
    }

    /// Two words to save while no producer is active.
    #[must_use]
    pub const fn to_words(self) -> [Position; 2] {
        [self.position, self.limit]
    }

    /// The tail of which [`to_words`](Self::to_words) returned these words. In a raw queue any words are sound; wrong
    /// ones lose or forge entries.
    #[must_use]
    pub const fn from_words([position, limit]: [Position; 2]) -> Self {
        Self { position, limit }
    }

    /// The number of free slots that it knows of.
    #[inline(always)]
    pub(super) const fn free(&self) -> Position {
        self.limit.wrapping_sub(self.position)
    }

    /// The tail behind so many more entries.
    #[inline(always)]
    pub(super) const fn after(self, entries: Position) -> Self {
        Self { position: self.position.wrapping_add(entries), ..self }
    }

    /// The same tail, knowing of so many free slots.
    #[inline(always)]
    pub(super) const fn with_free(self, free: Position) -> Self {
        Self { limit: self.position.wrapping_add(free), ..self }
    }

    /// This tail, without a limit that cannot be in a ring of `storage` slots.
    #[inline(always)]
    pub(super) const fn within(self, storage: usize) -> Self {
        if self.free() > storage as Position { Self::at(self.position) } else { self }
    }
}
