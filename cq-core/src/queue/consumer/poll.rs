//! A poll, from the check of the next slot to the release of slots.
#![allow(unsafe_code)]

use core::mem::MaybeUninit;

use super::Consumer;
use crate::entry::Entry;
use crate::queue::end::{ByConsumer, End};
use crate::queue::ring::Position;
use crate::queue::slot::{Access, Memory};
use crate::sync;
use crate::transport::{PollCq, PollError};

impl<E: Entry, C, M: Memory<E>> Consumer<'_, E, C, M> {
    /// A poll of at most `most` entries, which `take` takes once there are some.
    #[inline(always)]
    pub(in crate::queue) fn poll_by(
        &mut self,
        most: usize,
        mut take: impl FnMut(&mut Self) -> usize,
    ) -> Result<usize, PollError> {
        self.take_or_end(most, |this| {
            this.next.is_published().then(|| {
                this.approach(most);
                take(this)
            })
        })
    }

    /// A poll of at most `most` entries by `take`, which returns `None` if it finds none. If the queue has ended, it is called once
    /// more: the last entries may have been published after it has checked the slot.
    #[inline(always)]
    pub(in crate::queue) fn take_or_end(
        &mut self,
        most: usize,
        mut take: impl FnMut(&mut Self) -> Option<usize>,
    ) -> Result<usize, PollError> {
        let mut end = None;
        loop {
            if let Some(count) = take(self) {
                return Ok(count);
            }
            if let Some(end) = end {
                return Err(self.report(end));
            }
            if self.misses() {
                return Ok(0);
            }
            // An empty poll is faster without a loop. On a small target, a second copy of `take` is too large.
            if !sync::IS_SMALL {
                return self.take_last(most, take);
            }
            end = self.end_seen_by(most);
            if end.is_none() {
                return Ok(0);
            }
        }
    }

    /// The second look of [`take_or_end`](Self::take_or_end).
    #[cold]
    fn take_last(
        &mut self,
        most: usize,
        mut take: impl FnMut(&mut Self) -> Option<usize>,
    ) -> Result<usize, PollError> {
        let Some(end) = self.end_seen_by(most) else { return Ok(0) };
        take(self).ok_or_else(|| self.report(end))
    }

    /// Takes entries while the queue runs; `None` if there is nothing to poll and the queue has ended.
    #[inline(always)]
    #[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
    pub(in crate::queue) fn poll_running(&mut self, out: &mut [E]) -> Option<usize> {
        self.take_found(out).or_else(|| self.misses().then_some(0))
    }

    /// Copies the published entries, and releases their slots. `None` if there are none.
    #[inline(always)]
    fn take_found(&mut self, out: &mut [E]) -> Option<usize> {
        if sync::IS_SMALL {
            match self.take_each(out) {
                0 => None,
                count => Some(count),
            }
        } else if let [one] = out {
            // Copying one entry has its own check.
            // SAFETY: it is an entry.
            unsafe { self.take_one(one) }.then_some(1)
        } else {
            self.next.is_published().then(|| self.take(out))
        }
    }

    /// Ends a poll that has found nothing. Returns whether the queue runs.
    #[inline(always)]
    fn misses(&mut self) -> bool {
        if sync::LOADS_AHEAD {
            self.has_missed = true;
        }
        self.ends().is_running()
    }

    /// How the queue has ended, for a poll of at most `most` entries: one of none does not see it. Loaded with Acquire, so every
    /// entry stored before the end is seen from now on.
    #[cold]
    #[inline(never)]
    fn end_seen_by(&self, most: usize) -> Option<End> {
        self.end().filter(|_| most > 0)
    }

    /// Records that the end is reported. Later polls return nothing ([O3](crate::contract#o3)).
    #[cold]
    pub(in crate::queue) fn report(&mut self, end: End) -> PollError {
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
        // SAFETY: as in `copy`, and guaranteed by the caller.
        let is_published = unsafe { self.next.read(out) };
        // A branch, not a sum: the next slot's address must not wait for this slot's cache line.
        if is_published {
            self.pass_one();
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
    pub(in crate::queue) fn take(&mut self, out: &mut [E]) -> usize {
        self.approach(out.len());
        let count = self.copy(out);
        self.release();
        count
    }

    /// Before a poll of many takes entries: leaves the producer the cache lines that it is writing, if this consumer has caught
    /// up with it, and it pushes several. See [`sync`](crate::sync#loads-that-are-held).
    #[inline(always)]
    pub(in crate::queue) fn approach(&mut self, most: usize) {
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
    pub(in crate::queue) fn copy(&mut self, out: &mut [E]) -> usize {
        // SAFETY: this is the ring's only consumer (`new`), and it releases only slots before its position.
        let count = unsafe { M::Access::read_run(&self.ring, self.position, out) };
        self.pass(count);
        count
    }

    /// [`pass`](Self::pass) for one.
    #[inline(always)]
    pub(in crate::queue) fn pass_one(&mut self) {
        self.position = self.position.wrapping_add(1);
        self.ring.step(&mut self.next, self.position);
    }

    /// Goes on behind so many entries. Their slots are not [released](Self::release) yet.
    #[inline(always)]
    pub(in crate::queue) fn pass(&mut self, entries: usize) {
        self.position = self.position.wrapping_add(entries as Position);
        self.next = self.ring.place(self.position);
        if sync::LOADS_AHEAD {
            self.has_found_several = entries > 1;
        }
    }

    /// Releases the passed slots, if they are more than the lag.
    #[inline(always)]
    pub(in crate::queue) fn release(&mut self) {
        // Without a lag, `released` is not stored: one store less before the head, which the producer waits for.
        if sync::IS_SMALL || self.lag == 0 {
            self.head.release(self.position);
        } else if self.position.wrapping_sub(self.released) > self.lag {
            self.head.release(self.position);
            self.released = self.position;
        }
    }
}

impl<E: Entry, C, M: Memory<E>> PollCq for Consumer<'_, E, C, M> {
    type Entry = E;

    // Not inlined, an empty poll takes three times as long.
    #[inline(always)]
    fn poll_into(&mut self, out: &mut [E]) -> Result<usize, PollError> {
        self.take_or_end(out.len(), |this| this.take_found(out))
    }

    #[inline]
    fn pop(&mut self) -> Result<Option<E>, PollError> {
        let mut one = MaybeUninit::uninit();
        let at = one.as_mut_ptr();
        // SAFETY: there is space for an entry.
        let is_taken =
            self.take_or_end(1, move |this| unsafe { this.take_one(at) }.then_some(1))? > 0;
        // SAFETY: an entry was written if one was taken.
        Ok(is_taken.then(|| unsafe { one.assume_init() }))
    }

    #[inline]
    fn holds_more_than(&self, count: usize) -> bool {
        let nth = || self.ring.place(self.position.wrapping_add(count as Position));
        count < self.ring.storage() && nth().is_published()
    }
}
