//! The producer: a push, from the check for free slots to the event.
#![allow(unsafe_code)]

use core::mem::ManuallyDrop;
use core::ptr;

use super::Control;
use super::channel::{Channel, NoChannel};
use super::completion::Completion;
use super::health::{Dropped, Health};
use super::owner::Owner;
use super::ring::{Position, Ref, Ring};
use super::slot::{Access, Memory, Own};
use super::tail::Tail;
use crate::entry::Entry;
use crate::sentences::sentences;
use crate::sync;
use crate::wc::Wc;

/// The producer. There is only one, and pushing takes `&mut self`. A second one does not compile:
///
/// ```compile_fail,E0599
/// let mut queue = cq_core::queue::SoftCq::<4>::new();
/// let (mut producer, _consumer) = queue.split();
/// let mut second = producer.clone();
/// ```
///
/// Dropping it closes the queue, unless the queue is [raw](super::raw): the consumer polls what was stored, and then
/// gets [`PollError::Closed`](crate::transport::PollError::Closed) ([S2](crate::contract#s2)).
#[derive(Debug)]
pub struct Producer<'a, E: Entry = Wc, C: Channel = NoChannel, M: Memory<E> = Own> {
    ring: Ring<'a, E, M::Access>,
    pub(super) control: Ref<'a, Control>,
    channel: C,
    tail: Tail,
    /// The number of unpolled entries at which it is full.
    limit: Position,
    high_water: Position,
    pub(super) owner: Owner,
}

impl<'a, E: Entry, C: Channel, M: Memory<E>> Producer<'a, E, C, M> {
    /// The producer of a ring that is full with all of its slots.
    ///
    /// # Safety
    /// It is the ring's only producer until another one resumes at its [`tail`](Self::tail). `tail` is of this ring,
    /// and the producer that stopped there was its only one, too.
    pub(super) unsafe fn new(
        ring: Ring<'a, E, M::Access>,
        control: Ref<'a, Control>,
        channel: C,
        tail: Tail,
        owner: Owner,
    ) -> Self {
        let tail = tail.within(ring.storage());
        let limit = ring.storage() as Position;
        Self { ring, control, channel, tail, limit, high_water: 0, owner }
    }

    /// The control words and the channel, of a side that borrows its storage. The queue is not closed.
    pub(super) fn into_parts(self) -> (Ref<'a, Control>, C) {
        let this = ManuallyDrop::new(self);
        // SAFETY: `this` is neither used again nor dropped, so the channel is moved out.
        (this.control, unsafe { ptr::read(&this.channel) })
    }

    /// The same, full with so many unpolled entries already.
    #[inline(always)]
    pub(super) const fn limited(mut self, limit: u32) -> Self {
        self.limit = limit as Position;
        self
    }

    /// Stores an entry, or a [`Tagged`](super::Tagged), and raises the event if the consumer armed for this kind of entry. For
    /// devices, which cannot wait for a free slot.
    ///
    /// # Errors
    /// The queue is full and overruns ([O3](crate::contract#o3)), or has already ended. The entry is dropped.
    #[inline]
    pub fn push(&mut self, completion: &impl Completion<E>) -> Result<(), Dropped> {
        if self.free(1) == 0 {
            return Err(self.overrun(1));
        }
        self.store(completion);
        Ok(())
    }

    /// [`push`](Self::push) for a batch, with at most one event. The consumer sees none of the entries before all
    /// are stored.
    ///
    /// # Errors
    /// The queue has too few free slots and overruns, or has already ended. The entries that fit are stored, the
    /// [last ones](Dropped::lost) are dropped.
    #[inline]
    pub fn push_batch<T: Completion<E>>(&mut self, batch: &[T]) -> Result<(), Dropped> {
        let stored = self.store_fitting(batch);
        match u32::try_from(batch.len() - stored).unwrap_or(u32::MAX) {
            0 => Ok(()),
            lost => Err(self.overrun(lost)),
        }
    }

    /// [`push`](Self::push) for producers that can wait: a full queue does not overrun ([S1](crate::contract#s1)).
    ///
    /// # Errors
    /// [`Full`](TryPushError::Full): the entry can be pushed again later. [`Ended`](TryPushError::Ended): none
    /// can be pushed any more.
    #[inline]
    pub fn try_push(&mut self, completion: &impl Completion<E>) -> Result<(), TryPushError> {
        if self.free(1) == 0 {
            return Err(self.why_not());
        }
        self.store(completion);
        Ok(())
    }

