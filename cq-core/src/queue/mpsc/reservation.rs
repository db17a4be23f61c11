//! How several producers share the slots of one ring: they reserve positions by one word, then publish as a lone
//! producer does.
//!
//! # The reservation word
//!
//! | bits | mean | written by |
//! |---|---|---|
//! | 0–61 | how many entries were reserved before, wrapping | a producer that reserves |
//! | 62, RESIZED | the producers are to go on in another ring | the consumer, as it resizes |
//! | 63, CLOSED | the ring was full when a producer needed room | that producer |
//!
//! | from | to | by |
//! |---|---|---|
//! | open at `n` | open at `n + k` | a producer: `k` positions from `n` on are its own |
//! | open at `n` | CLOSED at `n + k` | a producer that needed more than the `k` positions that were free |
//! | open at `n` | RESIZED at `n` | the consumer |
//! | CLOSED, RESIZED | nothing | nobody: the position is final |
//!
//! Each transition is one compare-and-swap, which succeeds only on the very tail that the check for room was made on. So
//! a producer never overruns a ring that has room, nor writes where none is; and every position before the final one is
//! published sooner or later, since it belongs to a producer.
//!
//! Each producer has a copy of the head of its own. It is never ahead of the real one, so it errs towards full only, and
//! the real head is looked at before a ring counts as full. That look comes after the look at the word, whose Acquire
//! makes it see at least every head that a producer could see when it reserved, also one that came to it as a credit
//! (O7) and that its copy did not show. Otherwise a new tail would stand against an old head, and the ring would look
//! full when it is not.
//!
//! The consumer does not look at the word while it works: it goes by the generations of the slots, as in a ring with one
//! producer.

use super::super::owner::Owner;
use super::super::ring::{Head, Position, Ref, Ring};
use super::super::slot::Own;
use crate::sync::{self, AtomicWord, Backoff, const_unless_loom};

const CLOSED: Position = 1 << 63;
const RESIZED: Position = 1 << 62;
const ENDED: Position = CLOSED | RESIZED;
const POSITIONS: Position = RESIZED - 1;

/// The word by which producers reserve. Alone in its cache lines: they contend for it.
#[derive(Debug)]
#[cfg_attr(target_pointer_width = "64", repr(C, align(128)))]
#[cfg_attr(not(target_pointer_width = "64"), repr(C, align(64)))]
struct Reservation(AtomicWord);

/// Where the producers and the consumer of one ring meet, besides the slots.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Gate {
    pub(super) head: Head,
    reservation: Reservation,
}

impl Gate {
    const_unless_loom! {
        /// Of a new ring that begins at this position, modulo 2⁶².
        pub(super) const fn at(position: Position) -> Self {
            let position = position & POSITIONS;
            Self { head: Head::at(position), reservation: Reservation(AtomicWord::new(position)) }
        }
    }

    /// Makes it that of a new ring, which begins where this one stopped.
    pub(super) fn reset(&mut self) {
        *self = Self::at(sync::load(&self.reservation.0));
    }
}

/// A ring, and where its sides meet.
#[derive(Clone, Debug)]
pub(super) struct SharedRing<'a> {
    pub(super) ring: Ring<'a, Own>,
    pub(super) gate: Ref<'a, Gate>,
    /// How many completions it is to hold.
    pub(super) promised: u32,
    /// Keeps its storage alive, where the queue was resized to storage on the heap.
    pub(super) _owner: Owner,
}

/// Why a ring can't be left for another one.
pub(super) enum Refusal {
    /// It overran.
    Ended,
    /// More entries than that are to be polled still.
    Unpolled(u64),
}

