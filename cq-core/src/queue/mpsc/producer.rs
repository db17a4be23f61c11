//! The device's side, of which there are several: a push, from the reservation to the event.
#![allow(unsafe_code)]

use super::super::channel::{Channel, NoChannel};
use super::super::completion::Completion;
use super::super::health::Dropped;
use super::super::owner::Owner;
use super::super::producer::TryPushError;
use super::super::ring::{Position, Ref};
use super::reservation::{End, IfFull, Reserved, SeenHead, SharedRing};
use super::{NewRing, Shared};
use crate::sync;
use crate::transport::sentences;

/// One of several producers; a clone is another one, for another thread.
///
/// When the last one is dropped, the queue is closed: the consumer is handed out what was stored, and then
/// [`PollError::Closed`](crate::transport::PollError::Closed).
#[derive(Debug)]
pub struct Producer<'a, C: Channel = NoChannel> {
    ring: SharedRing<'a>,
    seen_head: SeenHead,
    shared: Ref<'a, Shared>,
    channel: C,
    owner: Owner,
}

impl<'a, C: Channel> Producer<'a, C> {
    /// The first one.
    pub(super) fn new(
        ring: SharedRing<'a>,
        shared: Ref<'a, Shared>,
        channel: C,
        owner: Owner,
    ) -> Self {
        sync::join(&shared.producers);
        Self { seen_head: SeenHead::of(&ring), ring, shared, channel, owner }
    }

    /// Adds a completion, and raises the event that the consumer armed for, if this is it. For a device, which can't wait
    /// for room.
    ///
    /// # Errors
    /// The queue is full: it overruns (O3). Or it has ended before. The completion is dropped. Or it was resized, and
    /// the completion can be pushed again.
    #[inline]
    pub fn push<T: Completion>(&mut self, completion: &T) -> Result<(), PushError> {
        self.push_batch(core::slice::from_ref(completion))
    }

    /// [`push`](Self::push) of several, which follow each other in the queue and raise one event at most. A consumer sees
    /// none of them before all are stored.
    ///
    /// # Errors
    /// The queue has no room for all of them, or has ended before. Those that fit are stored, the [last
    /// ones](Dropped::lost) are dropped. Or it was resized: none is stored, and all can be pushed again.
    #[inline]
    pub fn push_batch<T: Completion>(&mut self, batch: &[T]) -> Result<(), PushError> {
        match self.store(batch, IfFull::Close) {
            (_, None) => Ok(()),
            (_, Some(End::Resized)) => Err(PushError::Resized),
            (stored, Some(End::Full | End::Overrun)) => {
                Err(PushError::Dropped(self.overrun(batch.len() - stored)))
            }
        }
    }

    /// [`push`](Self::push) for who can wait: a full queue does not overrun.
    ///
    /// # Errors
    /// The queue is full, and the completion can be pushed again later. Or it was resized, and the completion can be pushed
    /// again. Or it has ended, or its consumer is gone, for ever.
    #[inline]
    pub fn try_push<T: Completion>(&mut self, completion: &T) -> Result<(), TryPushError> {
        self.try_push_batch(core::slice::from_ref(completion)).map(drop)
    }

    /// [`try_push`](Self::try_push) of several: stores as many as there is room for, the first ones, and says how many.
    /// They follow each other in the queue and raise one event at most.
    ///
    /// # Errors
    /// The queue is full or was resized, and nothing was stored. Or it has ended, or its consumer is gone, for ever.
    #[inline]
    pub fn try_push_batch<T: Completion>(&mut self, batch: &[T]) -> Result<usize, TryPushError> {
        match self.store(batch, IfFull::Leave) {
            (0, Some(End::Full)) => Err(TryPushError::Full),
            (0, Some(End::Resized)) => Err(TryPushError::Resized),
            (0, Some(End::Overrun)) => Err(TryPushError::Ended),
            (stored, _) => Ok(stored),
        }
    }