    /// [`try_push`](Self::try_push) for a batch: stores the first entries, as many as there are free slots, and
    /// returns their number. Raises at most one event.
    ///
    /// | the batch | the queue | returns |
    /// |---|---|---|
    /// | is empty | any, also one that is full or has ended | `Ok(0)` |
    /// | fits | | `Ok(batch.len())` |
    /// | fits in part | | `Ok` with the number of those that are stored, at least 1; push the others again later |
    /// | is not empty | is full | `Err(Full)`, never `Ok(0)` |
    /// | is not empty | has ended | `Err(Ended)`, whatever slots are free |
    ///
    /// # Errors
    /// As for [`try_push`](Self::try_push). Nothing was stored.
    #[inline]
    pub fn try_push_batch<T: Completion<E>>(&mut self, batch: &[T]) -> Result<usize, TryPushError> {
        match self.store_fitting(batch) {
            0 if !batch.is_empty() => Err(self.why_not()),
            stored => Ok(stored),
        }
    }

    /// [`try_push`](Self::try_push) that calls `wait` while the queue is full: a yield, or a spin-loop hint.
    ///
    /// # Errors
    /// [`Ended`](TryPushError::Ended): none can be pushed any more.
    pub fn push_or_wait<T: Completion<E>>(
        &mut self,
        completion: &T,
        wait: impl FnMut(),
    ) -> Result<(), TryPushError> {
        while_full(|| self.try_push(completion), wait)
    }

    /// [`push_or_wait`](Self::push_or_wait) for a batch. Entries are stored as soon as there are slots for them, so the
    /// consumer may poll the first ones while `wait` is called for the others.
    ///
    /// # Errors
    /// [`Ended`](TryPushError::Ended): none can be pushed any more. Some may have been stored.
    pub fn push_batch_or_wait<T: Completion<E>>(
        &mut self,
        mut batch: &[T],
        mut wait: impl FnMut(),
    ) -> Result<(), TryPushError> {
        while !batch.is_empty() {
            let stored = while_full(|| self.try_push_batch(batch), &mut wait)?;
            batch = &batch[stored..];
        }
        Ok(())
    }

    /// The number of entries whose slots are not released: the unpolled ones and, if there are more slots than the
    /// guaranteed capacity, polled ones, at most a quarter of the slots.
    ///
    /// # Staleness
    /// There may be fewer by now, never more.
    #[must_use]
    pub fn len(&self) -> usize {
        self.unpolled() as usize
    }

    /// Whether all entries are polled and their slots released.
    ///
    /// # Staleness
    /// Only a push makes `true` become `false`.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of free slots. A queue that has ended accepts no entry, whatever this says.
    ///
    /// # Staleness
    /// There may be more by now, never fewer.
    #[must_use]
    pub fn free_slots(&self) -> usize {
        (self.limit as usize).saturating_sub(self.len())
    }

