//! Tags: a word beside each slot of a raw queue, and polling with them.
#![allow(unsafe_code)]

use core::fmt;
use core::ptr::NonNull;

use super::raw::Consumer;
use super::ring::{Position, Ref};
use crate::sync::{self, AtomicU32, const_unless_loom};
use crate::transport::PollError;
use crate::wc::Wc;

/// A word beside a slot for the device's own use, handed back by [`poll_with`](Consumer::poll_with).
#[derive(Debug)]
#[repr(transparent)]
pub struct Tag(AtomicU32);

/// The tags of a ring, or none. They live as long as the ring that has them.
#[derive(Clone, Copy)]
pub struct Tags(Ref<'static, [Tag]>);

impl Tag {
    const_unless_loom! {
        /// Zero.
        #[must_use]
        pub const fn new() -> Self {
            Self(AtomicU32::new(0))
        }
    }
}

impl Default for Tag {
    fn default() -> Self {
        Self::new()
    }
}

impl Tags {
    /// # Safety
    /// The tags are there as long as copies of this are used.
    pub(super) unsafe fn kept(tags: &[Tag]) -> Self {
        // SAFETY: the caller's word.
        Self(unsafe { Ref::kept(NonNull::from(tags)) })
    }

    /// Keeps the tag of the completion that is about to be written to a slot.
    #[inline(always)]
    pub(super) fn store(self, slot: usize, tag: u32) {
        if let Some(place) = self.0.get(slot) {
            sync::store_u32(&place.0, tag);
        }
    }

    /// 0 where there are none.
    #[inline(always)]
    pub(super) fn load(self, slot: usize) -> u32 {
        self.0.get(slot).map_or(0, |tag| sync::load_u32(&tag.0))
    }
}

impl fmt::Debug for Tags {
    /// Without the tags: there are thousands.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tags", self.0.len())
    }
}

/// How many tags are kept between copying and handing out.
const CHUNK: usize = 32;

impl<C> Consumer<'_, C> {
    /// [`poll`](crate::transport::PollCq::poll), calling `each` with every completion and its tag (0 in a queue without tags). The
    /// slots have been given back by then, so `each` may let the device push as many more (O7).
    ///
    /// # Errors
    /// The queue has ended, and everything that was stored has been handed out (O3).
    #[inline]
    pub fn poll_with(
        &mut self,
        out: &mut [Wc],
        each: impl FnMut(&Wc, u32),
    ) -> Result<usize, PollError> {
        self.poll_for(out, |_| true, each)
    }

    /// [`poll_with`](Self::poll_with) for tags that `matter`; `each` is given 0 for the others. A tag lies in another
    /// cache line than its completion: one that is not looked at stays with the producer's core.
    ///
    /// # Errors
    /// The queue has ended, and everything that was stored has been handed out (O3).
    #[inline(always)]
    pub fn poll_for(
        &mut self,
        out: &mut [Wc],
        matter: impl Fn(&Wc) -> bool,
        mut each: impl FnMut(&Wc, u32),
    ) -> Result<usize, PollError> {
        self.poll_by(out, |this, out| this.take_tagged(out, &matter, &mut each))
    }

    fn take_tagged(
        &mut self,
        out: &mut [Wc],
        matter: &impl Fn(&Wc) -> bool,
        each: &mut impl FnMut(&Wc, u32),
    ) -> usize {
        // Most ask for one: known to be that, it needs neither loop nor array.
        if let [_] = out {
            return self.take_chunk::<1>(out, matter, each);
        }
        let mut count = 0;
        for room in out.chunks_mut(CHUNK) {
            let taken = self.take_chunk::<CHUNK>(room, matter, each);
            count += taken;
            // More may have come by now: that is the next poll's, or there would be a gap.
            if taken < room.len() {
                break;
            }
        }
        count
    }

    /// For room for `MOST` at most.
    #[inline]
    fn take_chunk<const MOST: usize>(
        &mut self,
        room: &mut [Wc],
        matter: &impl Fn(&Wc) -> bool,
        each: &mut impl FnMut(&Wc, u32),
    ) -> usize {
        let (mut tags, first) = ([0; MOST], self.position());
        let count = self.copy(room);
        for (nth, wc) in room[..count].iter().enumerate() {
            if matter(wc) {
                let slot = self.ring.index(first.wrapping_add(nth as Position));
                tags[nth] = self.ring.beside().load(slot);
            }
        }
        self.release();
        room[..count].iter().zip(&tags).for_each(|(wc, &tag)| each(wc, tag));
        count
    }
}
