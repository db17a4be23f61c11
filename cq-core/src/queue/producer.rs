//! The device's side: a push, from the check for room to the event.
#![allow(unsafe_code)]

use super::Control;
use super::channel::{Channel, NoChannel};
use super::completion::Completion;
use super::health::{Dropped, Health};
use super::owner::Owner;
use super::ring::{Position, Ref, Ring};
use super::slot::{Memory, Own};
use crate::sync;
use crate::transport::sentences;

/// The device's side. There is one, and pushing takes it by `&mut`; a second one does not compile:
///
/// ```compile_fail,E0599
/// let mut queue = cq_core::queue::SoftCq::<4>::new();
/// let (mut producer, _consumer) = queue.split();
/// let mut second = producer.clone();
/// ```
///
/// When it is dropped, the queue is closed: the consumer is handed out what was stored, and then
/// [`PollError::Closed`](crate::transport::PollError::Closed).
#[derive(Debug)]
pub struct Producer<'a, C: Channel = NoChannel, M: Memory = Own> {
    ring: Ring<'a, M>,
    control: Ref<'a, Control>,
    channel: C,
    tail: Tail,
    high_water: Position,
    owner: Owner,
}

impl<'a, C: Channel, M: Memory> Producer<'a, C, M> {
    /// # Safety
    /// It is the ring's one producer, until another one goes on at its [`tail`](Self::tail); and so was whoever stopped at
    /// this `tail`, of this ring.
    pub(super) unsafe fn new(
        ring: Ring<'a, M>,
        control: Ref<'a, Control>,
        channel: C,
        tail: Tail,
        owner: Owner,
    ) -> Self {
        let tail = tail.within(ring.storage());
        Self { ring, control, channel, tail, high_water: 0, owner }
    }

    /// Adds a completion, and raises the event that the consumer armed for, if this is it. For a device, which can't
    /// wait for room.
    ///
    /// # Errors
    /// The queue is full: it overruns (O3). Or it has ended before. The completion is dropped.
    #[inline]
    pub fn push(&mut self, completion: &impl Completion) -> Result<(), Dropped> {
        if self.room(1) == 0 {
            return Err(self.overrun(1));
        }
        self.store(completion);
        Ok(())
    }

    /// [`push`](Self::push) of several, which raises one event at most. A consumer sees none of them before all are
    /// stored.
    ///
    /// # Errors
    /// The queue has no room for all of them, or has ended before. Those that fit are stored, the [last
    /// ones](Dropped::lost) are dropped.
    #[inline]
    pub fn push_batch<T: Completion>(&mut self, batch: &[T]) -> Result<(), Dropped> {
        let stored = self.store_fitting(batch);
        match u32::try_from(batch.len() - stored).unwrap_or(u32::MAX) {
            0 => Ok(()),
            lost => Err(self.overrun(lost)),
        }
    }

    /// [`push`](Self::push) for who can wait: a full queue does not overrun.
    ///
    /// # Errors
    /// The queue is full, and the completion can be pushed again later. Or it has ended, or its consumer is gone, for ever.
    #[inline]
    pub fn try_push(&mut self, completion: &impl Completion) -> Result<(), TryPushError> {
        if self.room(1) == 0 {
            return Err(self.why_not());
        }
        self.store(completion);
        Ok(())
    }

    /// [`try_push`](Self::try_push) of several: stores as many as there is room for, the first ones, and says how many.
    /// They raise one event at most.
    ///
    /// # Errors
    /// The queue is full, and nothing was stored. Or it has ended, or its consumer is gone, for ever.
    #[inline]
    pub fn try_push_batch<T: Completion>(&mut self, batch: &[T]) -> Result<usize, TryPushError> {
        match self.store_fitting(batch) {
            0 if !batch.is_empty() => Err(self.why_not()),
            stored => Ok(stored),
        }
    }

    /// How many completions the consumer has not given back: those that are not polled, and where there are more slots
    /// than were promised, a few that are.
    ///
    /// # Staleness
    /// There may be fewer by now, never more.
    #[must_use]
    pub fn len(&self) -> usize {
        self.unpolled() as usize
    }

    /// Whether all are polled and given back.
    ///
    /// # Staleness
    /// True can be trusted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many completions can be pushed for sure.
    ///
    /// # Staleness
    /// There may be room for more by now, never for less.
    #[must_use]
    pub fn free_slots(&self) -> usize {
        self.ring.storage() - self.len()
    }

