//! The software ring: entries and nothing else. Notification and overrun are built on it in
//! [`soft`](crate::soft), where a ring may also have several producers, who meet at a [`Gate`].
//!
//! ```
//! use cq_core::ring::{Full, Head, Ring, Slot, Tail};
//! use cq_core::wc::{Wc, WcStatus};
//!
//! let (slots, head) = ([const { Slot::new() }; 2], Head::new());
//! let ring = Ring::new(&slots, &head)?;
//! let mut producer = ring.producer(Tail::default());
//! let mut consumer = ring.consumer(0, 0);
//!
//! let wc = |wr_id| Wc::new(wr_id, WcStatus::SUCCESS, 1);
//! producer.push(&wc(1)).unwrap();
//! producer.push(&wc(2)).unwrap();
//! assert_eq!(producer.push(&wc(3)), Err(Full));
//!
//! let mut out = [Wc::default(); 4];
//! assert_eq!(consumer.pop(&mut out), 2);
//! assert_eq!(out[..2], [wc(1), wc(2)]);
//! assert_eq!(consumer.pop(&mut out), 0);
//! # Ok::<(), cq_core::ring::CapacityError>(())
//! ```
//!
//! # How it works
//! A slot is the 48 bytes of a completion. Its last two, padding in C, hold the *generation*: which round
//! of the ring it was written in, modulo 2¹⁵, with the top bit set, so that it is never that of memory
//! which nobody has written. The producer stores all words but the last `Relaxed`, then the last one,
//! generation included, with Release. The consumer knows which generation the next slot will have, so it
//! needs no index of the producer's: three cache lines move for four entries, and nothing else.
//!
//! The consumer stores its *head* once for each call, before the caller sees any entry of the batch, or up
//! to `lag` entries late. The producer keeps a copy of the head and loads the real one only when the copy
//! makes the ring look full; the copy is never older than one round, so positions may wrap.
//!
//! All words are atomic, so a peer that scribbles over the memory can forge and lose entries, and make the
//! ring look full, but do nothing else.

mod capacity;
#[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
pub(crate) mod shared;
mod slot;

use core::fmt;

use self::slot::Place;
use crate::sync::{self, AtomicWord, Site, const_unless_loom};
use crate::wc::Wc;

pub use self::capacity::CapacityError;
#[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
pub use self::shared::Gate;
pub use self::slot::Slot;

/// The most slots that a ring may have.
pub const MAX_STORAGE: usize = 1 << 24;

/// How many entries came before, wrapping.
pub use crate::sync::Word as Position;

/// The position up to which the consumer has given slots back. Alone in its cache lines, because the
/// consumer writes it while the producer works elsewhere.
#[derive(Debug)]
#[cfg_attr(target_pointer_width = "64", repr(C, align(128)))]
#[cfg_attr(not(target_pointer_width = "64"), repr(C))]
pub struct Head(AtomicWord);

impl Head {
    const_unless_loom! {
        /// At position 0.
        #[must_use]
        pub const fn new() -> Self {
            Self(AtomicWord::new(0))
        }
    }

    pub(crate) fn reset(&mut self) {
        sync::store(&self.0, 0);
    }
}

impl Default for Head {
    fn default() -> Self {
        Self::new()
    }
}

/// A ring over borrowed slots. Copies are the same ring: it must have one producer and one consumer.
#[derive(Clone, Copy)]
pub struct Ring<'a> {
    slots: &'a [Slot],
    head: &'a Head,
}

impl<'a> Ring<'a> {
    /// A ring of all these slots, which, like the head, must be new or have been used by nothing but the
    /// sides that are continued.
    ///
    /// # Errors
    /// The number of slots is not a power of two, or out of range.
    pub fn new(slots: &'a [Slot], head: &'a Head) -> Result<Self, CapacityError> {
        CapacityError::check_storage(slots.len())?;
        Ok(Self::of(slots, head))
    }

    /// [`new`](Self::new) where the number of slots has been checked.
    pub(crate) const fn of(slots: &'a [Slot], head: &'a Head) -> Self {
        Self { slots, head }
    }

    /// How many entries it stores.
    #[must_use]
    pub const fn storage(&self) -> usize {
        self.slots.len()
    }

