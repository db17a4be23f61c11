//! Where the parts of a raw queue are in its memory.

use super::{Control, Slot, Tag};
use crate::queue::ring::Position;
use crate::queue::{CapacityError, consumer};

/// The layout of a raw queue: the [`Control`], then the slots, then the tags.
///
/// ```
/// use cq_core::queue::raw::Layout;
///
/// let layout = Layout { slots: 16, tags: false, promised: 16 };
/// assert_eq!(layout.bytes()?, Layout::SLOTS_AT + 16 * 48);
/// assert_eq!(Layout { tags: true, ..layout }.bytes()?, layout.bytes()? + 16 * 4);
/// assert!(Layout { slots: 12, promised: 12, ..layout }.bytes().is_err()); // not a power of two
/// # Ok::<(), cq_core::queue::CapacityError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Layout {
    /// The number of slots, a power of two.
    pub slots: usize,
    /// Whether each slot has a [`Tag`]. Writing tags costs the producer another cache line.
    pub tags: bool,
    /// The guaranteed capacity in completions, at most the number of slots ([O1](crate::contract#o1)). With more slots
    /// than that, the consumer releases them in larger steps, which saves the producer cache misses.
    pub promised: u32,
}

impl Layout {
    /// The size of the queue in bytes.
    ///
    /// # Errors
    /// The number of slots or the guaranteed capacity is invalid.
    pub const fn bytes(&self) -> Result<usize, CapacityError> {
        if let Err(error) = CapacityError::check_promise(self.slots, self.promised as usize) {
            return Err(error);
        }
        Ok(self.tags_at() + if self.tags { self.slots * size_of::<Tag>() } else { 0 })
    }

    /// The required alignment of the memory, in bytes.
    pub const ALIGN: usize = align_of::<Control>();

    /// The offset of the slots, in bytes.
    pub const SLOTS_AT: usize = size_of::<Control>();

    /// How many polled completions the consumer may have that it has not [released](Control::released), at most.
    #[must_use]
    pub const fn lag(&self) -> Position {
        consumer::lag(self.slots, self.promised)
    }

    pub(super) const fn tags_at(&self) -> usize {
        Self::SLOTS_AT + self.slots * size_of::<Slot>()
    }
}
