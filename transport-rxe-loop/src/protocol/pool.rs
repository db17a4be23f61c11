//! Receives that several queue pairs share, as in a shared receive queue. The owner posts; a process that sends to
//! one of the queue pairs takes the oldest receive for it. Processes take under the pool's lock, one at a time, and
//! move the bytes without it. The owner posts without the lock, and completions free the slots without it.
//!
//! Each receive is in a slot, with a word of state:
//!
//! | word | slot | left by |
//! |---|---|---|
//! | generation · Free | empty | the owner that [puts](Queue::put) a receive there |
//! | generation · Posted | a receive | a process that [takes](Queue::take) it |
//! | generation · Taken, by, for | in use | its completion, which [settles](Queue::settle) it, to Free in the next generation; a process that [gives it back](Queue::give_back), to Posted in the next generation; one that cannot take the lock for that and [leaves](Queue::leave) it, to Left in the next generation |
//! | generation · Left | a receive without a position in the order | the next process that takes a receive, under the lock, to Posted |
//!
//! | word | written by | meaning |
//! |---|---|---|
//! | `order` | the owner; under the lock, a process that gives back | the slots of waiting receives, from `taken` to `posted` |
//! | `posted` | the owner | where the next receive will be put in the order |
//! | `taken` | under the lock | the position of the next receive to take |
//! | `left` | a process that leaves a receive, after leaving it, or that finds one left by a dead process; one that takes, before it looks for them | some slot may be Left |
//! | `starved` | a process that finds no receive; one that posts or gives back, and clears it | all waiting senders are to be run |
//! | `first` | who has them run | the entry of the queue pair that is run first the next time |
//!
//! # Death of a process
//! A slot records which attachment took it, so the receives of a dead process are not lost: a process that
//! recovers from the death gives them back, to the front. What the dead process had published and not settled
//! has completed, so the completion queue is repaired first. Settling has no effect the second time, as the
//! tag bears the generation.
//!
//! Taking marks the slot, then advances `taken`; giving back sets `taken` back, then marks the slot. Either
//! way, a holder of the lock that dies leaves at most a slot at the front that is not Posted, and [the next
//! process to take](Queue::take) skips it.

mod queries;
mod slot;

pub use self::slot::Taken;
use self::slot::{
    ATTACHMENT_AT, FREE, LEFT, POSTED, STATE, TAKEN, TARGET, TARGET_AT, generation, in_generation,
};
use super::lock::{AttachmentId, Lock};
use super::number::{Position, QpNumber};
use super::steps::{self, Step};
use super::tag;
use crate::sync::{self, AtomicU32, AtomicU64, Site};

/// The maximum number of slots of a pool.
pub const MAX_SLOTS: usize = 1 << tag::SLOT_BITS;

/// The words that a pool has once. Zeros are an empty pool.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Pool {
    takers: Takers,
    owner: Owned,
}

#[derive(Debug, Default)]
#[repr(C, align(128))]
struct Takers {
    lock: Lock,
    limit: AtomicU32,
    /// The attachment that has to report that the limit was reached, plus 1; 0 is none.
    reporter: AtomicU32,
    /// Whether there may be slots in state Left.
    left: AtomicU32,
    taken: AtomicU64,
}

#[derive(Debug, Default)]
#[repr(C, align(128))]
struct Owned {
    posted: AtomicU64,
    starved: AtomicU32,
    first: AtomicU32,
}

const _: () = assert!(align_of::<Pool>() == 128 && size_of::<Pool>() == 256);

impl Pool {
    /// Held to take a receive or to give one back.
    pub const fn lock(&self) -> &Lock {
        &self.takers.lock
    }

    /// The entry of the queue pair that is run first the next time that all waiting senders are. Any number will do.
    pub const fn first(&self) -> &AtomicU32 {
        &self.owner.first
    }

    /// Empties the pool for a new owner, while no other process knows of it. The lock is unchanged.
    pub fn begin(&self) {
        let Takers { limit, reporter, left, .. } = &self.takers;
        for word in [limit, reporter, left, &self.owner.starved, &self.owner.first] {
            sync::store(word, 0);
        }
        sync::store(&self.takers.taken, 0);
        sync::store(&self.owner.posted, 0);
    }

    /// The state after a process died between leaving a receive and recording it.
    #[cfg(test)]
    pub fn forget_left(&self) {
        sync::store(&self.takers.left, 0);
    }

    /// The limit: an event is reported when fewer receives wait; 0 is no limit.
    pub fn limit(&self) -> u32 {
        sync::load(&self.takers.limit)
    }

    /// Sets the limit, under the lock.
    pub fn arm(&self, limit: u32) {
        sync::store(&self.takers.limit, limit);
    }

