//! Where a producer stopped, for the next one.

use super::ring::Position;

/// The state of a producer, with which another one can resume. Of use to producers that take turns on a
/// [raw](super::raw) queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