    /// Whether there is no free slot.
    ///
    /// # Staleness
    /// Only a push makes `false` become `true`.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.free_slots() == 0
    }

    /// The number of slots.
    #[must_use]
    pub const fn storage(&self) -> usize {
        self.ring.storage()
    }

    /// The highest [`len`](Self::len) that this producer has found. It checks now, and each time that it has used up
    /// the free slots it found last.
    ///
    /// # Staleness
    /// This value was reached. There may have been more between the checks: a peak below the capacity can be missed.
    /// The consumer's [`len`](super::Consumer::len) is exact.
    #[must_use]
    pub fn high_water(&mut self) -> usize {
        self.high_water = self.high_water.max(self.unpolled());
        self.high_water as usize
    }

    /// Whether the consumer is gone, so nothing more will be polled; never for a raw queue ([S3](crate::contract#s3)).
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.control.alerts.health.is_abandoned()
    }

    /// Where another producer of this queue can resume.
    #[must_use]
    pub const fn tail(&self) -> Tail {
        self.tail
    }

    /// The number of free slots, at most `wanted`. Reloads the head if the cached limit leaves fewer.
    #[inline(always)]
    fn free(&mut self, wanted: usize) -> usize {
        if self.tail.free() < wanted as Position || self.health().refuses() {
            self.reload_limit();
        }
        wanted.min(self.tail.free() as usize)
    }

    /// Updates the limit. A queue that has ended has no free slots.
    #[cold]
    #[inline(never)]
    fn reload_limit(&mut self) {
        let free = if self.health().has_ended() { 0 } else { self.free_reloaded() };
        self.tail = self.tail.with_free(free);
    }

    fn free_reloaded(&mut self) -> Position {
        let unpolled = self.unpolled();
        self.high_water = self.high_water.max(unpolled);
        self.limit.saturating_sub(unpolled)
    }

    /// The number of slots that the consumer has not released; all of them if the head is corrupted.
    fn unpolled(&self) -> Position {
        let unpolled = self.tail.position().wrapping_sub(self.control.head.acquire());
        unpolled.min(self.ring.storage() as Position)
    }

    /// Stores an entry in a free slot.
    #[inline(always)]
    fn store(&mut self, completion: &impl Completion<E>) {
        // SAFETY: this is the ring's only producer (`new`). The position is before the limit, and the slots before the
        // limit are released, which `unpolled` has acquired.
        unsafe { self.ring.write(self.tail.position(), completion) };
        self.tail = self.tail.after(1);
        self.notify(|| completion.is_urgent());
    }

    /// Stores the first entries, as many as there are free slots, and returns their number.
    #[inline(always)]
    fn store_fitting<T: Completion<E>>(&mut self, batch: &[T]) -> usize {
        let stored = &batch[..self.free(batch.len())];
        if !stored.is_empty() {
            // SAFETY: as in `store`; all these positions are before the limit.
            unsafe { self.ring.write_all(self.tail.position(), stored) };
            self.tail = self.tail.after(stored.len() as Position);
            self.notify(|| stored.iter().any(T::is_urgent));
        }
        stored.len()
    }

    /// Raises the event if the consumer armed for what was stored. `urgent`: whether that is what a consumer armed for
    /// solicited entries waits for.
    #[inline(always)]
    fn notify(&self, urgent: impl FnOnce() -> bool) {
        if C::RAISES {
            sync::push_fence();
            self.control.alerts.arm.fire(urgent, || self.channel.notify());
        }
    }

    /// Counts `lost` completions, at least 1, as dropped because the queue is full: it has overrun
    /// ([O3](crate::contract#o3)). For a device that knows this by other means than [`push`](Self::push).
    #[cold]
    #[inline(never)]
    pub fn overrun(&mut self, lost: u32) -> Dropped {
        let dropped = self.health().drop_more(lost.max(1));
        self.tail = self.tail.with_free(0);
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

/// Repeats `try_push` while the queue is full, and calls `wait` in between.
pub(super) fn while_full<T>(
    mut try_push: impl FnMut() -> Result<T, TryPushError>,
    mut wait: impl FnMut(),
) -> Result<T, TryPushError> {
    loop {
        match try_push() {
            Err(TryPushError::Full) => wait(),
            done => return done,
        }
    }
}

/// How entries are written.
impl<E: Entry, A: Access<E>> Ring<'_, E, A> {
    /// Writes and publishes an entry.
    ///
    /// # Safety
    /// The caller is the producer that owns `position`, and has acquired that the consumer released the slot.
    #[inline(always)]
    pub(super) unsafe fn write(&self, position: Position, completion: &impl Completion<E>) {
        let place = self.place(position);
        A::keep_tag(self.beside(), self.index(position), completion.tag());
        // SAFETY: the caller owns the slot.
        unsafe { place.write(completion.entry()) };
        place.publish(completion.entry());
    }

    /// Writes entries to the slots from `position` on, and publishes the first one last: the consumer polls that
    /// slot, and once it is published takes the cache lines of the following ones away from the producer.
    ///
    /// # Safety
    /// As for [`write`](Self::write), for the slots of all these positions, which are hence no more than the ring has.
    #[inline(always)]
    pub(super) unsafe fn write_all<T: Completion<E>>(&self, position: Position, completions: &[T]) {
        let [first, rest @ ..] = completions else { return };
        let place = self.place(position);
        // SAFETY: the caller owns the slot.
        unsafe { place.write(first.entry()) };
        let (mut next, mut rest) = (position.wrapping_add(1), rest);
        while !rest.is_empty() {
            let span = self.span(next, rest.len());
            let (now, later) = rest.split_at(span.len());
            // SAFETY: the caller owns these slots.
            unsafe { A::write_span(&span, now) };
            next = next.wrapping_add(now.len() as Position);
            rest = later;
        }
        A::keep_tag(self.beside(), self.index(position), first.tag());
        place.publish(first.entry());
    }
}

impl<E: Entry, C: Channel, M: Memory<E>> Drop for Producer<'_, E, C, M> {
    fn drop(&mut self) {
        if self.owner.is_last() && self.health().close() {
            self.notify(|| true);
        }
    }
}

/// Why nothing was stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum TryPushError {
    /// There is no free slot until the consumer has polled.
    Full,
    /// The queue, one with several producers, was resized: follow it, then push again.
    Resized,
    /// The queue has ended, or its consumer is gone. This is permanent.
    Ended,
}

sentences!(TryPushError {
    Self::Full => ("the completion queue is full: try again once the consumer has polled");
    Self::Resized => ("the completion queue was resized: follow it to its new ring and push again");
    Self::Ended => ("the completion queue takes no more completions: it has overrun, its consumer has failed it, or its consumer is gone");
});