    /// The attachment that reached the limit and has not reported it yet.
    pub fn reporter(&self) -> Option<AttachmentId> {
        sync::load(&self.takers.reporter).checked_sub(1).map(|word| AttachmentId::new(word as u16))
    }

    /// Records that the limit was reported, by this attachment or on its behalf.
    pub fn reported(&self, attachment: AttachmentId) {
        let _another_owes = sync::cas(&self.takers.reporter, reporter_word(attachment), 0);
    }
}

const fn reporter_word(attachment: AttachmentId) -> u32 {
    attachment.get() as u32 + 1
}

/// A pool, its slots and their order. Any content is harmless.
#[derive(Clone, Copy, Debug)]
pub struct Queue<'a> {
    pool: &'a Pool,
    slots: &'a [AtomicU64],
    order: &'a [AtomicU32],
}

impl<'a> Queue<'a> {
    /// `None` if there are no slots, or too many, or if `order` is not a power of two or shorter than `slots`.
    pub const fn new(
        pool: &'a Pool,
        slots: &'a [AtomicU64],
        order: &'a [AtomicU32],
    ) -> Option<Self> {
        let fits = !slots.is_empty() && slots.len() <= MAX_SLOTS && slots.len() <= order.len();
        if fits && order.len().is_power_of_two() { Some(Self { pool, slots, order }) } else { None }
    }

    fn cell(&self, position: Position) -> &'a AtomicU32 {
        &self.order[(position.get() & (self.order.len() as u64 - 1)) as usize]
    }
}

/// Operations of the owner.
impl Queue<'_> {
    /// Where the next receive will be put in the order. Only the owner writes it.
    #[inline]
    pub fn posted(&self) -> Position {
        Position::new(sync::load(&self.pool.owner.posted))
    }

    /// A free slot, searched from `first` on. What was in it has been read.
    #[inline]
    pub fn find_free(&self, first: u32) -> Option<u32> {
        let count = self.slots.len() as u32;
        let is_free = |slot: &u32| {
            sync::acquire_at(&self.slots[*slot as usize], Site::SeeFree) & STATE == FREE
        };
        let first = first % count;
        (first..count).chain(0..first).find(is_free)
    }

    /// Marks a free slot, into which a receive was written, as Posted at this position.
    #[inline]
    pub fn put(&self, slot: u32, position: Position) {
        let Some(word) = self.slots.get(slot as usize) else { return };
        sync::store(word, in_generation(generation(sync::load(word)), POSTED));
        sync::store(self.cell(position), slot);
    }

    /// Makes the receives up to `end` available; true if all waiting senders are to be run.
    #[inline]
    #[must_use]
    pub fn post(&self, end: Position) -> bool {
        sync::store_fenced(&self.pool.owner.posted, end.get(), Site::PostFence);
        self.take_starved()
    }

    fn take_starved(&self) -> bool {
        let starved = sync::load(&self.pool.owner.starved) != 0;
        if starved {
            // Before they are run, after which one may set it again.
            sync::store(&self.pool.owner.starved, 0);
        }
        starved
    }
}

