//! The reservation word, by which several producers share the slots of a ring. The [module](super) documents its states.

use super::super::owner::Owner;
use super::super::reference::Ref;
use super::super::ring::{Head, Position, Ring};
use crate::entry::Entry;
use crate::sentences;
use crate::sync::{self, AtomicWord, Backoff, const_unless_loom};

const CLOSED: Position = 1 << 63;
const RESIZED: Position = 1 << 62;
const ENDED: Position = CLOSED | RESIZED;
const POSITIONS: Position = RESIZED - 1;

/// The word by which producers reserve. On cache lines of its own, because they contend for it.
#[derive(Debug)]
#[cfg_attr(target_pointer_width = "64", repr(C, align(128)))]
#[cfg_attr(not(target_pointer_width = "64"), repr(C, align(64)))]
struct Reservation(AtomicWord);

/// The control words of one ring.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Gate {
    pub(super) head: Head,
    reservation: Reservation,
}

impl Gate {
    const_unless_loom! {
        /// For a new ring that starts at `position`, modulo 2⁶².
        pub(super) const fn at(position: Position) -> Self {
            let position = position & POSITIONS;
            Self { head: Head::at(position), reservation: Reservation(AtomicWord::new(position)) }
        }
    }

    /// Resets it for a new ring, which starts where the old one stopped.
    pub(super) fn reset(&mut self) {
        *self = Self::at(sync::load(&self.reservation.0));
    }
}

/// A ring and its control words.
#[derive(Clone, Debug)]
pub(super) struct SharedRing<'a, E: Entry> {
    pub(super) ring: Ring<'a, E>,
    pub(super) gate: Ref<'a, Gate>,
    /// The guaranteed capacity.
    pub(super) promised: u32,
    /// Keeps the storage alive, if the queue was resized to storage on the heap.
    pub(super) _owner: Owner,
}

/// Why a queue can't be resized.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum ResizeErrorKind {
    /// It has overrun. This is permanent.
    Overrun,
    /// It has more unpolled completions than the new storage can hold ([Q12](crate::contract#q12)).
    BelowUnpolled {
        /// The guaranteed capacity of the new storage.
        promised: u32,
        /// The number of unpolled completions.
        unpolled: u64,
    },
    /// It still has unpolled completions from before the last resize.
    UnderWay,
}

sentences!(ResizeErrorKind {
    Self::Overrun => ("the completion queue has overrun and can't be resized: destroy it");
    Self::BelowUnpolled { promised, unpolled } => ("{unpolled} completions are not polled yet, more than the {promised} that the queue is to hold: poll them or ask for more");
    Self::UnderWay => ("a resize is in progress: poll the completions that the queue had before it");
});

impl<E: Entry> SharedRing<'_, E> {
    /// Ends the ring for its producers, and returns its final position. The consumer is at `position`, and the new ring
    /// can hold `promised` entries.
    pub(super) fn end(
        &self,
        position: Position,
        promised: u32,
    ) -> Result<Position, ResizeErrorKind> {
        let word = &self.gate.reservation.0;
        let mut seen = sync::load(word);
        loop {
            let unpolled = distance(position, seen);
            if seen & ENDED != 0 {
                return Err(ResizeErrorKind::Overrun);
            }
            if unpolled > promised.into() {
                return Err(ResizeErrorKind::BelowUnpolled { promised, unpolled });
            }
            match sync::end(word, seen, seen | RESIZED) {
                Ok(seen) => return Ok(seen),
                Err(now) => seen = now,
            }
        }
    }

    /// The number of entries reserved from `position` on. Final if the ring has ended.
    pub(super) fn reserved_after(&self, position: Position) -> u64 {
        distance(position, sync::load(&self.gate.reservation.0))
    }

    /// Whether the ring has ended.
    pub(super) fn has_ended(&self) -> bool {
        sync::load(&self.gate.reservation.0) & ENDED != 0
    }

    /// The number of entries that are reserved and not released. Entries reserved meanwhile are not counted.
    pub(super) fn unpolled(&self) -> u64 {
        let tail = sync::acquire_tail(&self.gate.reservation.0);
        match distance(self.gate.head.acquire(), tail) {
            // The head has advanced past the tail that was loaded.
            unpolled if unpolled > self.ring.storage() as u64 => 0,
            unpolled => unpolled,
        }
    }
}