impl SharedRing<'_> {
    /// Sends the producers away, and says where the ring ends. The consumer is at `position`, and has a place for `room`
    /// entries to go.
    pub(super) fn end(&self, position: Position, room: u64) -> Result<Position, Refusal> {
        let word = &self.gate.reservation.0;
        let mut seen = sync::load(word);
        loop {
            let unpolled = distance(position, seen);
            if seen & ENDED != 0 {
                return Err(Refusal::Ended);
            }
            if unpolled > room {
                return Err(Refusal::Unpolled(unpolled));
            }
            match sync::end(word, seen, seen | RESIZED) {
                Ok(seen) => return Ok(seen),
                Err(now) => seen = now,
            }
        }
    }

    /// How many entries are reserved behind a position; for ever, if the ring has ended.
    pub(super) fn reserved_behind(&self, position: Position) -> u64 {
        distance(position, sync::load(&self.gate.reservation.0))
    }

    /// Whether it has ended.
    pub(super) fn has_ended(&self) -> bool {
        sync::load(&self.gate.reservation.0) & ENDED != 0
    }

    /// How many entries are reserved and not given back. Entries that are reserved meanwhile don't count.
    pub(super) fn unpolled(&self) -> u64 {
        let tail = sync::acquire_tail(&self.gate.reservation.0);
        match distance(self.gate.head.acquire(), tail) {
            // The head has overtaken the tail that was looked at.
            unpolled if unpolled > self.ring.storage() as u64 => 0,
            unpolled => unpolled,
        }
    }
}

/// How far it is from one position to another, where both wrap at 2⁶² at the latest.
#[inline(always)]
pub(super) const fn distance(from: Position, to: Position) -> u64 {
    to.wrapping_sub(from) & POSITIONS
}

/// What becomes of a ring that has no room for all that is wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum IfFull {
    /// It overruns.
    Close,
    /// Nothing.
    Leave,
}

/// Positions that belong to one producer, which has to publish every one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reserved {
    pub(super) position: Position,
    pub(super) count: usize,
    /// Why there are fewer than were wanted.
    pub(super) end: Option<End>,
}

/// What became of the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Full,
    Overrun,
    Resized,
}

/// What a producer knows of the ring's head.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeenHead {
    head: Position,
    /// The most unpolled entries that it has found there.
    high_water: u64,
}

impl SeenHead {
    /// As it is now.
    pub(super) fn of(shared: &SharedRing<'_>) -> Self {
        Self { head: shared.gate.head.acquire(), high_water: 0 }
    }

    /// Looks how many entries are unpolled. Returns the most that were ever found.
    pub(super) fn high_water(&mut self, shared: &SharedRing<'_>) -> u64 {
        self.high_water = self.high_water.max(shared.unpolled());
        self.high_water
    }

    /// Reserves `wanted` positions; fewer only if the ring has no more.
    #[inline]
    pub(super) fn reserve(
        &mut self,
        shared: &SharedRing<'_>,
        wanted: usize,
        if_full: IfFull,
    ) -> Reserved {
        let word = &shared.gate.reservation.0;
        let (mut seen, mut backoff) = (sync::acquire_tail(word), Backoff::default());
        while seen & ENDED == 0 {
            let count = self.room(shared, seen, wanted as u64).min(wanted as u64);
            let lacks = count < wanted as u64;
            let (closed, end) = match if_full {
                IfFull::Close if lacks => (CLOSED, Some(End::Overrun)),
                IfFull::Leave if lacks => (0, Some(End::Full)),
                _ => (0, None),
            };
            let next = (seen + count) & POSITIONS | closed;
            match sync::reserve(word, seen, next) {
                Ok(position) => return Reserved { position, count: count as usize, end },
                Err(now) => seen = now,
            }
            backoff.pause();
        }
        let end = if seen & CLOSED != 0 { End::Overrun } else { End::Resized };
        Reserved { position: seen & POSITIONS, count: 0, end: Some(end) }
    }

    /// How many entries fit behind `tail`, if not `wanted`, then by a new look at the head.
    #[inline(always)]
    fn room(&mut self, shared: &SharedRing<'_>, tail: Position, wanted: u64) -> u64 {
        match self.room_seen(shared, tail) {
            room if room >= wanted => room,
            _ => self.room_after_all(shared, tail),
        }
    }

    #[inline(always)]
    fn room_seen(&self, shared: &SharedRing<'_>, tail: Position) -> u64 {
        // A tail that others have left behind may be before the head. The reservation fails then.
        (shared.ring.storage() as u64).saturating_sub(distance(self.head, tail))
    }

    #[cold]
    #[inline(never)]
    fn room_after_all(&mut self, shared: &SharedRing<'_>, tail: Position) -> u64 {
        self.head = shared.gate.head.acquire();
        let room = self.room_seen(shared, tail);
        self.high_water = self.high_water.max(shared.ring.storage() as u64 - room);
        room
    }
}
