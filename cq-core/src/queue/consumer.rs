//! The consumer: a poll, from the check of the next slot to the release of slots; and arming.
#![allow(unsafe_code)]

use core::mem::MaybeUninit;

use super::Alerts;
use super::channel::{FailWakeup, NoChannel, OnChannel, QueueChannel};
use super::end::{ByConsumer, End, Ends};
use super::owner::Owner;
use super::ring::{Head, Place, Position, Ref, Ring};
use super::slot::{Access, Memory, Own};
use crate::entry::Entry;
use crate::sync;
use crate::transport::{Arm, ArmError, Armed, Capacity, CqKey, Notify, PollCq, PollError};
use crate::wc::Wc;

/// The consumer. Implements [`PollCq`], and [`Arm`] if the queue has a channel. Arming a queue without one does not
/// compile:
///
/// ```compile_fail,E0277
/// fn armed(queue: impl cq_core::transport::Arm) {}
/// let mut storage = cq_core::queue::SoftCq::<4>::new();
/// let (_producer, consumer) = storage.split();
/// armed(consumer);
/// ```
#[derive(Debug)]
pub struct Consumer<'a, E: Entry = Wc, C = NoChannel, M: Memory<E> = Own> {
    pub(super) ring: Ring<'a, E, M::Access>,
    pub(super) head: Ref<'a, Head>,
    alerts: Ref<'a, Alerts>,
    channel: C,
    position: Position,
    /// The place at `position`, cached for empty polls. Once the end was reported, one that is never published.
    pub(super) next: Place<'a, E, M::Access>,
    released: Position,
    lag: Position,
    promised: u32,
    /// Whether a poll has found nothing since loads were last [held back](Self::hold_back).
    has_missed: bool,
    /// Whether the last poll of many has found several entries.
    has_found_several: bool,
    owner: Owner,
}

impl<'a, E: Entry, C, M: Memory<E>> Consumer<'a, E, C, M> {
    /// The consumer from `position` on, of a ring with `promised` as its guaranteed capacity.
    ///
    /// # Safety
    /// It is the ring's only consumer until another one resumes at its [`position`](Self::position).
    pub(super) unsafe fn new(
        ring: Ring<'a, E, M::Access>,
        (head, alerts): (Ref<'a, Head>, Ref<'a, Alerts>),
        channel: C,
        position: Position,
        promised: u32,
        owner: Owner,
    ) -> Self {
        head.release(position);
        let next = ring.place(position);
        let next = if alerts.ends.is_reported() { next.never() } else { next };
        let (lag, released) = (lag(ring.storage(), promised), position);
        Self {
            ring,
            head,
            alerts,
            channel,
            position,
            next,
            released,
            lag,
            promised,
            has_missed: false,
            has_found_several: false,
            owner,
        }
    }

    /// The same, of a ring that is full with so many unpolled entries already.
    #[inline(always)]
    pub(super) fn limited(mut self, limit: u32) -> Self {
        self.lag = lag(limit as usize, self.promised);
        self
    }

    /// Continues in another ring.
    ///
    /// # Safety
    /// It is the only consumer of that ring, whose entries start at `position`.
    #[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
    pub(super) unsafe fn switch_to(
        &mut self,
        (ring, head): (Ring<'a, E, M::Access>, Ref<'a, Head>),
        position: Position,
        promised: u32,
    ) {
        (self.ring, self.head, self.position, self.released) = (ring, head, position, position);
        self.next = ring.place(position);
        (self.lag, self.promised) = (lag(ring.storage(), promised), promised);
    }

    /// The number of entries polled, wrapping.
    #[must_use]
    pub const fn position(&self) -> Position {
        self.position
    }

