//! Tags: a word for each slot of a raw queue. Polling with tags.
use super::RawConsumer;
use crate::queue::ring::Position;
use crate::queue::slot::Beside;
use crate::sync::{self, AtomicU32, const_unless_loom};
use crate::transport::PollError;
use crate::wc::Wc;

/// A word for each slot, for the device's own use, returned by [`poll_with`](RawConsumer::poll_with).
///
/// ```
/// use cq_core::queue::raw::{RawQueue, Slot, Tag};
/// use cq_core::queue::{Control, NoChannel, Tagged};
/// use cq_core::wc::{Wc, WcStatus};
///
/// let (control, slots) = (Control::new(), [const { Slot::new() }; 4]);
/// let tags = [const { Tag::new() }; 4];
/// // SAFETY: the queue has these two sides, and no others.
/// let queue = unsafe { RawQueue::of(&control, &slots, &tags, 4) }?;
/// let (mut producer, mut consumer) = queue.into_sides(0, NoChannel, NoChannel);
/// let wc = Wc::new(7, WcStatus::SUCCESS, 5);
/// producer.push(&Tagged { wc, tag: 99, solicited: false })?;
/// consumer.poll_with(&mut [Wc::default(); 4], |wc, tag| assert_eq!((wc.wr_id(), tag), (7, 99)))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Tag(AtomicU32);

/// The tags of a ring, or none.
pub type Tags = Beside<Tag>;

impl Tag {
    const_unless_loom! {
        /// A tag of 0.
        #[must_use]
        pub const fn new() -> Self {
            Self(AtomicU32::new(0))
        }
    }
}

impl Tags {
    /// Stores the tag of the completion that is about to be written to `slot`.
    #[inline(always)]
    pub(super) fn store(self, slot: usize, tag: u32) {
        if let Some(place) = self.get(slot) {
            sync::store_u32(&place.0, tag);
        }
    }

    /// Loads the tag of `slot`; 0 if there are no tags.
    #[inline(always)]
    pub(super) fn load(self, slot: usize) -> u32 {
        self.get(slot).map_or(0, |tag| sync::load_u32(&tag.0))
    }
}

/// How many tags are held between the copy and the calls of `each`.
const CHUNK: usize = 32;

impl<C> RawConsumer<'_, C> {
    /// [`poll`](crate::transport::PollCq::poll_into) that calls `each` with every completion and its tag (0 in a queue
    /// without tags). The slots are released before, so `each` may let the device push as many more
    /// ([O7](crate::contract#o7)).
    ///
    /// # Errors
    /// The queue has ended, and everything stored has been polled ([O3](crate::contract#o3)).
    #[inline]
    pub fn poll_with(
        &mut self,
        out: &mut [Wc],
        mut each: impl FnMut(&Wc, u32),
    ) -> Result<usize, PollError> {
        self.poll_by(out.len(), |this| this.take_chunks(out, &mut each))
    }

    fn take_chunks(&mut self, out: &mut [Wc], each: &mut impl FnMut(&Wc, u32)) -> usize {
        let mut count = 0;
        for chunk in out.chunks_mut(CHUNK) {
            let taken = self.take_chunk(chunk, each);
            count += taken;
            // More may be published by now, but must not be copied to the next chunk: that would leave a gap in `out`.
            if taken < chunk.len() {
                break;
            }
        }
        count
    }

    /// Takes entries into `out`, which holds at most [`CHUNK`].
    fn take_chunk(&mut self, out: &mut [Wc], each: &mut impl FnMut(&Wc, u32)) -> usize {
        let (mut tags, first) = ([0; CHUNK], self.position());
        let count = self.copy(out);
        for (nth, tag) in tags[..count].iter_mut().enumerate() {
            let slot = self.ring.index(first.wrapping_add(nth as Position));
            *tag = self.ring.beside().load(slot);
        }
        self.release();
        out[..count].iter().zip(&tags).for_each(|(wc, &tag)| each(wc, tag));
        count
    }
}
