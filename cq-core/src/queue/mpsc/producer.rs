//! A producer among several: a push, from the reservation to the event.
#![allow(unsafe_code)]

use super::super::channel::{NoChannel, QueueChannel, SplitSignal, Token};
use super::super::completion::Completion;
use super::super::end::{BatchError, DroppedError, End};
use super::super::owner::Owner;
use super::super::reference::Ref;
use super::super::ring::Position;
use super::reservation::{Cached, IfFull, Lack, Reserved, SharedRing};
use super::{NewRing, Shared};
use crate::entry::Entry;
use crate::sentences;
use crate::sync;
use crate::wc::Wc;

/// One of several producers. Clone it to get another one, for another thread.
///
/// Dropping the last one closes the queue: the consumer polls what was stored, and then gets
/// [`PollError::Closed`](crate::transport::PollError::Closed). A queue that has had 2³² − 1 producers at once, leaked ones
/// among them, is never closed.
#[derive(Debug)]
pub struct SharedProducer<'a, E: Entry = Wc, C: QueueChannel = NoChannel> {
    ring: SharedRing<'a, E>,
    cached: Cached,
    shared: Ref<'a, Shared>,
    channel: C,
    owner: Owner,
}

impl<'a, E: Entry, C: QueueChannel> SharedProducer<'a, E, C> {
    /// The first producer.
    pub(super) fn new(
        ring: SharedRing<'a, E>,
        shared: Ref<'a, Shared>,
        channel: C,
        owner: Owner,
    ) -> Self {
        sync::join(&shared.producers);
        Self { cached: Cached::of(&ring), ring, shared, channel, owner }
    }

    /// Stores an entry, and raises the event if the consumer armed for this kind of entry.
    ///
    /// # Errors
    /// [`Full`](PushError::Full): nothing has changed, and it can be pushed again later ([S1](crate::contract#s1)).
    /// [`Resized`](PushError::Resized): it can be pushed again after [`follow`](Self::follow).
    /// [`Ended`](PushError::Ended): nothing can be pushed any more.
    #[inline]
    pub fn push<T: Completion<E>>(&mut self, completion: &T) -> Result<(), PushError> {
        let one = core::slice::from_ref(completion);
        let reserved = self.store(one, IfFull::Leave);
        self.notify_of(one, reserved);
        reserved.lack.map_or(Ok(()), |lack| Err(self.why_not(lack)))
    }

    /// [`push`](Self::push) for a batch: stores the first entries, as many as there are free slots. They are contiguous in the
    /// queue, and raise at most one event. The consumer sees none of them before all are stored.
    ///
    /// # Errors
    /// As for `push`, with [the number](BatchError::stored) of those that are stored: push the others again later.
    #[inline]
    pub fn push_batch<T: Completion<E>>(
        &mut self,
        batch: &[T],
    ) -> Result<(), BatchError<PushError>> {
        let reserved = self.store(batch, IfFull::Leave);
        self.notify_of(batch, reserved);
        let unstored = |lack| BatchError { stored: reserved.count, why: self.why_not(lack) };
        reserved.lack.map_or(Ok(()), |lack| Err(unstored(lack)))
    }

    /// [`push`](Self::push) that calls `wait` while the queue is full: a yield, or a spin-loop hint.
    ///
    /// # Errors
    /// As for `push`, but never [`Full`](PushError::Full): nothing was stored.
    pub fn push_or_wait<T: Completion<E>>(
        &mut self,
        completion: &T,
        wait: impl FnMut(),
    ) -> Result<(), PushError> {
        let all = self.push_batch_or_wait(core::slice::from_ref(completion), wait);
        all.map_err(|error| error.why)
    }

    /// [`push_or_wait`](Self::push_or_wait) for a batch. Entries are stored as soon as there are slots for them: those of
    /// other producers may come between, and the consumer may poll the first ones while `wait` is called for the others.
    ///
    /// # Errors
    /// As for `push_or_wait`. Some may have been stored.
    pub fn push_batch_or_wait<T: Completion<E>>(
        &mut self,
        batch: &[T],
        mut wait: impl FnMut(),
    ) -> Result<(), BatchError<PushError>> {
        let mut stored = 0;
        while let Err(error) = self.push_batch(&batch[stored..]) {
            stored += error.stored;
            match error.why {
                PushError::Full => wait(),
                why => return Err(BatchError { stored, why }),
            }
        }
        Ok(())
    }

    /// [`push`](Self::push) for devices, which can't wait for a free slot: on a full queue the entry is dropped, and the queue
    /// has overrun, for good ([O3](crate::contract#o3)).
    ///
    /// # Errors
    /// As for [`push_batch_or_overrun`](Self::push_batch_or_overrun).
    #[inline]
    pub fn push_or_overrun<T: Completion<E>>(
        &mut self,
        completion: &T,
    ) -> Result<(), OverrunError> {
        self.push_batch_or_overrun(core::slice::from_ref(completion))
    }

