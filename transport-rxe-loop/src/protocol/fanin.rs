//! The producers' side of a completion queue, which processes use one at a time, under a lock that can be
//! inherited: pushing, repairing, resizing. The consumer does not use it.
//!
//! # Pushing
//! 1. *Publish*: the entry is in the ring, with a tag that says what it covers. From here on the completion counts.
//! 2. *Settle*: the position of the queue that the tag names advances.
//! 3. *Keep*: the tail is stored.
//! 4. Leave the lock. If the queue was armed, an event is due; a sender stores its own completion before it raises that of
//!    its receiver (N13).
//!
//! The ring is its own log: entries published past the stored tail may not have been settled. A process that
//! inherits the lock settles them (again), and stores the tail behind them. So a completion and the position
//! that it stands for are never separated (C8). Between two stores of the tail, no more is published than the
//! ring holds, or the log would be overwritten.
//!
//! # Events
//! A producer disarms the queue under the lock, raises the event later, and may die in between. That
//! cannot be detected, so after a death **every** queue that the dead process may have pushed to gets an
//! event, armed or not: from the process that repairs the queue, and from those that recover from the death,
//! even if the lock is free. The event may be spurious; the consumer waits again (N5).
//!
//! # Resizing
//! Only the owner of the queue resizes it. Positions continue in the new ring, so the stored tail is valid
//! for both. One store of one word, the [`Location`], switches rings: a process that inherits the lock before it
//! finds the old ring unchanged, after it, the complete new one.

use std::slice;

use cq_core::queue::raw::{RawConsumer, RawProducer, RawQueue};
use cq_core::queue::{DroppedError, End, NoChannel, Position, QueueChannel, Tagged, Tail};
use cq_core::wc::Wc;

use super::lock::Lock;
use super::steps::{self, Step};
use crate::sync::{self, AtomicU64, Site};

/// Offset and size of a queue's ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Location {
    /// Offset, in the caller's unit.
    pub offset: u32,
    /// Completions that fit into the memory, as a power of two; less than 64.
    pub log2: u32,
    /// The capacity that was promised, less than 2²⁵; 0 if there is no ring.
    pub promised: u32,
    /// Whether no more than that is stored, also where the memory is larger.
    pub is_exact: bool,
}

impl Location {
    const LOG2_AT: u32 = 32;
    const PROMISED_AT: u32 = 38;
    const EXACT_AT: u32 = 63;

    const fn to_word(self) -> u64 {
        self.offset as u64
            | (self.log2 as u64) << Self::LOG2_AT
            | (self.promised as u64) << Self::PROMISED_AT
            | (self.is_exact as u64) << Self::EXACT_AT
    }

    /// The location that a [word](Fanin::location_word) says. Another process may have corrupted it.
    #[inline]
    pub const fn from_word(word: u64) -> Self {
        Self {
            offset: word as u32,
            log2: (word >> Self::LOG2_AT) as u32 & 0x3f,
            promised: (word >> Self::PROMISED_AT) as u32
                & ((1 << (Self::EXACT_AT - Self::PROMISED_AT)) - 1),
            is_exact: word >> Self::EXACT_AT != 0,
        }
    }
}

/// The words. Any content is harmless; zeros are a queue without a ring. All but the lock are for the *producer*: the holder
/// of the lock, or the queue pair that is the [only producer](super::sole), while its in-flight marker is set.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Fanin {
    /// Held to push, repair or resize.
    pub lock: Lock,
    location: AtomicU64,
    tail: [AtomicU64; 2],
}

impl Fanin {
    /// Where the ring is. Another process may have corrupted it.
    #[inline]
    pub fn location(&self) -> Location {
        Location::from_word(self.location_word())
    }

    /// The [location](Self::location) as a word: who has validated a ring compares it.
    #[inline]
    pub fn location_word(&self) -> u64 {
        sync::load(&self.location)
    }

    /// Sets up a new, empty ring, whose consumer begins at position 0.
    pub fn begin(&self, location: Location) {
        self.keep(Tail::at(0));
        self.lie_at(location);
    }

    /// Removes the ring.
    pub fn end(&self) {
        self.lie_at(Location::default());
    }

    /// The position of the next completion; may be out of date without the lock.
    #[inline]
    pub fn position(&self) -> Position {
        sync::load(&self.tail[0])
    }

    /// The number of completions that the queue's owner, whose consumer this is, has not polled.
    pub fn unpolled<C>(&self, consumer: &RawConsumer<'_, C>) -> Position {
        self.tail().position().wrapping_sub(consumer.position())
    }