    /// The guaranteed capacity, in entries ([O1](crate::contract#o1)).
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.promised as usize
    }

    crate::polled_without_import!(E);

    /// Whether there is nothing to poll.
    ///
    /// # Staleness
    /// Only a poll makes `false` become `true`.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.next.is_published()
    }

    /// The number of entries that can be polled. Loads a slot for each of them.
    ///
    /// # Staleness
    /// There may be more by now, never fewer.
    #[must_use]
    pub fn len(&self) -> usize {
        if self.is_empty() {
            return 0;
        }
        let positions =
            (0..self.ring.storage()).map(|nth| self.position.wrapping_add(nth as Position));
        positions.take_while(|&position| self.ring.place(position).is_published()).count()
    }

    /// How the queue has ended, if it has. Polls still return what is stored.
    ///
    /// # Staleness
    /// It may end at any time.
    #[must_use]
    pub fn end(&self) -> Option<End> {
        self.ends().end()
    }

    /// [`poll`](PollCq::poll_into) of at most `most` entries, with `take` to copy entries and release their slots.
    #[inline(always)]
    pub(super) fn poll_by(
        &mut self,
        most: usize,
        mut take: impl FnMut(&mut Self) -> usize,
    ) -> Result<usize, PollError> {
        // `take` checks one slot as fast as this does.
        if most == 1 || self.next.is_published() {
            self.approach(most);
            match take(self) {
                0 => {}
                count => return Ok(count),
            }
        }
        // Of one entry at most, the compiler is to know that there is no other.
        if self.misses() { Ok(0) } else { Ok(self.last_entries(most, take)?.min(most)) }
    }

    /// Polls while the queue runs; `None` if there is nothing to poll and the queue has ended.
    #[inline(always)]
    pub(super) fn poll_running(&mut self, out: &mut [E]) -> Option<usize> {
        if sync::IS_SMALL {
            match self.take_each(out) {
                0 => {}
                count => return Some(count),
            }
        } else if let [one] = out {
            // Copying one entry has its own check.
            // SAFETY: it is an entry.
            if unsafe { self.take_one(one) } {
                return Some(1);
            }
        } else if self.next.is_published() {
            return Some(self.take(out));
        }
        self.misses().then_some(0)
    }

    /// Ends a poll that has found nothing. Returns whether the queue runs.
    #[inline(always)]
    fn misses(&mut self) -> bool {
        if sync::LOADS_AHEAD {
            self.has_missed = true;
        }
        self.ends().is_running()
    }

    /// Polls once the end was seen: the last entries may have been published after the slot was checked.
    #[cold]
    fn last_entries(
        &mut self,
        most: usize,
        mut take: impl FnMut(&mut Self) -> usize,
    ) -> Result<usize, PollError> {
        // The end is loaded with Acquire, so `take` sees every entry stored before the end.
        let end = match self.end() {
            Some(end) if most > 0 => end,
            _ => return Ok(0),
        };
        match if self.ends().is_reported() { 0 } else { take(self) } {
            0 => Err(self.report(end)),
            count => Ok(count),
        }
    }

    /// Records that the end is reported. Later polls return nothing ([O3](crate::contract#o3)).
    #[cold]
    pub(super) fn report(&mut self, end: End) -> PollError {
        self.ends().record(ByConsumer::Report);
        self.next = self.next.never();
        end.poll_error()
    }

    /// Copies an entry and releases its slot. Returns whether there was one.
    ///
    /// # Safety
    /// An entry can be written to `out`.
    #[inline(always)]
    unsafe fn take_one(&mut self, out: *mut E) -> bool {
        // SAFETY: guaranteed by the caller.
        let is_published = unsafe { self.copy_one(out) };
        if is_published {
            self.release();
        }
        is_published
    }

    /// Copies an entry. Returns whether there was one.
    ///
    /// # Safety
    /// An entry can be written to `out`.
    #[inline(always)]
    unsafe fn copy_one(&mut self, out: *mut E) -> bool {
        // SAFETY: as in `copy`. Guaranteed by the caller.
        let is_published = unsafe { self.next.read(out) };
        // A branch, not a sum: the next slot's address must not wait for this slot's cache line.
        if is_published {
            self.position = self.position.wrapping_add(1);
            self.ring.step(&mut self.next, self.position);
        }
        is_published
    }

    /// Copies the published entries one by one, and releases their slots. Returns their number.
    #[inline(always)]
    fn take_each(&mut self, out: &mut [E]) -> usize {
        let mut count = 0;
        for entry in out {
            // SAFETY: it is an entry.
            if !unsafe { self.copy_one(entry) } {
                break;
            }
            count += 1;
        }
        if count > 0 {
            self.release();
        }
        count
    }

    /// Copies the published entries and releases their slots. Not inlined, so that a poll of an empty queue saves no registers.
    #[inline(never)]
    pub(super) fn take(&mut self, out: &mut [E]) -> usize {
        if sync::IS_SMALL {
            return self.take_each(out);
        }
        self.approach(out.len());
        let count = self.copy(out);
        self.release();
        count
    }

    /// Before a poll of many takes entries: leaves the producer the cache lines that it is writing, if this consumer has caught
    /// up with it, and it pushes several. See [`sync`](crate::sync#loads-that-are-held).
    #[inline(always)]
    pub(super) fn approach(&mut self, most: usize) {
        if sync::LOADS_AHEAD && self.has_missed && self.has_found_several {
            self.hold_back(most);
        }
    }

    /// Holds the loads that follow until those of the next slot are done, unless many more slots are published.
    #[inline(never)]
    fn hold_back(&mut self, most: usize) {
        /// With fewer, few lines are loaded in vain.
        const FEWEST: usize = 8;
        /// How far ahead to look, at most a quarter of the ring.
        const AHEAD: usize = 63;
        self.has_missed = false;
        let ahead = AHEAD.min(self.ring.storage() / 4) as Position;
        let place = self.ring.place(self.position.wrapping_add(ahead));
        if most >= FEWEST && !place.is_published() {
            sync::hold_loads();
        }
    }

    /// Copies the published entries. Their slots must be [released](Self::release) before the caller sees the entries.
    #[inline(always)]
    pub(super) fn copy(&mut self, out: &mut [E]) -> usize {
        // SAFETY: this is the ring's only consumer (`new`), and it releases only slots before its position.
        let count = unsafe { M::Access::read_run(&self.ring, self.position, out) };
        self.pass(count);
        count
    }

    /// Goes on behind so many entries. Their slots are not [released](Self::release) yet.
    #[inline(always)]
    pub(super) fn pass(&mut self, entries: usize) {
        self.position = self.position.wrapping_add(entries as Position);
        if sync::IS_SMALL && entries == 1 {
            self.ring.step(&mut self.next, self.position);
        } else {
            self.next = self.ring.place(self.position);
        }
        if sync::LOADS_AHEAD {
            self.has_found_several = entries > 1;
        }
    }

    /// Releases the passed slots, if they are more than the lag.
    #[inline(always)]
    pub(super) fn release(&mut self) {
        // Without a lag, `released` is not stored: one store less before the head, which the producer waits for.
        if sync::IS_SMALL || self.lag == 0 {
            self.head.release(self.position);
        } else if self.position.wrapping_sub(self.released) > self.lag {
            self.head.release(self.position);
            self.released = self.position;
        }
    }

    /// What keeps the queue's storage alive.
    #[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
    pub(super) fn owner(&self) -> Owner {
        self.owner.clone()
    }

    pub(super) fn ends(&self) -> &Ends {
        &self.alerts.ends
    }
}

