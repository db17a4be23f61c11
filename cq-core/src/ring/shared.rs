//! Several producers on one ring: they reserve positions by one word, then publish as a lone producer
//! does. Only where the target has 64-bit atomics.
//!
//! # The reservation word
//!
//! | bits | mean | written by |
//! |---|---|---|
//! | 0–61 | how many entries were reserved before, wrapping | a producer that reserves |
//! | 62, RESIZED | the producers are to go on in another ring | the consumer's owner, as it resizes |
//! | 63, CLOSED | the ring was full when a producer needed room | that producer |
//!
//! | from | to | by |
//! |---|---|---|
//! | open at `n` | open at `n + k` | a producer: `k` positions from `n` on are its own |
//! | open at `n` | CLOSED at `n + k` | a producer that needed more than the `k` positions that were free |
//! | open at `n` | RESIZED at `n` | the consumer's owner |
//! | CLOSED, RESIZED | nothing | nobody: the position is final |
//!
//! Each transition is one compare-and-swap, which succeeds only on the very tail that the check for room
//! was made on. So a producer never overruns a ring that has room, nor writes where none is; and every
//! position before the final one is published sooner or later, since it belongs to a producer.
//!
//! Each producer has a copy of the head of its own. It is never ahead of the real one, so it errs towards
//! full only, and the real head is looked at before a ring counts as full. That look comes after the look
//! at the word, whose Acquire makes it see at least every head that a producer could see when it reserved,
//! also one that came to it as a credit (O7) and that its copy did not show. Otherwise a new tail would
//! stand against an old head, and the ring would look full when it is not.
//!
//! The consumer does not look at the word while it works: it goes by the generations of the slots, as in a
//! ring with one producer.

use core::fmt;

use super::{Head, Position, Ring};
use crate::sync::{self, AtomicWord, Backoff, Site, const_unless_loom};
use crate::wc::Wc;

const CLOSED: Position = 1 << 63;
const RESIZED: Position = 1 << 62;
const ENDED: Position = CLOSED | RESIZED;
const POSITIONS: Position = RESIZED - 1;

/// The word by which producers reserve. Alone in its cache lines: they contend for it.
#[derive(Debug)]
#[cfg_attr(target_pointer_width = "64", repr(C, align(128)))]
#[cfg_attr(not(target_pointer_width = "64"), repr(C, align(64)))]
pub(crate) struct Reservation(AtomicWord);

impl Reservation {
    const_unless_loom! {
        pub(crate) const fn new() -> Self {
            Self(AtomicWord::new(0))
        }
    }

    pub(crate) fn reset(&mut self) {
        sync::store(&self.0, 0);
    }
}

/// Where the producers and the consumer of one shared ring meet, besides the slots. Any bytes are valid,
/// zeros are a new ring.
#[derive(Debug)]
#[repr(C)]
pub struct Gate {
    pub(crate) head: Head,
    pub(crate) reservation: Reservation,
}

impl Gate {
    const_unless_loom! {
        /// Of a new ring.
        #[must_use]
        pub const fn new() -> Self {
            Self { head: Head::new(), reservation: Reservation::new() }
        }

        /// Of a new ring that begins at this position, modulo 2⁶².
        #[must_use]
        pub const fn at(position: Position) -> Self {
            let position = position & POSITIONS;
            Self {
                head: Head(AtomicWord::new(position)),
                reservation: Reservation(AtomicWord::new(position)),
            }
        }
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}

/// A ring, and the word by which its producers reserve.
#[derive(Clone, Copy)]
pub(crate) struct SharedRing<'a> {
    pub(crate) ring: Ring<'a>,
    pub(crate) reservation: &'a Reservation,
}

impl<'a> SharedRing<'a> {
    pub(crate) fn producer(self) -> SharedProducer<'a> {
        SharedProducer { shared: self, seen_head: sync::acquire_head(&self.ring.head.0) }
    }

    /// The consumer, from where slots have been given back.
    pub(crate) fn consumer(self, lag: u32) -> super::Consumer<'a> {
        let head = sync::acquire_head(&self.ring.head.0);
        self.ring.consumer(head, lag)
    }

    /// Sends the producers away, and says where the ring ends. The consumer is at `position`, and has a
    /// place for `room` entries to go.
    pub(crate) fn end(&self, position: Position, room: u64) -> Result<Position, Refusal> {
        let word = &self.reservation.0;
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

    /// Whether a consumer at `position` has taken everything that was reserved; for ever, if the ring has
    /// ended.
    pub(crate) fn is_drained(&self, position: Position) -> bool {
        distance(position, sync::load(&self.reservation.0)) == 0
    }
}