    /// The one producer, from `tail` on.
    #[must_use]
    pub const fn producer(self, tail: Tail) -> Producer<'a> {
        Producer { ring: self, tail }
    }

    /// The one consumer, from `position` on, which gives slots back when more than `lag` wait for it; a
    /// ring with `lag` of its slots to spare never looks full for that. All slots before `position` are
    /// given back.
    #[must_use]
    pub fn consumer(self, position: Position, lag: u32) -> Consumer<'a> {
        sync::release_head(&self.head.0, position);
        let next = self.place(position);
        // As many as there are slots would be given back never.
        let lag = Position::from(lag).min(self.slots.len() as Position - 1);
        Consumer { ring: self, position, next, released: position, lag }
    }

    /// Where a producer goes on whose last one stopped at any instant, even inside a push, having stored at
    /// most a whole ring since it was at `tail`. Hands each entry that it has published since, with the
    /// index of its slot, to `each`, oldest first.
    pub fn recover(self, tail: Tail, mut each: impl FnMut(&Wc, usize)) -> Tail {
        let mut position = tail.position;
        for _ in self.slots {
            let Some(wc) = self.place(position).read() else { break };
            each(&wc, self.index(position));
            position = position.wrapping_add(1);
        }
        // As if full, so that the head is looked at: the copy of it may be torn from its position.
        let seen_head = position.wrapping_sub(self.slots.len() as Position);
        Tail { position, seen_head, ..tail }
    }

    #[inline(always)]
    const fn index(&self, position: Position) -> usize {
        position as usize & (self.slots.len() - 1)
    }

    /// The slot at this position, and the round that the position is in. Rounds that follow each other
    /// differ, also where the position wraps, since a round is a power of two.
    #[inline(always)]
    const fn place(&self, position: Position) -> Place<'a> {
        let round = position >> self.slots.len().trailing_zeros();
        Place { slot: &self.slots[self.index(position)], generation: round as u16 | 1 << 15 }
    }
}

impl fmt::Debug for Ring<'_> {
    /// Without the slots: there are thousands.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring").field("storage", &self.storage()).finish_non_exhaustive()
    }
}

/// All that a producer knows; with it, another one can go on where this one stopped. The default is the
/// beginning of a new ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tail {
    position: Position,
    seen_head: Position,
    closed: bool,
}

impl Tail {
    /// In an empty ring whose consumer is at `position`.
    #[must_use]
    pub const fn at(position: Position) -> Self {
        Self { position, seen_head: position, closed: false }
    }

    /// How many entries were stored.
    #[must_use]
    pub const fn position(&self) -> Position {
        self.position
    }

    /// The same place in a ring that was, or was not, [closed](Producer::close).
    #[must_use]
    pub(crate) const fn with_closed(self, closed: bool) -> Self {
        Self { closed, ..self }
    }

    /// Three words to keep while no producer is at work.
    #[must_use]
    pub const fn to_words(self) -> [Position; 3] {
        [self.position, self.seen_head, self.closed as Position]
    }

    /// What [`to_words`](Self::to_words) made. Any words are harmless: the wrong ones lose or forge
    /// entries, but touch nothing outside the ring.
    #[must_use]
    pub const fn from_words([position, seen_head, closed]: [Position; 3]) -> Self {
        Self { position, seen_head, closed: closed != 0 }
    }
}

/// The producer's side.
#[derive(Debug)]
pub struct Producer<'a> {
    ring: Ring<'a>,
    tail: Tail,
}