    /// [`push_or_overrun`](Self::push_or_overrun) for a batch, which is contiguous in the queue and raises at most one event.
    /// The consumer sees none of the entries before all are stored.
    ///
    /// # Errors
    /// [`Dropped`](OverrunError::Dropped): the queue has too few free slots and overruns, or has already ended; the
    /// entries that fit are stored, the [last ones](DroppedError::lost) are dropped. [`Resized`](OverrunError::Resized):
    /// none is stored, and all can be pushed again after [`follow`](Self::follow).
    #[inline]
    pub fn push_batch_or_overrun<T: Completion<E>>(
        &mut self,
        batch: &[T],
    ) -> Result<(), OverrunError> {
        let reserved = self.store(batch, IfFull::Close);
        match reserved.lack {
            None => self.notify_of(batch, reserved),
            Some(Lack::Resized) => return Err(OverrunError::Resized),
            // It raises the event, also of those that are stored.
            Some(_) => return Err(self.overrun(batch.len() - reserved.count).into()),
        }
        Ok(())
    }

    /// How the queue has ended, if it has. Everything that the consumer did before it ended the queue is visible then.
    ///
    /// # Staleness
    /// It may end at any time.
    #[must_use]
    pub fn end(&self) -> Option<End> {
        self.shared.alerts.ends.end()
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
    pub fn available(&self) -> usize {
        self.ring.ring.storage() - self.len()
    }

    /// Whether there is no free slot.
    ///
    /// # Staleness
    /// As for [`len`](Self::len).
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.available() == 0
    }

    /// The highest [`len`](Self::len) that this producer has found in its ring. It checks now, and each time that the
    /// free slots it found last are used up.
    ///
    /// # Staleness
    /// This value was reached. There may have been more between the checks: a peak below the capacity can be missed.
    #[must_use]
    pub fn measure_high_water(&mut self) -> usize {
        self.cached.high_water(&self.ring) as usize
    }

    /// Switches to the ring that the queue was resized to. Entries that must stay in order must not be pushed by
    /// another producer meanwhile.
    ///
    /// # Panics
    /// The ring belongs to another queue.
    pub fn follow(&mut self, to: &NewRing<'a, E>) {
        assert!(self.shared.is(&to.of), "the ring of another queue");
        (self.ring, self.cached) = (to.ring.clone(), Cached::of(&to.ring));
    }

    /// Stores the first entries, as many as there are free slots. Returns where, and why not all. Raises no event.
    #[inline(always)]
    fn store<T: Completion<E>>(&mut self, batch: &[T], if_full: IfFull) -> Reserved {
        let alerts = &self.shared.alerts;
        if batch.is_empty() || alerts.ends.refuses() {
            let lack = (!batch.is_empty()).then_some(Lack::Ended);
            return Reserved { position: 0, count: 0, lack };
        }
        let reserved = self.cached.reserve(&self.ring, batch.len(), if_full);
        // SAFETY: this producer has reserved the positions, so they are its own. The consumer has released their slots,
        // which the load of `Cached` has acquired.
        unsafe { self.ring.ring.write_all(reserved.position, &batch[..reserved.count]) };
        reserved
    }

    /// Raises the event if the consumer armed for what is stored.
    #[inline(always)]
    fn notify_of<T: Completion<E>>(&self, batch: &[T], reserved: Reserved) {
        if reserved.count > 0 {
            let is_urgent = || batch.iter().take(reserved.count).any(T::is_urgent);
            self.notify(|| is_urgent() || self.unblocks(reserved));
        }
    }

    /// Whether a consumer that found these positions unpublished may have missed something after them: an entry
    /// that is already published, or the end of the ring or of the queue. To be called after the
    /// [`push_fence`](sync::push_fence).
    #[cold]
    fn unblocks(&self, reserved: Reserved) -> bool {
        let next = reserved.position + reserved.count as Position;
        self.ring.ring.place(next).is_published()
            || self.ring.has_ended()
            || self.shared.alerts.ends.refuses()
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
    fn why_not(&self, lack: Lack) -> PushError {
        match lack {
            Lack::Full => PushError::Full,
            Lack::Resized => PushError::Resized,
            // The producer that closed the ring may not have counted yet what it dropped, which is one at least.
            Lack::Ended => PushError::Ended(self.end().unwrap_or(End::Overrun { dropped: 1 })),
        }
    }

    #[cold]
    #[inline(never)]
    fn overrun(&self, lost: usize) -> DroppedError {
        let lost = u32::try_from(lost).unwrap_or(u32::MAX);
        let dropped = self.shared.alerts.ends.drop_more_shared(lost);
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

impl<E: Entry, C: QueueChannel> Drop for SharedProducer<'_, E, C> {
    fn drop(&mut self) {
        if sync::leave(&self.shared.producers) && self.shared.alerts.ends.close() {
            self.notify(|| true);
        }
    }
}

/// Why one of several producers did not store an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum PushError {
    /// There is no free slot until the consumer has polled. Push it again later.
    Full,
    /// The queue was resized: [`follow`](SharedProducer::follow), then push it again.
    Resized,
    /// The queue has ended, for good.
    Ended(End),
}

sentences!(PushError {
    Self::Full => ("the completion queue is full: push again once the consumer has polled");
    Self::Resized => ("the completion queue was resized: follow it to its new ring and push again");
    Self::Ended(end) => ("{end}");
});

crate::from_causes! {
    End => PushError::Ended;
    DroppedError => OverrunError::Dropped;
}

/// Why one of several producers that [overrun](SharedProducer::push_or_overrun) a full queue did not store an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum OverrunError {
    /// It was dropped because the queue is full or has ended.
    Dropped(DroppedError),
    /// The queue was resized: [`follow`](SharedProducer::follow), then push it again.
    Resized,
}

sentences!(OverrunError {
    Self::Dropped(dropped) => ("{dropped}");
    Self::Resized => ("{}", PushError::Resized);
});