    /// A producer for the ring at [`location`](Self::location); for the producer. The channel's signal is
    /// called under the lock, so it should only record that an event is to be raised.
    #[inline]
    pub fn producer<'q, C: QueueChannel>(
        &self,
        queue: &'q mut RawQueue<'_>,
        channel: C,
    ) -> RawProducer<'q, C> {
        queue.producer(self.tail(), channel)
    }

    /// Pushes a completion to the ring at [`location`](Self::location), and settles it with `settle`, by its tag. For the
    /// producer.
    ///
    /// # Errors
    /// The queue is full, or overran before: the completion is dropped (O3), and settled all the same.
    pub fn push<C: QueueChannel>(
        &self,
        queue: &mut RawQueue<'_>,
        channel: C,
        entry: &Tagged,
        settle: impl FnOnce(&[Tagged]),
    ) -> Result<(), DroppedError> {
        let mut producer = self.producer(queue, channel);
        let pushed = producer.push_or_overrun(entry);
        steps::done(Step::Published);
        settle(slice::from_ref(entry));
        self.settled(producer.tail());
        pushed
    }

    /// The first step of [`push`](Self::push) alone, where the stored tail knows of a free slot and no event is to be
    /// raised; `None` for any other. Returns the tail behind the completion, which the caller settles next; then
    /// [`settled`](Self::settled).
    #[inline(always)]
    pub fn publish(&self, queue: &mut RawQueue<'_>, entry: &Tagged) -> Option<Tail> {
        let tail = queue.store_at(self.tail(), entry)?;
        steps::done(Step::Published);
        Some(tail)
    }

    /// The last step: stores the tail.
    #[inline(always)]
    pub fn settled(&self, tail: Tail) {
        steps::done(Step::Settled);
        self.keep(tail);
    }

    /// [`push`](Self::push) for several completions. `settle` is called with as many of them as the ring stores, at most,
    /// and again with the next.
    ///
    /// # Errors
    /// The completions do not all fit, or the queue overran before: what does not fit is dropped (O3), and
    /// settled all the same. The count is that of the first ones dropped here.
    pub fn push_all<C: QueueChannel>(
        &self,
        producer: &mut RawProducer<'_, C>,
        entries: &[Tagged],
        mut settle: impl FnMut(&[Tagged]),
    ) -> Result<(), DroppedError> {
        let mut pushed = Ok(());
        for part in entries.chunks(producer.storage()) {
            let published = producer.push_batch_or_overrun(part);
            self.settle_part(producer, part, &mut settle);
            pushed = pushed.and(published);
        }
        pushed
    }

    /// [`push_all`](Self::push_all) for a queue that never overruns, and no more completions than its ring stores: what does
    /// not fit is settled all the same. Returns how many were stored, at consecutive positions.
    pub fn push_fitting<C: QueueChannel>(
        &self,
        producer: &mut RawProducer<'_, C>,
        part: &[Tagged],
        mut settle: impl FnMut(&[Tagged]),
    ) -> usize {
        let stored = producer.push_batch(part).map_or_else(|error| error.stored, |()| part.len());
        self.settle_part(producer, part, &mut settle);
        stored
    }

    /// Settles completions that were published as far as they fit, and stores the tail.
    #[inline]
    fn settle_part<C: QueueChannel>(
        &self,
        producer: &RawProducer<'_, C>,
        part: &[Tagged],
        settle: &mut impl FnMut(&[Tagged]),
    ) {
        steps::done(Step::Published);
        settle(part);
        self.settled(producer.tail());
    }

    /// Settles everything that is published past the stored tail, and stores the tail behind it. For a
    /// process that has inherited the lock, with the ring at [`location`](Self::location). The caller then raises
    /// an event, armed or not; if the queue overran, it also reports the overrun again.
    #[must_use]
    pub fn repair(&self, queue: &RawQueue<'_>, mut settle: impl FnMut(&Wc, u32)) -> Option<End> {
        let tail = queue.recover(self.tail(), |wc, tag| {
            settle(wc, tag);
            steps::done(Step::Settled);
        });
        self.keep(tail);
        queue.control().end()
    }

    /// Moves the unpolled completions with their tags, and what the queue was armed for, to a new, empty
    /// ring, and switches to it. Returns the consumer of the new ring, which must have capacity for all that
    /// is [unpolled](Self::unpolled). For the queue's owner, under the lock.
    #[must_use]
    pub fn move_to<'q, C>(
        &self,
        from: (&mut RawConsumer<'_, C>, &RawQueue<'_>),
        to: (Location, RawQueue<'q>),
        channel: C,
    ) -> RawConsumer<'q, C> {
        let ((old, old_queue), (location, queue)) = (from, to);
        let (start, unpolled) = (old.position(), self.unpolled(old));
        let control = queue.control();
        // The consumer stores the head at which the producers begin.
        let (mut producer, consumer) = queue.into_sides(start, NoChannel, channel);
        if !sync::intact(Site::MoveLast) {
            self.lie_at(location);
        }
        copy(old, unpolled, &mut producer);
        if sync::intact(Site::AdoptArm) {
            control.adopt(old_queue.control());
        }
        steps::done(Step::Adopted);
        // The position is as before; or less, if another process corrupted the ring, and a repair would then restore
        // the tail of the old one.
        self.keep(producer.tail());
        self.lie_at(location);
        steps::done(Step::Moved);
        consumer
    }

    #[inline]
    fn tail(&self) -> Tail {
        Tail::from_words(self.tail.each_ref().map(sync::load))
    }

    /// Last, after everything in the ring: see [`lock`](super::lock).
    fn lie_at(&self, location: Location) {
        sync::release(&self.location, location.to_word());
    }

    /// The position last, after everything that it covers: see [`lock`](super::lock).
    #[inline]
    fn keep(&self, tail: Tail) {
        let [position, limit] = tail.to_words();
        sync::store(&self.tail[1], limit);
        sync::release(&self.tail[0], position);
        steps::done(Step::Kept);
    }
}

/// Moves `count` completions, with their tags.
fn copy<C>(from: &mut RawConsumer<'_, C>, count: Position, to: &mut RawProducer<'_>) {
    let mut wcs = [Wc::default(); 32];
    let mut left = count;
    loop {
        let most = left.min(wcs.len() as Position);
        let moved = from.poll_with(&mut wcs[..most as usize], |&wc, tag| {
            // It fits: the new ring holds at least `count`.
            let _ = to.push_or_overrun(&Tagged { wc, tag, solicited: false });
        });
        steps::done(Step::Copied);
        match moved {
            Ok(moved) if moved > 0 => left -= moved as Position,
            // Nothing is left; or another process corrupted the ring, so that less can be read than was stored.
            _ => break,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