impl<E: Entry, C: QueueChannel, M: Memory<E>> Consumer<'_, E, C, M> {
    /// Marks the queue failed, for example because the process that pushed has died. Polls return the stored
    /// entries, then [`PollError::Failed`] ([S4](crate::contract#s4)). A queue that has ended before stays as it ended ([O3](crate::contract#o3)).
    ///
    /// Raises an event the first time, for a thread that waits for the queue: armed or not, because a producer that died may have
    /// disarmed the queue and not have raised the event. A consumer without a signal raises none. Then the caller has to,
    /// if another thread may wait: it is the consumer of a [raw](super::raw) queue with [`OnChannel::named`], or the
    /// target has no compare-and-swap.
    pub fn fail(&mut self) {
        self.mark_failed().wake();
    }

    /// [`fail`](Self::fail) for a caller who holds a lock: marks the queue failed, and returns the wake-up that is due, to be
    /// raised when the lock is released. A task that is woken may be polled at once.
    ///
    /// ```
    /// use cq_core::entry::Entry;
    /// use cq_core::queue::{QueueChannel, Consumer};
    /// use cq_core::shared_cq::SharedCq;
    ///
    /// fn fail<E: Entry, C: QueueChannel>(shared: &SharedCq<Consumer<'_, E, C>>) {
    ///     let wakeup = shared.lock().get_mut().mark_failed(); // the lock is released here
    ///     wakeup.wake();
    /// }
    /// ```
    pub fn mark_failed(&mut self) -> FailWakeup<C> {
        if self.end().is_none() {
            self.ends().record(ByConsumer::Fail);
        }
        FailWakeup(self.channel.take_signal())
    }
}