/// The distance from one position to another, modulo 2⁶², where the positions of reservations wrap.
#[inline(always)]
pub(super) const fn distance(from: Position, to: Position) -> u64 {
    to.wrapping_sub(from) & POSITIONS
}

/// What happens to a ring that has fewer free slots than are wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum IfFull {
    /// It overruns and is closed.
    Close,
    /// It stays open.
    Leave,
}

/// Positions that belong to one producer, which must publish all of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reserved {
    pub(super) position: Position,
    pub(super) count: usize,
    /// Why there are fewer than wanted.
    pub(super) lack: Option<Lack>,
}

/// Why a reservation has fewer positions than wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lack {
    Full,
    /// The ring is closed, or the consumer accepts no more.
    Ended,
    Resized,
}

/// A producer's cached copies of the ring's words.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cached {
    head: Position,
    /// The reservation word as this producer has found or left it.
    word: Position,
    /// The highest number of unreleased slots found.
    high_water: u64,
}

impl Cached {
    /// Loads the current words.
    pub(super) fn of(shared: &SharedRing<'_, impl Entry>) -> Self {
        let Gate { head, reservation } = &*shared.gate;
        Self { word: sync::acquire_tail(&reservation.0), head: head.acquire(), high_water: 0 }
    }

    /// Loads the number of unreleased slots. Returns the highest number found so far.
    pub(super) fn high_water(&mut self, shared: &SharedRing<'_, impl Entry>) -> u64 {
        self.high_water = self.high_water.max(shared.unpolled());
        self.high_water
    }

    /// Reserves `wanted` positions; fewer only if the ring has fewer free slots, none if it has ended.
    #[inline]
    pub(super) fn reserve(
        &mut self,
        shared: &SharedRing<'_, impl Entry>,
        wanted: usize,
        if_full: IfFull,
    ) -> Reserved {
        let word = &shared.gate.reservation.0;
        // For one entry the word is loaded first. An attempt that fails then shows that others push at this moment: who waits lets
        // them push several entries while they have the word's cache line. For a batch a first attempt fails if others have pushed
        // since this producer has, and loads the word, too: with its cache line, so that the next one succeeds.
        let (mut seen, mut backoff) = match wanted {
            1 => (sync::acquire_tail(word), Backoff::from(1)),
            _ => (self.word, Backoff::from(0)),
        };
        while seen & ENDED == 0 {
            let count = self.free(shared, seen, wanted as u64).min(wanted as u64);
            let lacks = count < wanted as u64;
            let (closed, lack) = match if_full {
                IfFull::Close if lacks => (CLOSED, Some(Lack::Ended)),
                IfFull::Leave if lacks => (0, Some(Lack::Full)),
                _ => (0, None),
            };
            let next = (seen + count) & POSITIONS | closed;
            match sync::reserve(word, seen, next) {
                Ok(position) => {
                    self.word = next;
                    return Reserved { position, count: count as usize, lack };
                }
                Err(now) => seen = now,
            }
            backoff.pause();
        }
        // The marks are final.
        self.word = seen;
        let lack = if seen & CLOSED != 0 { Lack::Ended } else { Lack::Resized };
        Reserved { position: seen & POSITIONS, count: 0, lack: Some(lack) }
    }

    /// The number of free slots at `tail`. Reloads the head if the cached one shows fewer than `wanted`.
    #[inline(always)]
    fn free(&mut self, shared: &SharedRing<'_, impl Entry>, tail: Position, wanted: u64) -> u64 {
        match self.free_cached(shared, tail) {
            free if free >= wanted => free,
            _ => self.free_reloaded(shared, tail),
        }
    }

    #[inline(always)]
    fn free_cached(&self, shared: &SharedRing<'_, impl Entry>, tail: Position) -> u64 {
        // If other producers have advanced the word since, the head may be past `tail`. The reservation fails then.
        (shared.ring.storage() as u64).saturating_sub(distance(self.head, tail))
    }

    #[cold]
    #[inline(never)]
    fn free_reloaded(&mut self, shared: &SharedRing<'_, impl Entry>, tail: Position) -> u64 {
        self.head = shared.gate.head.acquire();
        let (unpolled, storage) = (distance(self.head, tail), shared.ring.storage() as u64);
        // A head past `tail` says nothing of how many there were.
        if unpolled <= storage {
            self.high_water = self.high_water.max(unpolled);
        }
        storage.saturating_sub(unpolled)
    }
}
