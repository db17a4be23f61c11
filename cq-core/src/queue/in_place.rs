//! Entries that are read where they lie.
#![allow(unsafe_code)]

use core::fmt;
use core::iter::Chain;
use core::slice;

use super::channel::NoChannel;
use super::consumer::Consumer;
use super::slot::Slot;
use crate::entry::Entry;
use crate::transport::PollError;
use crate::wc::Wc;

/// The oldest entries of a queue, in its memory: they are not copied. Dropping this takes them from the queue: it releases their
/// slots ([S7](crate::contract#s7)), except that slots beyond the capacity are released late, as behind a poll.
///
/// ```
/// use cq_core::queue::SoftCq;
///
/// let mut storage = SoftCq::<4, u64>::of_entries();
/// let (mut producer, mut consumer) = storage.split();
/// (1..=4).try_for_each(|number| producer.push(&number))?;
///
/// let batch = consumer.poll_in_place(3)?;
/// assert_eq!(batch.iter().sum::<u64>(), 6);
/// assert!(producer.is_full(), "not released yet");
/// drop(batch);
/// assert_eq!(producer.available(), 3);
///
/// producer.push(&5)?;
/// let mut batch = consumer.poll_in_place(8)?;
/// assert_eq!(batch.as_slices(), (&[4][..], &[5][..]), "two slices where the memory wraps");
/// // A consumer that stops early leaves the others in the queue.
/// let served = batch.iter().take_while(|number| **number < 5).count();
/// batch.truncate(served);
/// drop(batch);
/// assert_eq!(consumer.poll_in_place(8)?.as_slices().0, [5]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # How it ends
/// | | the slots | the entries |
/// |---|---|---|
/// | dropped, also by a panic, by `?` or with a cancelled task | all are released | are taken, those too that nobody has read |
/// | [truncated](Self::truncate), then dropped | only those that it kept are released | the others are polled again |
/// | leaked, by [`mem::forget`](core::mem::forget) | none is released | are polled again, once the consumer is not borrowed any more |
///
/// For as long as it lives the producer has fewer free slots, and a device may overrun the queue
/// ([O7](crate::contract#o7)): do not answer an entry before it is released, if the answer lets the device push another one,
/// and copy what is kept for long, for example across an `await`.
///
/// In place the spare bits of an entry hold its generation. Those of a [`Wc`], its padding, are no part of its equality, and
/// [`to_bytes`](Wc::to_bytes) clears them.
///
/// Of a [`CompletionQueue`](crate::cq::CompletionQueue), `cq.get_mut().poll_in_place(…)` takes a batch. A queue with several
/// producers, or in memory that others may write to, has no batches in place.
#[must_use = "if unused, the entries are lost"]
pub struct InPlace<'q, 'a, E: Entry = Wc, C = NoChannel> {
    consumer: &'q mut Consumer<'a, E, C>,
    count: usize,
}

impl<'a, E: Entry, C> Consumer<'a, E, C> {
    /// Takes up to `most` entries, oldest first, without copying them. Never blocks. If the queue is empty, there are none.
    ///
    /// # Errors
    /// The queue has ended, and everything stored has been taken ([O3](crate::contract#o3)).
    #[inline(always)]
    pub fn poll_in_place(&mut self, most: usize) -> Result<InPlace<'_, 'a, E, C>, PollError> {
        let count = if most == 1 {
            self.take_or_end(1, |this| this.next.is_readable().then_some(1))?
        } else {
            self.poll_by(most, |this| this.ring.published(this.position(), most))?
        };
        Ok(InPlace { consumer: self, count })
    }
}

impl<E: Entry, C> InPlace<'_, '_, E, C> {
    /// The number of entries.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The entries, oldest first. The second slice has those behind the end of the queue's memory, if there are any.
    #[inline]
    #[must_use]
    pub fn as_slices(&self) -> (&[E], &[E]) {
        // SAFETY: the consumer is borrowed, so it is the only one, and releases nothing. The poll has acquired that these slots are
        // published, of which `next` is the first: it has the slot at the position.
        unsafe {
            match self.count {
                // A batch of one, or of none, needs no position.
                0 | 1 => (Slot::entries(self.consumer.next.slot.run(0, self.count)), &[]),
                count => self.consumer.ring.entries(self.consumer.position(), count),
            }
        }
    }

    /// The entries, oldest first.
    #[inline]
    pub fn iter(&self) -> Chain<slice::Iter<'_, E>, slice::Iter<'_, E>> {
        self.into_iter()
    }

    /// Keeps the first `count` entries, or all if there are fewer. The others are polled again.
    #[inline]
    pub fn truncate(&mut self, count: usize) {
        self.count = self.count.min(count);
    }
}

impl<'b, E: Entry, C> IntoIterator for &'b InPlace<'_, '_, E, C> {
    type Item = &'b E;
    type IntoIter = Chain<slice::Iter<'b, E>, slice::Iter<'b, E>>;

    #[inline]
    fn into_iter(self) -> Self::IntoIter {
        let (first, second) = self.as_slices();
        first.iter().chain(second)
    }
}

impl<E: Entry + fmt::Debug, C> fmt::Debug for InPlace<'_, '_, E, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

impl<E: Entry, C> Drop for InPlace<'_, '_, E, C> {
    #[inline]
    fn drop(&mut self) {
        // Under loom, a read of each entry: they were in use until now.
        #[cfg(loom)]
        assert_eq!(self.consumer.ring.published(self.consumer.position(), self.count), self.count);
        match self.count {
            0 => return,
            1 => self.consumer.pass_one(),
            count => self.consumer.pass(count),
        }
        self.consumer.release();
    }
}
