//! A producer among several: a push, from the reservation to the event.
#![allow(unsafe_code)]

use super::super::channel::{Channel, NoChannel, SplitSignal, Token};
use super::super::completion::Completion;
use super::super::health::Dropped;
use super::super::owner::Owner;
use super::super::producer::{TryPushError, while_full};
use super::super::ring::{Position, Ref};
use super::reservation::{CachedHead, End, IfFull, Reserved, SharedRing};
use super::{NewRing, Shared};
use crate::entry::Entry;
use crate::sentences::sentences;
use crate::sync;
use crate::wc::Wc;

/// One of several producers. Clone it to get another one, for another thread.
///
/// Dropping the last one closes the queue: the consumer polls what was stored, and then gets
/// [`PollError::Closed`](crate::transport::PollError::Closed). A queue that has had 2³² − 1 producers at once, leaked ones
/// among them, is never closed.
#[derive(Debug)]
pub struct SharedProducer<'a, E: Entry = Wc, C: Channel = NoChannel> {
    ring: SharedRing<'a, E>,
    cached_head: CachedHead,
    shared: Ref<'a, Shared>,
    channel: C,
    owner: Owner,
}

impl<'a, E: Entry, C: Channel> SharedProducer<'a, E, C> {
    /// The first producer.
    pub(super) fn new(
        ring: SharedRing<'a, E>,
        shared: Ref<'a, Shared>,
        channel: C,
        owner: Owner,
    ) -> Self {
        sync::join(&shared.producers);
        Self { cached_head: CachedHead::of(&ring), ring, shared, channel, owner }
    }

    /// Stores an entry, and raises the event if the consumer armed for this kind of entry. For devices, which
    /// cannot wait for a free slot.
    ///
    /// # Errors
    /// [`Dropped`](PushError::Dropped): the queue is full and overruns ([O3](crate::contract#o3)), or has already
    /// ended; the entry is dropped. [`Resized`](PushError::Resized): the entry can be pushed again after
    /// [`follow`](Self::follow).
    #[inline]
    pub fn push<T: Completion<E>>(&mut self, completion: &T) -> Result<(), PushError> {
        self.push_batch(core::slice::from_ref(completion))
    }

    /// [`push`](Self::push) for a batch, which is contiguous in the queue and raises at most one event. The consumer
    /// sees none of the entries before all are stored.
    ///
    /// # Errors
    /// [`Dropped`](PushError::Dropped): the queue has too few free slots and overruns, or has already ended; the
    /// entries that fit are stored, the [last ones](Dropped::lost) are dropped. [`Resized`](PushError::Resized):
    /// none is stored, and all can be pushed again after [`follow`](Self::follow).
    #[inline]
    pub fn push_batch<T: Completion<E>>(&mut self, batch: &[T]) -> Result<(), PushError> {
        match self.store(batch, IfFull::Close) {
            (_, None) => Ok(()),
            (_, Some(End::Resized)) => Err(PushError::Resized),
            (stored, Some(End::Full | End::Overrun)) => {
                Err(PushError::Dropped(self.overrun(batch.len() - stored)))
            }
        }
    }

    /// [`push`](Self::push) for producers that can wait: a full queue does not overrun.
    ///
    /// # Errors
    /// [`Full`](TryPushError::Full): the entry can be pushed again later. [`Resized`](TryPushError::Resized): it
    /// can be pushed again after [`follow`](Self::follow). [`Ended`](TryPushError::Ended): none can be pushed any more.
    #[inline]
    pub fn try_push<T: Completion<E>>(&mut self, completion: &T) -> Result<(), TryPushError> {
        self.try_push_batch(core::slice::from_ref(completion)).map(drop)
    }

    /// [`try_push`](Self::try_push) for a batch: stores the first entries, as many as there are free slots, and
    /// returns their number. They are contiguous in the queue and raise at most one event. What each case returns is in
    /// the table of the [lone producer](super::super::Producer::try_push_batch).
    ///
    /// # Errors
    /// As for [`try_push`](Self::try_push). Nothing was stored.
    #[inline]
    pub fn try_push_batch<T: Completion<E>>(&mut self, batch: &[T]) -> Result<usize, TryPushError> {
        match self.store(batch, IfFull::Leave) {
            (0, Some(End::Full)) => Err(TryPushError::Full),
            (0, Some(End::Resized)) => Err(TryPushError::Resized),
            (0, Some(End::Overrun)) => Err(TryPushError::Ended),
            (stored, _) => Ok(stored),
        }
    }

    /// [`try_push`](Self::try_push) that calls `wait` while the queue is full: a yield, or a spin-loop hint.
    ///
    /// # Errors
    /// [`Resized`](TryPushError::Resized) or [`Ended`](TryPushError::Ended): nothing was stored.
    pub fn push_or_wait<T: Completion<E>>(
        &mut self,
        completion: &T,
        wait: impl FnMut(),
    ) -> Result<(), TryPushError> {
        while_full(|| self.try_push(completion), wait)
    }

