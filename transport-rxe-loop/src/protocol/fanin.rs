//! The producers' side of a completion queue, which processes use in turns, under a lock that can be
//! inherited: pushing, repairing, resizing. The consumer never looks here.
//!
//! # Pushing
//! 1. *Publish*: the ring has the entry, and its tag says what it covers. From here on it counts.
//! 2. *Settle*: the position of the queue that it covers advances to what the tag says.
//! 3. *Keep*: the tail is stored.
//! 4. Leave the lock, then raise the event, if it was armed for.
//!
//! The ring is its own log: whatever is published past the kept tail may not have been settled. Who inherits
//! the lock settles it (again), and keeps the tail behind it. So a completion and the position that it
//! stands for can't be torn apart (C8). Between two tails that are kept, no more is published than the ring
//! stores, or the log would be overwritten.
//!
//! # Waking
//! A producer disarms under the lock and raises the event after it, and may die between. Nobody can tell,
//! so after a death **every** queue that the dead may have pushed to gets an event, armed or not: by whoever
//! repairs it, and by whoever sweeps up after the dead, also where its lock is free. Whoever wakes to
//! nothing sleeps again (N5).
//!
//! # Resizing
//! The queue's owner alone does it. Positions go on in the new ring, so the kept tail holds for both, and one
//! store of one word, the [`Place`], makes the new ring the queue's: before it, whoever inherits finds the
//! old ring as it was, after it, the new one as it should be.

use cq_core::queue::raw::{Consumer, Producer, RawQueue};
use cq_core::queue::{Channel, Dropped, Entry, NoChannel, Position, State, Tail};
use cq_core::wc::Wc;

use super::lock::Lock;
use super::steps::{self, Step};
use super::tag;
use crate::sync::{self, AtomicU64, Site};

/// Where a queue's ring lies, and how large it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Where it begins, in the caller's unit.
    pub offset: u32,
    /// How many completions there is memory for, as a power of two; less than 64.
    pub log2: u32,
    /// How many completions it was promised to hold, less than 2²⁶; 0 where there is no ring.
    pub promised: u32,
}

impl Place {
    const LOG2_AT: u32 = 32;
    const PROMISED_AT: u32 = 38;

    const fn to_word(self) -> u64 {
        self.offset as u64
            | (self.log2 as u64) << Self::LOG2_AT
            | (self.promised as u64) << Self::PROMISED_AT
    }

    const fn from_word(word: u64) -> Self {
        Self {
            offset: word as u32,
            log2: (word >> Self::LOG2_AT) as u32 & 0x3f,
            promised: (word >> Self::PROMISED_AT) as u32,
        }
    }
}

/// The words. Any content is harmless, zeros are a queue without a ring. All but the lock is for who holds
/// the lock.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Fanin {
    /// Who pushes, repairs or resizes.
    pub lock: Lock,
    place: AtomicU64,
    tail: [AtomicU64; 2],
}

impl Fanin {
    /// Without a ring.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Where the ring lies. A stranger may have written it.
    #[inline]
    #[must_use]
    pub fn place(&self) -> Place {
        Place::from_word(sync::load(&self.place))
    }

    /// A new, empty ring lies here, whose consumer begins at position 0.
    pub fn begin(&self, place: Place) {
        self.keep(Tail::at(0));
        self.lie_at(place);
    }

    /// The ring is gone.
    pub fn end(&self) {
        self.lie_at(Place::default());
    }

    /// Where the next completion goes, as far as this is known without the lock.
    #[inline]
    #[must_use]
    pub fn position(&self) -> Position {
        sync::load(&self.tail[0])
    }

    /// How many completions the queue's owner, whose consumer this is, has not polled.
    #[must_use]
    pub fn unpolled<C>(&self, consumer: &Consumer<'_, C>) -> Position {
        self.tail().position().wrapping_sub(consumer.position())
    }