/// Operations under the lock.
impl Queue<'_> {
    /// Takes the oldest receive, if there is one, for queue pair `target`, by this attachment.
    #[must_use]
    pub fn take(&self, by: AttachmentId, target: QpNumber) -> Option<Taken> {
        if sync::load(&self.pool.takers.left) != 0 {
            self.take_in();
        }
        let (front, posted) = self.ends();
        if front == posted {
            return None;
        }
        let (slot, word) = self.at(front)?;
        let state = TAKEN
            | u64::from(by.get()) << ATTACHMENT_AT
            | u64::from(target.get() & TARGET) << TARGET_AT;
        let taken = in_generation(generation(sync::load(word)), state);
        sync::store(word, taken);
        steps::done(Step::Taken);
        let next = front.next();
        sync::release(&self.pool.takers.taken, next.get());
        let reached_limit = self.reaches_limit(posted.since(next), by);
        Some(Taken { slot, word: taken, reached_limit })
    }

    /// The same; if there is none, the next post or give-back has the waiting senders run.
    #[must_use]
    pub fn take_or_starve(&self, by: AttachmentId, target: QpNumber) -> Option<Taken> {
        let taken = self.take(by, target);
        if taken.is_some() {
            return taken;
        }
        // It stays set if there is a receive after all: others may starve, too.
        sync::store_fenced(&self.pool.owner.starved, 1, Site::StarveFence);
        if sync::intact(Site::LookAgain) { self.take(by, target) } else { None }
    }

    /// Puts a receive that was not used back to the front: by the process that took it, or after its death,
    /// once what it published was settled. Returns whether all waiting senders are to be run; `None` if the
    /// receive is no longer taken in this generation.
    #[must_use]
    pub fn give_back(&self, taken: &Taken) -> Option<bool> {
        let word = self.slots.get(taken.slot as usize)?;
        if sync::load(word) != taken.word {
            return None;
        }
        // In another generation: a process that still holds this `Taken` cannot mistake the next one for it.
        self.put_first(taken.slot, word, generation(taken.word).wrapping_add(1));
        Some(self.take_starved())
    }

    fn put_first(&self, slot: u32, word: &AtomicU64, generation: u16) {
        let to = self.ends().0.minus(1);
        sync::store(self.cell(to), slot);
        sync::release(&self.pool.takers.taken, to.get());
        steps::done(Step::SetBack);
        let posted = in_generation(generation, POSTED);
        sync::release(word, posted);
    }

    /// Puts receives that were left back to the front. If this process dies meanwhile, `left` is already
    /// cleared: those that recover from its death [check the slots](Self::find_left).
    #[cold]
    fn take_in(&self) {
        // Before the slots are read: a process that leaves a receive from here on sets it again.
        let _none_by_now = sync::cas(&self.pool.takers.left, 1, 0);
        for (slot, word) in (0..self.slots.len() as u32).zip(self.slots).rev() {
            // Acquires: an `Abandoned` mark set before the receive was left is seen.
            let seen = sync::acquire(word);
            if seen & STATE == LEFT {
                self.put_first(slot, word, generation(seen));
            }
        }
    }

    /// The positions of the next receive and of the end.
    fn ends(&self) -> (Position, Position) {
        let posted = Position::new(sync::acquire_at(&self.pool.owner.posted, Site::SeePosted));
        let mut front = Position::new(sync::load(&self.pool.takers.taken));
        let most = self.order.len() as u64;
        if posted.since(front) > most {
            // Either holders of the lock died here, and what they had marked was freed; or another process corrupted the
            // positions. Any receive that waits is among the last `most`.
            front = posted.minus(most);
        }
        while front != posted && sync::intact(Site::StepOver) && self.at(front).is_none() {
            front = front.next();
        }
        (front, posted)
    }

    /// The slot at a position, if it is Posted.
    fn at(&self, position: Position) -> Option<(u32, &AtomicU64)> {
        let slot = sync::load(self.cell(position));
        let word = self.slots.get(slot as usize)?;
        (sync::load(word) & STATE == POSTED).then_some((slot, word))
    }

    /// Whether `left` receives reach the limit, which is reported once. If the process dies before it reports
    /// that, `reporter` records it.
    fn reaches_limit(&self, left: u64, by: AttachmentId) -> bool {
        let limit = self.pool.limit();
        let reached = left < u64::from(limit);
        if reached {
            sync::store(&self.pool.takers.reporter, reporter_word(by));
            sync::release(&self.pool.takers.limit, 0);
        }
        reached
    }
}

/// Operations without the lock.
impl Queue<'_> {
    /// Gives back a receive that was not used, for the next process that takes one; then all waiting senders
    /// are to be run. False if the receive is no longer taken in this generation.
    #[must_use]
    pub fn leave(&self, taken: &Taken) -> bool {
        let Some(word) = self.slots.get(taken.slot as usize) else { return false };
        let to = in_generation(generation(taken.word).wrapping_add(1), LEFT);
        let leaves = sync::cas(word, taken.word, to).is_ok();
        if leaves {
            steps::done(Step::SetBack);
            sync::release(&self.pool.takers.left, 1);
        }
        leaves
    }

    /// Whether there is a receive that was left. Records it again, as the process that left it may have died
    /// before that. Then all waiting senders are to be run.
    #[must_use]
    pub fn find_left(&self) -> bool {
        let found = self.slots.iter().any(|word| sync::load(word) & STATE == LEFT);
        if found {
            sync::release(&self.pool.takers.left, 1);
        }
        found
    }
}

/// Settling completions.
impl Queue<'_> {
    /// Settles the published completion with this tag, of queue pair `target`: its slot is free. Under the
    /// lock of the completion queue; has no effect the second time. An invalid tag is ignored.
    pub fn settle(&self, tag: u32, target: QpNumber) {
        let (slot, of) = tag::to_pool(tag);
        let Some(word) = self.slots.get(slot as usize) else { return };
        // The exchange that frees it acquires.
        let seen = sync::load(word);
        let taken = Taken { slot, word: seen, reached_limit: false };
        let is_it = generation(seen) == of || !sync::intact(Site::RightLife);
        if seen & STATE == TAKEN && is_it && taken.target() == target {
            self.free(&taken);
        }
    }

    /// Frees the slot of a receive that has completed, or never will.
    pub fn free(&self, taken: &Taken) {
        let Some(word) = self.slots.get(taken.slot as usize) else { return };
        let free = in_generation(generation(taken.word).wrapping_add(1), FREE);
        let _not_so_any_more = sync::cas(word, taken.word, free);
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
