//! The producer: a push, from the check for free slots to the event.
#![allow(unsafe_code)]

use core::mem::ManuallyDrop;
use core::ptr;

use super::Control;
use super::channel::{NoChannel, QueueChannel};
use super::completion::Completion;
use super::end::{BatchError, DroppedError, End, Ends, PushError};
use super::owner::Owner;
use super::reference::Ref;
use super::ring::{Position, Ring};
use super::slot::{Memory, Own};
use super::tail::Tail;
use crate::entry::Entry;
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
pub struct Producer<'a, E: Entry = Wc, C: QueueChannel = NoChannel, M: Memory<E> = Own> {
    ring: Ring<'a, E, M::Access>,
    pub(super) control: Ref<'a, Control>,
    channel: C,
    tail: Tail,
    /// The number of unpolled entries at which it is full.
    limit: Position,
    high_water: Position,
    pub(super) owner: Owner,
}

impl<'a, E: Entry, C: QueueChannel, M: Memory<E>> Producer<'a, E, C, M> {
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

    /// Stores an entry, or a [`Tagged`](super::Tagged), and raises the event if the consumer armed for this kind of entry.
    ///
    /// # Errors
    /// [`Full`](PushError::Full): nothing has changed, and it can be pushed again later ([S1](crate::contract#s1)).
    /// [`Ended`](PushError::Ended): nothing can be pushed any more.
    #[inline]
    pub fn push(&mut self, completion: &impl Completion<E>) -> Result<(), PushError> {
        self.push_or(completion, |this| this.why_not())
    }

    /// [`push`](Self::push) for a batch, with at most one event. Stores the first entries, as many as there are free slots.
    /// The consumer sees none of them before all are stored.
    ///
    /// # Errors
    /// As for `push`, with [the number](BatchError::stored) of those that are stored: push the others again later.
    #[inline]
    pub fn push_batch<T: Completion<E>>(&mut self, batch: &[T]) -> Result<(), BatchError> {
        let stored = self.write_fitting(batch);
        self.notify_of(batch, stored);
        match stored {
            stored if stored == batch.len() => Ok(()),
            stored => Err(BatchError { stored, why: self.why_not() }),
        }
    }

    /// [`push`](Self::push) that calls `wait` while the queue is full: a yield, or a spin-loop hint.
    ///
    /// # Errors
    /// The queue has ended.
    pub fn push_or_wait<T: Completion<E>>(
        &mut self,
        completion: &T,
        mut wait: impl FnMut(),
    ) -> Result<(), End> {
        loop {
            match self.push(completion) {
                Ok(()) => return Ok(()),
                Err(PushError::Full) => wait(),
                Err(PushError::Ended(end)) => return Err(end),
            }
        }
    }

    /// [`push_or_wait`](Self::push_or_wait) for a batch. Entries are stored as soon as there are slots for them, so the
    /// consumer may poll the first ones while `wait` is called for the others.
    ///
    /// # Errors
    /// The queue has ended. Some may have been stored.
    pub fn push_batch_or_wait<T: Completion<E>>(
        &mut self,
        batch: &[T],
        mut wait: impl FnMut(),
    ) -> Result<(), BatchError<End>> {
        let mut stored = 0;
        while let Err(error) = self.push_batch(&batch[stored..]) {
            stored += error.stored;
            match error.why {
                PushError::Full => wait(),
                PushError::Ended(why) => return Err(BatchError { stored, why }),
            }
        }
        Ok(())
    }

    /// [`push`](Self::push) for devices, which can't wait for a free slot: on a full queue the entry is dropped, and the queue
    /// has overrun, for good ([O3](crate::contract#o3)).
    ///
    /// # Errors
    /// The queue is full and overruns, or has already ended. The entry is dropped.
    #[inline]
    pub fn push_or_overrun(&mut self, completion: &impl Completion<E>) -> Result<(), DroppedError> {
        self.push_or(completion, |this| this.mark_overrun(1))
    }

    /// [`push_or_overrun`](Self::push_or_overrun) for a batch, with at most one event. The consumer sees none of the entries
    /// before all are stored.
    ///
    /// # Errors
    /// The queue has too few free slots and overruns, or has already ended. The entries that fit are stored, the
    /// [last ones](DroppedError::lost) are dropped.
    #[inline]
    pub fn push_batch_or_overrun<T: Completion<E>>(
        &mut self,
        batch: &[T],
    ) -> Result<(), DroppedError> {
        let stored = self.write_fitting(batch);
        match u32::try_from(batch.len() - stored).unwrap_or(u32::MAX) {
            0 => self.notify_of(batch, stored),
            // It raises the event, also of those that are stored.
            lost => return Err(self.mark_overrun(lost)),
        }
        Ok(())
    }