impl fmt::Debug for SharedRing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.ring.fmt(f)
    }
}

/// How far it is from one position to another, where both wrap at 2⁶² at the latest.
#[inline(always)]
pub(crate) const fn distance(from: Position, to: Position) -> u64 {
    to.wrapping_sub(from) & POSITIONS
}

/// Why a ring can't be left for another one.
pub(crate) enum Refusal {
    /// It overran.
    Ended,
    /// More entries than that are to be polled still.
    Unpolled(u64),
}

/// One of the producers.
#[derive(Clone, Debug)]
pub(crate) struct SharedProducer<'a> {
    shared: SharedRing<'a>,
    seen_head: Position,
}

/// Positions that belong to one producer, which has to publish every one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reserved {
    position: Position,
    pub(crate) count: usize,
    /// Why there are fewer than were wanted.
    pub(crate) end: Option<End>,
}

/// What became of the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Overrun,
    Resized,
}

impl SharedProducer<'_> {
    /// Reserves `wanted` positions; fewer only if the ring has no more, and is closed by that.
    #[inline]
    pub(crate) fn reserve(&mut self, wanted: usize) -> Reserved {
        let word = &self.shared.reservation.0;
        let (mut seen, mut backoff) = (sync::acquire_tail(word), Backoff::default());
        while seen & ENDED == 0 {
            let count = self.room(seen, wanted as u64).min(wanted as u64);
            let full = count < wanted as u64;
            let closed = if full && sync::intact(Site::CloseInWord) { CLOSED } else { 0 };
            let next = (seen + count) & POSITIONS | closed;
            match sync::reserve(word, seen, next) {
                Ok(position) => {
                    let end = full.then_some(End::Overrun);
                    return Reserved { position, count: count as usize, end };
                }
                Err(now) => seen = now,
            }
            backoff.pause();
        }
        let end = if seen & CLOSED != 0 { End::Overrun } else { End::Resized };
        Reserved { position: seen & POSITIONS, count: 0, end: Some(end) }
    }

    /// Publishes completions at reserved positions, calling `before` with the index of each slot first.
    #[inline]
    pub(crate) fn publish(&self, reserved: Reserved, wcs: &[Wc], before: impl Fn(usize)) {
        let ring = self.shared.ring;
        for (nth, wc) in wcs[..reserved.count].iter().enumerate() {
            let position = reserved.position + nth as Position;
            before(ring.index(position));
            ring.place(position).write(wc);
        }
    }

    /// Whether a consumer that stops at these positions may overlook something behind them: a completion
    /// that is published already, or the end of the ring. To be asked after the
    /// [`push_fence`](sync::push_fence).
    #[cold]
    pub(crate) fn hides_more(&self, reserved: Reserved) -> bool {
        let next = self.shared.ring.place(reserved.position + reserved.count as Position);
        let ended = sync::load(&self.shared.reservation.0) & ENDED != 0;
        next.is_published() && sync::intact(Site::Successor)
            || ended && sync::intact(Site::EndWakes)
    }

    /// How many entries fit behind `tail`, if not `wanted`, then by a new look at the head.
    #[inline(always)]
    fn room(&mut self, tail: Position, wanted: u64) -> u64 {
        match self.room_seen(tail) {
            room if room >= wanted => room,
            _ => self.room_after_all(tail),
        }
    }

    #[inline(always)]
    fn room_seen(&self, tail: Position) -> u64 {
        // A tail that others have left behind may be before the head. The reservation fails then.
        (self.shared.ring.storage() as u64).saturating_sub(distance(self.seen_head, tail))
    }

    #[cold]
    #[inline(never)]
    fn room_after_all(&mut self, tail: Position) -> u64 {
        self.seen_head = sync::acquire_head(&self.shared.ring.head.0);
        self.room_seen(tail)
    }
}