    /// Who pushes while the lock is held, to the ring that lies at [`place`](Self::place). The channel's signal is
    /// called under the lock, so it only remembers that an event is to be raised.
    #[inline]
    #[must_use]
    pub fn producer<'q, C: Channel>(&self, queue: RawQueue<'q>, channel: C) -> Producer<'q, C> {
        queue.into_producer(self.tail(), channel)
    }

    /// Adds a completion, which `settle` settles by its tag.
    ///
    /// # Errors
    /// The queue is full, or has been before: the completion is dropped (O3), and settled all the same.
    #[inline]
    pub fn push<C: Channel>(
        &self,
        producer: &mut Producer<'_, C>,
        entry: &Entry,
        settle: impl FnOnce(&Wc, u32),
    ) -> Result<(), Dropped> {
        let pushed = producer.push(entry);
        steps::done(Step::Published);
        settle(&entry.wc, entry.tag);
        steps::done(Step::Settled);
        self.keep(producer.tail());
        pushed
    }

    /// [`push`](Self::push) of several. Of those that follow each other from one queue, `settle` is called
    /// for the last one only.
    ///
    /// # Errors
    /// The queue has no room for all of them, or was full before: what does not fit is dropped (O3), and
    /// settled all the same. The count is that of the first ones dropped here.
    pub fn push_all<C: Channel>(
        &self,
        producer: &mut Producer<'_, C>,
        entries: &[Entry],
        mut settle: impl FnMut(&Wc, u32),
    ) -> Result<(), Dropped> {
        let mut pushed = Ok(());
        for part in entries.chunks(producer.storage()) {
            let published = producer.push_batch(part);
            self.settle_part(producer, part, &mut settle);
            pushed = pushed.and(published);
        }
        pushed
    }

    /// [`push_all`](Self::push_all) of as many as there is room for, in a queue that never overruns: each of the
    /// rest is settled all the same, and then given to `drop`.
    pub fn push_fitting<C: Channel>(
        &self,
        producer: &mut Producer<'_, C>,
        entries: &[Entry],
        mut settle: impl FnMut(&Wc, u32),
        mut drop: impl FnMut(&Entry),
    ) {
        for part in entries.chunks(producer.storage()) {
            let stored = producer.try_push_batch(part).unwrap_or(0);
            self.settle_part(producer, part, &mut settle);
            part[stored..].iter().for_each(&mut drop);
        }
    }

    /// These are published, as far as there was room: settles them, and keeps the tail.
    #[inline]
    fn settle_part<C: Channel>(
        &self,
        producer: &Producer<'_, C>,
        part: &[Entry],
        settle: &mut impl FnMut(&Wc, u32),
    ) {
        steps::done(Step::Published);
        for run in part.chunk_by(is_of_one_queue) {
            if let Some(Entry { wc, tag, .. }) = run.last() {
                settle(wc, *tag);
                steps::done(Step::Settled);
            }
        }
        self.keep(producer.tail());
    }

    /// For who has inherited the lock, of the ring that lies at [`place`](Self::place): settles everything
    /// that is published past the kept tail, and keeps the tail behind it. Then an event has to be raised,
    /// armed or not; and where the queue has overrun, whoever it concerns has to be told again.
    #[must_use]
    pub fn repair(&self, queue: &RawQueue<'_>, mut settle: impl FnMut(&Wc, u32)) -> State {
        let tail = queue.recover(self.tail(), |wc, tag| {
            settle(wc, tag);
            steps::done(Step::Settled);
        });
        self.keep(tail);
        queue.control().state()
    }

    /// For the queue's owner, under the lock: moves what waits in the ring to a new, empty one, with its tags and what
    /// the queue was armed for, and makes that the queue's. Gives the consumer of the new ring. There must be room
    /// for all that is [unpolled](Self::unpolled).
    #[must_use]
    pub fn move_to<'q, C>(
        &self,
        from: (&mut Consumer<'_, C>, &RawQueue<'_>),
        to: (Place, RawQueue<'q>),
        channel: C,
    ) -> Consumer<'q, C> {
        let ((old, old_queue), (place, queue)) = (from, to);
        let (start, unpolled) = (old.position(), self.unpolled(old));
        let control = queue.control();
        // The consumer stores the head from which the producers go on.
        let (mut producer, consumer) = queue.into_sides(start, NoChannel, channel);
        if !sync::intact(Site::MoveLast) {
            self.lie_at(place);
        }
        copy(old, unpolled, &mut producer);
        if sync::intact(Site::AdoptArm) {
            control.adopt(old_queue.control());
        }
        steps::done(Step::Adopted);
        // As far on as before; or less far, where a stranger wrote into the ring, and then a repair would
        // find the old one's tail again.
        self.keep(producer.tail());
        self.lie_at(place);
        steps::done(Step::Moved);
        consumer
    }

    #[inline]
    fn tail(&self) -> Tail {
        Tail::from_words(self.tail.each_ref().map(sync::load))
    }

    /// After all that lies there: see [`lock`](super::lock) for why.
    fn lie_at(&self, place: Place) {
        sync::release(&self.place, place.to_word());
    }

    /// The position last, and after all that it covers: see [`lock`](super::lock) for why.
    #[inline]
    fn keep(&self, tail: Tail) {
        let [position, limit] = tail.to_words();
        sync::store(&self.tail[1], limit);
        sync::release(&self.tail[0], position);
        steps::done(Step::Kept);
    }
}

/// Whether two completions are of the same queue of the same queue pair. Those of a pool stand for no others.
fn is_of_one_queue(one: &Entry, next: &Entry) -> bool {
    one.wc.qp_num() == next.wc.qp_num()
        && tag::is_send(one.tag) == tag::is_send(next.tag)
        && !tag::is_pool(one.tag)
}

/// Moves so many completions, with their tags.
fn copy<C>(from: &mut Consumer<'_, C>, count: Position, to: &mut Producer<'_>) {
    let mut room = [Wc::default(); 32];
    let mut left = count;
    loop {
        let most = left.min(room.len() as Position);
        let moved = from.poll_with(&mut room[..most as usize], |&wc, tag| {
            // There is room, as the new ring holds at least so many.
            let _ = to.push(&Entry { wc, tag, solicited: false });
        });
        steps::done(Step::Copied);
        match moved {
            Ok(moved) if moved > 0 => left -= moved as Position,
            // Nothing is left; or a stranger wrote there, so that less can be read than was stored.
            _ => break,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