    /// How the queue has ended, if it has. Everything that the consumer did before it ended the queue is visible then.
    ///
    /// # Staleness
    /// It may end at any time. The consumer of a [raw](super::raw) queue is never found to be gone: another one may follow.
    #[must_use]
    pub fn end(&self) -> Option<End> {
        self.ends().end()
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
    pub fn available(&self) -> usize {
        (self.limit as usize).saturating_sub(self.len())
    }

    /// Whether there is no free slot.
    ///
    /// # Staleness
    /// Only a push makes `false` become `true`.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.available() == 0
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
    #[must_use]
    pub fn measure_high_water(&mut self) -> usize {
        self.high_water = self.high_water.max(self.unpolled());
        self.high_water as usize
    }

    /// Where another producer of this queue can resume.
    #[must_use]
    pub const fn tail(&self) -> Tail {
        self.tail
    }

    /// Stores an entry, or fails by `refuse`.
    #[inline(always)]
    fn push_or<X>(
        &mut self,
        completion: &impl Completion<E>,
        refuse: impl FnOnce(&mut Self) -> X,
    ) -> Result<(), X> {
        let this = sync::by_its_address(self);
        if this.is_short_of(1) {
            if !sync::IS_SMALL {
                return this.push_late(completion, refuse);
            }
            if this.reload(1) == 0 {
                return Err(refuse(this));
            }
        }
        this.store(completion);
        Ok(())
    }

    /// Pushes once the limit is reloaded, or fails by `refuse`. A tail call, so that a push that is not inlined saves no registers:
    /// it stores little more than the entry, and more entries fit into the processor's store buffer.
    #[cold]
    #[inline(never)]
    fn push_late<X>(
        &mut self,
        completion: &impl Completion<E>,
        refuse: impl FnOnce(&mut Self) -> X,
    ) -> Result<(), X> {
        if self.reload(1) == 0 {
            return Err(refuse(self));
        }
        self.store(completion);
        Ok(())
    }

    /// Whether the cached limit leaves fewer free slots, or the consumer accepts no more.
    #[inline(always)]
    fn is_short_of(&self, wanted: usize) -> bool {
        self.tail.free() < wanted as Position || self.ends().refuses()
    }

    /// Updates the limit. Returns the number of free slots, at most `wanted`; a queue that has ended has none.
    #[cold]
    #[inline(never)]
    fn reload(&mut self, wanted: usize) -> usize {
        let free = if self.ends().end().is_some() { 0 } else { self.free_reloaded() };
        self.tail = self.tail.with_free(free);
        wanted.min(free as usize)
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

    /// Stores the first entries, as many as there are free slots, and returns their number. Raises no event.
    // Not inlined, so that a function that pushes either way saves no registers for this one where it pushes one entry.
    #[inline(never)]
    fn write_fitting<T: Completion<E>>(&mut self, batch: &[T]) -> usize {
        let wanted = batch.len();
        let count = if self.is_short_of(wanted) { self.reload(wanted) } else { wanted };
        // SAFETY: as in `store`; all these positions are before the limit.
        unsafe { self.ring.write_all(self.tail.position(), &batch[..count]) };
        self.tail = self.tail.after(count as Position);
        count
    }

    /// Raises the event if the consumer armed for one of the first entries, which are stored.
    #[inline(always)]
    fn notify_of<T: Completion<E>>(&self, batch: &[T], stored: usize) {
        if stored > 0 {
            self.notify(|| batch.iter().take(stored).any(T::is_urgent));
        }
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
    /// ([O3](crate::contract#o3)), unless it has ended otherwise. For a device that knows this by other means than
    /// [`push_or_overrun`](Self::push_or_overrun).
    #[cold]
    #[inline(never)]
    pub fn mark_overrun(&mut self, lost: u32) -> DroppedError {
        let dropped = self.ends().drop_more(lost.max(1));
        self.tail = self.tail.with_free(0);
        self.notify(|| true);
        dropped
    }

    #[cold]
    fn why_not(&self) -> PushError {
        self.end().map_or(PushError::Full, PushError::Ended)
    }

    fn ends(&self) -> &Ends {
        &self.control.alerts.ends
    }
}

impl<E: Entry, C: QueueChannel, M: Memory<E>> Drop for Producer<'_, E, C, M> {
    fn drop(&mut self) {
        if self.owner.is_last() && self.ends().close() {
            self.notify(|| true);
        }
    }
}