    /// How many completions the consumer has not given back in the ring that this producer pushes to: those that are not
    /// polled or are being stored, and where there are more slots than were promised, a few that are polled.
    ///
    /// # Staleness
    /// There may be more by now, or fewer.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ring.unpolled() as usize
    }

    /// Whether all are polled and given back.
    ///
    /// # Staleness
    /// As for [`len`](Self::len).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many more completions there is room for.
    ///
    /// # Staleness
    /// As for [`len`](Self::len): others push, too.
    #[must_use]
    pub fn free_slots(&self) -> usize {
        self.ring.ring.storage() - self.len()
    }

    /// Whether there is no room for another completion.
    ///
    /// # Staleness
    /// As for [`len`](Self::len).
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.free_slots() == 0
    }

    /// The most unpolled completions that this producer has found in its ring. It looks now, and each time that it has
    /// filled what was free when it looked last.
    ///
    /// # Staleness
    /// There were as many; in between there may have been more.
    #[must_use]
    pub fn high_water(&mut self) -> usize {
        self.seen_head.high_water(&self.ring) as usize
    }

    /// Whether the consumer is gone, so that nobody will poll.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.shared.alerts.health.is_abandoned()
    }

    /// Goes on in the ring that the queue was resized to. Completions that are to stay in order must not be pushed by
    /// another producer meanwhile.
    ///
    /// # Panics
    /// The ring is another queue's.
    pub fn follow(&mut self, to: &NewRing<'a>) {
        assert!(self.shared.is(&to.of), "the ring of another queue");
        (self.ring, self.seen_head) = (to.ring.clone(), SeenHead::of(&to.ring));
    }

    /// Stores as many as there is room for; says how many, and why not all.
    #[inline(always)]
    fn store<T: Completion>(&mut self, batch: &[T], if_full: IfFull) -> (usize, Option<End>) {
        if batch.is_empty() {
            return (0, None);
        }
        if self.shared.alerts.health.refuses() {
            return (0, Some(End::Overrun));
        }
        let reserved = self.seen_head.reserve(&self.ring, batch.len(), if_full);
        let stored = &batch[..reserved.count];
        // SAFETY: the positions are reserved, by this producer, and the consumer has given their slots back.
        unsafe { self.ring.ring.write_all(reserved.position, stored) };
        if !stored.is_empty() {
            self.notify(|| stored.iter().any(Completion::is_urgent) || self.hides_more(reserved));
        }
        (stored.len(), reserved.end)
    }

    /// Whether a consumer that stops at these positions may overlook something behind them: a completion that is published
    /// already, or the end of the ring. To be asked after the [`push_fence`](sync::push_fence).
    #[cold]
    fn hides_more(&self, reserved: Reserved) -> bool {
        let behind = reserved.position + reserved.count as Position;
        self.ring.ring.place(behind).is_published() || self.ring.has_ended()
    }

    #[inline(always)]
    fn notify(&self, urgent: impl Fn() -> bool) {
        if C::RAISES {
            sync::push_fence();
            self.shared.alerts.arm.fire_shared(urgent, || self.channel.raise());
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

impl<C: Channel + Clone> Clone for Producer<'_, C> {
    fn clone(&self) -> Self {
        // Counted last: there is no producer if the channel's clone panics.
        let (channel, owner) = (self.channel.clone(), self.owner.clone());
        sync::join(&self.shared.producers);
        Self { ring: self.ring.clone(), channel, owner, ..*self }
    }
}

impl<C: Channel> Drop for Producer<'_, C> {
    fn drop(&mut self) {
        if sync::leave(&self.shared.producers) && self.shared.alerts.health.close() {
            self.notify(|| true);
        }
    }
}

/// Why a completion was not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PushError {
    /// It was dropped, because the queue is full or has ended.
    Dropped(Dropped),
    /// The queue was resized: [`follow`](Producer::follow), then push again.
    Resized,
}

sentences!(PushError {
    Self::Dropped(dropped) => ("{dropped}");
    Self::Resized => ("the completion queue was resized: follow it to its new ring and push again");
});