    /// Whether there is no room for another completion.
    ///
    /// # Staleness
    /// False can be trusted.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.free_slots() == 0
    }

    /// How many completions there is memory for.
    #[must_use]
    pub const fn storage(&self) -> usize {
        self.ring.storage()
    }

    /// The most unpolled completions that the producer has found. It looks now, and each time that it has filled what was
    /// free when it looked last.
    ///
    /// # Staleness
    /// There were as many; in between there may have been more.
    #[must_use]
    pub fn high_water(&mut self) -> usize {
        self.high_water = self.high_water.max(self.unpolled());
        self.high_water as usize
    }

    /// Whether the consumer is gone, so that nobody will poll.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.control.alerts.health.is_abandoned()
    }

    /// Where another producer of this queue can go on.
    #[must_use]
    pub const fn tail(&self) -> Tail {
        self.tail
    }

    /// How many of so many there is room for.
    #[inline(always)]
    fn room(&mut self, wanted: usize) -> usize {
        if self.tail.room() < wanted as Position || self.health().refuses() {
            self.look();
        }
        wanted.min(self.tail.room() as usize)
    }

    /// Looks how much room there is; none in a queue that has ended.
    #[cold]
    #[inline(never)]
    fn look(&mut self) {
        let room = if self.health().has_ended() { 0 } else { self.look_at_head() };
        self.tail.limit = self.tail.position.wrapping_add(room);
    }

    fn look_at_head(&mut self) -> Position {
        let unpolled = self.unpolled();
        self.high_water = self.high_water.max(unpolled);
        self.ring.storage() as Position - unpolled
    }

    /// What the consumer has not given back; all, where the head is none that a consumer would write.
    fn unpolled(&self) -> Position {
        let unpolled = self.tail.position.wrapping_sub(self.control.head.acquire());
        unpolled.min(self.ring.storage() as Position)
    }

    /// Stores a completion that there is room for.
    #[inline(always)]
    fn store(&mut self, completion: &impl Completion) {
        // SAFETY: this is the ring's one producer (`new`), and the consumer has given back every slot before the limit.
        unsafe { self.ring.write(self.tail.position, completion) };
        self.tail.position = self.tail.position.wrapping_add(1);
        self.notify(|| completion.is_urgent());
    }

    /// Stores as many as there is room for.
    #[inline(always)]
    fn store_fitting<T: Completion>(&mut self, batch: &[T]) -> usize {
        let stored = &batch[..self.room(batch.len())];
        if !stored.is_empty() {
            // SAFETY: as in `store`.
            unsafe { self.ring.write_all(self.tail.position, stored) };
            self.tail.position = self.tail.position.wrapping_add(stored.len() as Position);
            self.notify(|| stored.iter().any(Completion::is_urgent));
        }
        stored.len()
    }

    /// Raises the event that the consumer armed for, if something of that kind was stored.
    #[inline(always)]
    fn notify(&self, urgent: impl FnOnce() -> bool) {
        if C::RAISES {
            sync::push_fence();
            self.control.alerts.arm.fire(urgent(), || self.channel.raise());
        }
    }

    /// Drops so many completions, one at the least, for which there is no room: the queue has overrun (O3). For a device
    /// that knows so by other means than by [pushing](Self::push) them.
    #[cold]
    #[inline(never)]
    pub fn overrun(&mut self, lost: u32) -> Dropped {
        let dropped = self.health().drop_more(lost.max(1));
        self.tail.limit = self.tail.position;
        self.notify(|| true);
        dropped
    }

    #[cold]
    fn why_not(&self) -> TryPushError {
        match self.health().has_ended() {
            true => TryPushError::Ended,
            false => TryPushError::Full,
        }
    }

    fn health(&self) -> &Health {
        &self.control.alerts.health
    }
}

impl<C: Channel, M: Memory> Drop for Producer<'_, C, M> {
    fn drop(&mut self) {
        if self.owner.is_last() && self.health().close() {
            self.notify(|| true);
        }
    }
}

/// Why nothing was stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TryPushError {
    /// There is no room now; there is once the consumer has polled.
    Full,
    /// A queue with several producers was resized: follow it, then push again.
    Resized,
    /// The queue takes nothing any more.
    Ended,
}

sentences!(TryPushError {
    Self::Full => ("the completion queue is full: try again once the consumer has polled");
    Self::Resized => ("the completion queue was resized: follow it to its new ring and push again");
    Self::Ended => ("the completion queue takes no more completions: it has overrun, was given up, or its consumer is gone");
});

/// All that a producer knows; with it, another one can go on where this one stopped.
///
/// It begins to be of use to who takes turns at a [raw](super::raw) queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail {
    position: Position,
    /// Up to where there was room when somebody looked.
    limit: Position,
}

impl Tail {
    /// Behind a position. How much room there is, is looked at first.
    #[must_use]
    pub const fn at(position: Position) -> Self {
        Self { position, limit: position }
    }

    /// How many entries were stored.
    #[must_use]
    pub const fn position(&self) -> Position {
        self.position
    }

    /// Two words to keep while no producer is at work.
    #[must_use]
    pub const fn to_words(self) -> [Position; 2] {
        [self.position, self.limit]
    }

    /// What [`to_words`](Self::to_words) made. Any words are harmless in a raw queue: the wrong ones lose or forge
    /// entries.
    #[must_use]
    pub const fn from_words([position, limit]: [Position; 2]) -> Self {
        Self { position, limit }
    }

    #[inline(always)]
    const fn room(&self) -> Position {
        self.limit.wrapping_sub(self.position)
    }

    /// As it can be in a ring of so many slots.
    #[inline(always)]
    const fn within(self, storage: usize) -> Self {
        if self.room() > storage as Position { Self::at(self.position) } else { self }
    }
}