impl Producer<'_> {
    /// Stores a completion.
    ///
    /// # Errors
    /// The ring is full, or was [closed](Self::close).
    #[inline]
    pub fn push(&mut self, wc: &Wc) -> Result<(), Full> {
        self.push_after(wc, |_| ())
    }

    /// Stores a completion, after calling `before` with the index of its slot: what `before` stores there
    /// in memory of the caller's own is visible to whoever sees the completion.
    ///
    /// # Errors
    /// The ring is full, or was [closed](Self::close).
    #[inline]
    pub fn push_after(&mut self, wc: &Wc, before: impl FnOnce(usize)) -> Result<(), Full> {
        let position = self.tail.position;
        if self.looks_full(position) && !self.has_room_after_all(position) {
            return Err(Full);
        }
        before(self.ring.index(position));
        self.ring.place(position).write(wc);
        self.tail.position = position.wrapping_add(1);
        Ok(())
    }

    /// Stores completions, each with a number for `before`, as [`push_after`](Self::push_after) does; but
    /// publishes none before all are written, so that a consumer that waits for the first does not take
    /// the cache lines away meanwhile that the next ones lie in. Says for how many there was room.
    #[inline]
    pub fn push_run<'w>(
        &mut self,
        entries: impl Iterator<Item = (&'w Wc, u32)> + Clone,
        mut before: impl FnMut(usize, u32),
    ) -> usize {
        let mut end = self.tail.position;
        let mut count = 0;
        for (wc, tag) in entries.clone() {
            if self.looks_full(end) && !self.has_room_after_all(end) {
                break;
            }
            before(self.ring.index(end), tag);
            self.ring.place(end).prepare(wc);
            end = end.wrapping_add(1);
            count += 1;
        }
        for (wc, _) in entries.take(count) {
            self.ring.place(self.tail.position).publish(wc);
            self.tail.position = self.tail.position.wrapping_add(1);
        }
        count
    }

    /// Makes every later push find the ring full.
    pub fn close(&mut self) {
        self.tail.closed = true;
        self.tail.seen_head = self.tail.position.wrapping_sub(self.ring.storage() as Position);
    }

    /// How many entries the ring stores.
    #[must_use]
    pub const fn storage(&self) -> usize {
        self.ring.storage()
    }

    /// Where another producer can go on.
    #[must_use]
    pub const fn tail(&self) -> Tail {
        self.tail
    }

    /// Whether the copy of the head leaves no room at a position. A head that no consumer would write counts
    /// as full.
    #[inline(always)]
    fn looks_full(&self, position: Position) -> bool {
        position.wrapping_sub(self.tail.seen_head) >= self.ring.storage() as Position
            && sync::intact(Site::FullCheck)
    }

    #[cold]
    #[inline(never)]
    fn has_room_after_all(&mut self, position: Position) -> bool {
        if self.tail.closed {
            return false;
        }
        self.tail.seen_head = sync::acquire_head(&self.ring.head.0);
        !self.looks_full(position)
    }
}

/// The consumer's side.
#[derive(Debug)]
pub struct Consumer<'a> {
    ring: Ring<'a>,
    position: Position,
    /// The place at `position`: all that an empty poll has to know.
    next: Place<'a>,
    released: Position,
    lag: Position,
}

impl Consumer<'_> {
    /// Takes up to `out.len()` completions, oldest first, and says how many. The rest of `out` stays as it
    /// is.
    #[inline]
    pub fn pop(&mut self, out: &mut [Wc]) -> usize {
        // Most polls find nothing; this way that much is inlined wherever a poll is.
        if self.is_ready() { self.take(out) } else { 0 }
    }

    /// [`pop`](Self::pop) for a ring that is not empty.
    #[inline]
    pub(crate) fn take(&mut self, out: &mut [Wc]) -> usize {
        let count = self.copy(out, |_, _, _| ());
        self.release();
        count
    }

    /// Where another consumer can go on.
    #[must_use]
    pub const fn position(&self) -> Position {
        self.position
    }

    /// [`pop`](Self::pop) without giving the slots back: that is [`release`](Self::release), before the
    /// caller sees any of the completions. Calls `each` with how many were copied before, with the index of
    /// the slot, and with the completion.
    #[inline(always)]
    pub(crate) fn copy(
        &mut self,
        out: &mut [Wc],
        mut each: impl FnMut(usize, usize, &Wc),
    ) -> usize {
        let (ring, mut position, mut next) = (self.ring, self.position, self.next);
        let mut count = 0;
        for room in out {
            let Some(wc) = next.read() else { break };
            each(count, ring.index(position), &wc);
            *room = wc;
            position = position.wrapping_add(1);
            next = ring.place(position);
            count += 1;
        }
        (self.position, self.next) = (position, next);
        count
    }

    /// Whether the next entry is published.
    #[inline]
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.next.is_published()
    }

    /// Gives back what was copied, unless that is no more than the lag.
    #[inline(always)]
    pub(crate) fn release(&mut self) {
        if self.position.wrapping_sub(self.released) > self.lag {
            sync::release_head(&self.ring.head.0, self.position);
            self.released = self.position;
        }
    }
}

/// The ring has no room for another entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the ring is full")
    }
}

impl core::error::Error for Full {}