    /// The number of slots in this producer's ring that are reserved and not released: those of unpolled entries,
    /// of entries being stored and, if there are more slots than the guaranteed capacity, of polled ones, at most
    /// a quarter of the slots.
    ///
    /// # Staleness
    /// There may be more by now, or fewer.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ring.unpolled() as usize
    }

    /// Whether all entries are polled and their slots released.
    ///
    /// # Staleness
    /// As for [`len`](Self::len).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of free slots. A queue that has ended accepts no entry, whatever this says.
    ///
    /// # Staleness
    /// As for [`len`](Self::len): other producers push, too.
    #[must_use]
    pub fn free_slots(&self) -> usize {
        self.ring.ring.storage() - self.len()
    }

    /// Whether there is no free slot.
    ///
    /// # Staleness
    /// As for [`len`](Self::len).
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.free_slots() == 0
    }

    /// The highest [`len`](Self::len) that this producer has found in its ring. It checks now, and each time that the
    /// free slots it found last are used up.
    ///
    /// # Staleness
    /// This value was reached. There may have been more between the checks: a peak below the capacity can be missed.
    #[must_use]
    pub fn high_water(&mut self) -> usize {
        self.cached_head.high_water(&self.ring) as usize
    }

    /// Whether the consumer is gone, so nothing more will be polled ([S3](crate::contract#s3)).
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.shared.alerts.health.is_abandoned()
    }

    /// Switches to the ring that the queue was resized to. Entries that must stay in order must not be pushed by
    /// another producer meanwhile.
    ///
    /// # Panics
    /// The ring belongs to another queue.
    pub fn follow(&mut self, to: &NewRing<'a, E>) {
        assert!(self.shared.is(&to.of), "the ring of another queue");
        (self.ring, self.cached_head) = (to.ring.clone(), CachedHead::of(&to.ring));
    }

    /// Stores the first entries, as many as there are free slots. Returns their number, and why not all.
    #[inline(always)]
    fn store<T: Completion<E>>(&mut self, batch: &[T], if_full: IfFull) -> (usize, Option<End>) {
        if batch.is_empty() {
            return (0, None);
        }
        let health = &self.shared.alerts.health;
        if health.refuses() {
            health.see_refusal();
            return (0, Some(End::Overrun));
        }
        let reserved = self.cached_head.reserve(&self.ring, batch.len(), if_full);
        let stored = &batch[..reserved.count];
        // SAFETY: this producer has reserved the positions, so they are its own. The consumer has released their slots,
        // which the load of `CachedHead` has acquired.
        unsafe { self.ring.ring.write_all(reserved.position, stored) };
        if !stored.is_empty() {
            self.notify(|| stored.iter().any(T::is_urgent) || self.unblocks(reserved));
        }
        (stored.len(), reserved.end)
    }

    /// Whether a consumer that found these positions unpublished may have missed something after them: an entry
    /// that is already published, or the end of the ring or of the queue. To be called after the
    /// [`push_fence`](sync::push_fence).
    #[cold]
    fn unblocks(&self, reserved: Reserved) -> bool {
        let next = reserved.position + reserved.count as Position;
        self.ring.ring.place(next).is_published()
            || self.ring.has_ended()
            || self.shared.alerts.health.refuses()
    }

    #[inline(always)]
    fn notify(&self, urgent: impl Fn() -> bool) {
        if C::RAISES {
            sync::push_fence();
            self.shared.alerts.arm.fire_shared(urgent, || self.channel.notify());
        }
    }

    #[cold]
    #[inline(never)]
    fn overrun(&self, lost: usize) -> Dropped {
        let lost = u32::try_from(lost).unwrap_or(u32::MAX);
        let dropped = self.shared.alerts.health.drop_more_shared(lost);
        self.notify(|| true);
        dropped
    }
}

impl<E: Entry, C: SplitSignal> Clone for SharedProducer<'_, E, C> {
    fn clone(&self) -> Self {
        // Counted last: if the clone of the channel panics, there is no new producer.
        let (channel, owner) = (self.channel.copy(&Token::THE), self.owner.clone());
        sync::join(&self.shared.producers);
        Self { ring: self.ring.clone(), channel, owner, ..*self }
    }
}

impl<E: Entry, C: Channel> Drop for SharedProducer<'_, E, C> {
    fn drop(&mut self) {
        if sync::leave(&self.shared.producers) && self.shared.alerts.health.close() {
            self.notify(|| true);
        }
    }
}

/// Why an entry was not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum PushError {
    /// It was dropped because the queue is full or has ended.
    Dropped(Dropped),
    /// The queue was resized: [`follow`](SharedProducer::follow), then push again.
    Resized,
}

sentences!(PushError {
    Self::Dropped(dropped) => ("{dropped}");
    Self::Resized => ("the completion queue was resized: follow it to its new ring and push again");
});

#[cfg(test)]
mod tests;