impl<E: Entry, C, M: Memory<E>> Capacity for Consumer<'_, E, C, M> {
    fn capacity(&self) -> usize {
        self.capacity()
    }
}

impl<E: Entry, C, M: Memory<E>> PollCq for Consumer<'_, E, C, M> {
    type Entry = E;

    // Not inlined, an empty poll takes three times as long.
    #[inline(always)]
    fn poll_into(&mut self, out: &mut [E]) -> Result<usize, PollError> {
        match self.poll_running(out) {
            Some(count) => Ok(count),
            None => self.last_entries(out.len(), |this| this.take(out)),
        }
    }

    #[inline]
    fn pop(&mut self) -> Result<Option<E>, PollError> {
        let mut one = MaybeUninit::uninit();
        let at = one.as_mut_ptr();
        // SAFETY: there is space for an entry.
        let take = move |this: &mut Self| unsafe { this.take_one(at) };
        let is_taken = take(self)
            || !self.misses() && self.last_entries(1, move |this| take(this).into())? > 0;
        // SAFETY: an entry was written if one was taken.
        Ok(is_taken.then(|| unsafe { one.assume_init() }))
    }

    #[inline]
    fn holds_more_than(&self, count: usize) -> bool {
        let nth = || self.ring.place(self.position.wrapping_add(count as Position));
        count < self.ring.storage() && nth().is_published()
    }
}

impl<E: Entry, S, M: Memory<E>> Arm for Consumer<'_, E, OnChannel<S>, M> {
    fn arm(&mut self, on: Notify) -> Result<Armed, ArmError> {
        self.alerts.arm.arm(on);
        sync::arm_fence();
        let quiet = self.is_empty() && self.ends().is_running();
        Ok(if quiet { Armed::Armed } else { Armed::MayHaveMissed })
    }

    fn key(&self) -> CqKey {
        self.channel.key
    }
}

impl<E: Entry, C, M: Memory<E>> Drop for Consumer<'_, E, C, M> {
    fn drop(&mut self) {
        if self.owner.is_last() {
            self.ends().record(ByConsumer::Leave);
        }
    }
}

/// The number of polled slots that may stay unreleased: as many as the guaranteed capacity allows, at most a quarter of
/// those that are used. None on a small target, where that spares no cache line.
pub(super) const fn lag(used: usize, promised: u32) -> Position {
    if sync::IS_SMALL {
        return 0;
    }
    let slack = (used as Position).saturating_sub(promised as Position);
    let quarter = used as Position / 4;
    if slack < quarter { slack } else { quarter }
}
