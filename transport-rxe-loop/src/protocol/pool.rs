//! Receives that several queue pairs share: their owner posts, and whoever sends to one of the queue pairs
//! takes the oldest, for it. Takers are of any process, and take in turns, under the pool's lock; bytes move
//! without it. The owner posts without it, and it comes back without it.
//!
//! Each receive lies in a slot, and a word says how that is:
//!
//! | word | slot | left by |
//! |---|---|---|
//! | generation · Free | nothing in it | the owner who [puts](Queue::put) a receive there |
//! | generation · Posted | a receive | who [takes](Queue::take) it |
//! | generation · Taken, by, for | in use | its completion, which [settles](Queue::settle) it, to the next generation; who [gives it back](Queue::give_back), to Posted, in the next generation; who can't have the lock for that and [leaves](Queue::leave) it, to Left, in the next generation |
//! | generation · Left | a receive that is in no order | the next who takes one, under the lock, to Posted |
//!
//! | word | written by | says |
//! |---|---|---|
//! | `order` | the owner; under the lock, who gives back | which slots wait, from `taken` to `posted` |
//! | `posted` | the owner | where the next receive will be put in the order |
//! | `taken` | under the lock | which one is taken next |
//! | `left` | who leaves a receive, after that, or finds one that a dead process left; who takes, before it looks for them | that some slot may be Left |
//! | `starved` | who finds none; who posts or gives back, and takes it back | that all who wait are to be kicked |
//!
//! # Dying
//! A slot says which process has it, so that a dead one takes none along: who sweeps up gives them back, to
//! the front. But what it had published and not settled has completed: so the completion queue is repaired
//! first. Settling says nothing the second time, as the tag bears the generation.
//!
//! Who takes marks the slot, then advances `taken`; who gives back sets `taken` back, then marks the
//! slot. Either way, all that a dead holder of the lock can leave is a slot at the front that is not posted,
//! and [whoever comes next](Queue::take) steps over it.
//!
//! ```
//! use std::array::from_fn;
//! use std::sync::atomic::{AtomicU32, AtomicU64};
//! use transport_rxe_loop::protocol::pool::{Pool, Queue};
//!
//! const QP: u32 = 0x1001;
//! let (pool, states, order) = (Pool::default(), from_fn(|_| AtomicU64::new(0)), from_fn(|_| AtomicU32::new(0)));
//! let queue = Queue::new(&pool, &states as &[_; 3], &order as &[_; 4]).unwrap();
//!
//! // Under the lock: nothing there, and whoever posts will kick.
//! assert!(queue.take_or_starve(7, QP).is_none());
//! let slot = queue.find_free(0).unwrap(); // and writes the request there
//! queue.put(slot, queue.posted());
//! assert!(queue.post(queue.posted() + 1)); // those who wait are to be kicked
//!
//! let taken = queue.take_or_starve(7, QP).unwrap();
//! assert_eq!(taken.slot(), slot);
//! assert_eq!(queue.taken().next(), Some(taken));
//! queue.settle(taken.tag(), QP); // once its completion is published
//! assert_eq!(queue.taken().next(), None);
//! ```

use super::lock::Lock;
use super::steps::{self, Step};
use super::tag;
use crate::sync::{self, AtomicU32, AtomicU64, Site};

/// Slots of a pool at most.
pub const MAX_SLOTS: usize = 1 << tag::SLOT_BITS;

/// The words that there is one of. Zeros are an empty pool.
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
    /// Who has to tell that the limit was reached, as its place plus 1; 0 is nobody.
    owes: AtomicU32,
    /// Whether there may be receives that were given back without the lock.
    left: AtomicU32,
    taken: AtomicU64,
}

#[derive(Debug, Default)]
#[repr(C, align(128))]
struct Owned {
    posted: AtomicU64,
    starved: AtomicU32,
}

const _: () = assert!(align_of::<Pool>() == 128 && size_of::<Pool>() == 256);

impl Pool {
    /// Who takes, or gives back.
    pub const fn lock(&self) -> &Lock {
        &self.takers.lock
    }

    /// Empties it: it is a new one's, and nobody else knows of it. The lock stays as it is.
    pub fn begin(&self) {
        let Takers { limit, owes, left, .. } = &self.takers;
        for word in [limit, owes, left, &self.owner.starved] {
            sync::store(word, 0);
        }
        sync::store(&self.takers.taken, 0);
        sync::store(&self.owner.posted, 0);
    }

    /// As who dies leaves it that has left a receive, and not said so.
    #[cfg(test)]
    pub fn forget_left(&self) {
        sync::store(&self.takers.left, 0);
    }

    /// How few receives there may be before that is told; 0 is any number.
    pub fn limit(&self) -> u32 {
        sync::load(&self.takers.limit)
    }

    /// Sets the limit; under the lock.
    pub fn arm(&self, limit: u32) {
        sync::store(&self.takers.limit, limit);
    }

    /// At which place the process is that reached the limit and has not told it yet.
    pub fn owes(&self) -> Option<u16> {
        sync::load(&self.takers.owes).checked_sub(1).map(|place| place as u16)
    }

    /// The process at this place has told it, or somebody in its stead.
    pub fn told(&self, place: u16) {
        let _another_owes = sync::swap_if(&self.takers.owes, debtor(place), 0);
    }
}

const fn debtor(place: u16) -> u32 {
    place as u32 + 1
}

const STATE: u64 = 0xff;
const FREE: u64 = 0;
const POSTED: u64 = 1;
const TAKEN: u64 = 2;
const LEFT: u64 = 3;
const PLACE_AT: u32 = 8;
const TARGET_AT: u32 = 24;
const TARGET: u32 = (1 << 24) - 1;
const GENERATION_AT: u32 = 48;

const fn in_generation(generation: u16, state: u64) -> u64 {
    (generation as u64) << GENERATION_AT | state
}

const fn generation(word: u64) -> u16 {
    (word >> GENERATION_AT) as u16
}

/// A receive that is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    slot: u32,
    word: u64,
    /// There are fewer left than was to be told: for who took it, once it has given the lock back.
    reached_limit: bool,
}

impl Taken {
    /// In which slot it is.
    #[must_use]
    pub const fn slot(&self) -> u32 {
        self.slot
    }

    /// At which place the process is that took it.
    #[must_use]
    pub const fn by(&self) -> u16 {
        (self.word >> PLACE_AT) as u16
    }

    /// The number of the queue pair that it was taken for.
    #[must_use]
    pub const fn target(&self) -> u32 {
        (self.word >> TARGET_AT) as u32 & TARGET
    }

    /// Of its completion.
    #[must_use]
    pub const fn tag(&self) -> u32 {
        tag::of_pool(self.slot, generation(self.word))
    }

    /// Whether taking it reached the limit: to be told, without the lock, and then [written
    /// down](Pool::told).
    #[must_use]
    pub const fn reached_limit(&self) -> bool {
        self.reached_limit
    }
}

/// A pool and its slots, wherever they lie. Any content is harmless.
#[derive(Clone, Copy, Debug)]
pub struct Queue<'a> {
    pool: &'a Pool,
    slots: &'a [AtomicU64],
    order: &'a [AtomicU32],
}

impl<'a> Queue<'a> {
    /// `None` if there are no slots or too many, or if `order` is no power of two, or not as many.
    #[must_use]
    pub const fn new(
        pool: &'a Pool,
        slots: &'a [AtomicU64],
        order: &'a [AtomicU32],
    ) -> Option<Self> {
        let fits = !slots.is_empty() && slots.len() <= MAX_SLOTS && slots.len() <= order.len();
        if fits && order.len().is_power_of_two() { Some(Self { pool, slots, order }) } else { None }
    }

    /// The receives that are taken. Of processes that live there may be more or fewer by now.
    pub fn taken(&self) -> impl Iterator<Item = Taken> + use<'a> {
        let words = (0..).zip(self.slots).map(|(slot, word)| (slot, sync::acquire(word)));
        words.filter(|(_, word)| word & STATE == TAKEN).map(|(slot, word)| Taken {
            slot,
            word,
            reached_limit: false,
        })
    }

    /// How many receives wait.
    ///
    /// # Staleness
    /// Without the lock it may be any older count.
    #[must_use]
    pub fn len(&self) -> u64 {
        sync::load(&self.pool.owner.posted).wrapping_sub(sync::load(&self.pool.takers.taken))
    }

    /// Whether none waits; as old as [`len`](Self::len).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn cell(&self, position: u64) -> &'a AtomicU32 {
        &self.order[(position & (self.order.len() as u64 - 1)) as usize]
    }
}

/// What the owner does.
impl Queue<'_> {
    /// Where the next receive will be put in the order. Only the owner writes it.
    #[inline]
    #[must_use]
    pub fn posted(&self) -> u64 {
        sync::load(&self.pool.owner.posted)
    }

    /// A slot that is free, looked for from `first` on. What was in it was read.
    #[inline]
    #[must_use]
    pub fn find_free(&self, first: u32) -> Option<u32> {
        let count = self.slots.len() as u32;
        let is_free = |slot: &u32| {
            sync::acquire_at(&self.slots[*slot as usize], Site::SeeFree) & STATE == FREE
        };
        let first = first % count;
        (first..count).chain(0..first).find(is_free)
    }

    /// A receive was written into this free slot, and gets this position.
    #[inline]
    pub fn put(&self, slot: u32, position: u64) {
        let Some(word) = self.slots.get(slot as usize) else { return };
        sync::store(word, in_generation(generation(sync::load(word)), POSTED));
        sync::store(self.cell(position), slot);
    }

    /// Makes the receives up to `end` takeable; true if all who may wait are to be kicked.
    #[inline]
    #[must_use]
    pub fn post(&self, end: u64) -> bool {
        sync::store_fenced(&self.pool.owner.posted, end, Site::PostFence);
        self.has_starved()
    }

    fn has_starved(&self) -> bool {
        let starved = sync::load(&self.pool.owner.starved) != 0;
        if starved {
            // Before the kicks, after which somebody may set it again.
            sync::store(&self.pool.owner.starved, 0);
        }
        starved
    }
}

/// What is done under the lock.
impl Queue<'_> {
    /// Takes the oldest receive, if there is one, for queue pair `target`, by the process at a place.
    #[must_use]
    pub fn take(&self, by: u16, target: u32) -> Option<Taken> {
        if sync::load(&self.pool.takers.left) != 0 {
            self.take_in();
        }
        let (front, posted) = self.ends();
        if front == posted {
            return None;
        }
        let (slot, word) = self.at(front)?;
        let state = TAKEN | u64::from(by) << PLACE_AT | u64::from(target & TARGET) << TARGET_AT;
        let taken = in_generation(generation(sync::load(word)), state);
        sync::store(word, taken);
        steps::done(Step::Taken);
        let next = front.wrapping_add(1);
        sync::release(&self.pool.takers.taken, next);
        let reached_limit = self.reaches_limit(posted.wrapping_sub(next), by);
        Some(Taken { slot, word: taken, reached_limit })
    }

    /// The same; and if there is none, whoever posts one, or gives one back, will kick.
    #[must_use]
    pub fn take_or_starve(&self, by: u16, target: u32) -> Option<Taken> {
        let taken = self.take(by, target);
        if taken.is_some() {
            return taken;
        }
        // It stays if there is one after all: others may starve, too.
        sync::store_fenced(&self.pool.owner.starved, 1, Site::StarveFence);
        if sync::intact(Site::LookAgain) { self.take(by, target) } else { None }
    }

    /// Puts a receive back to the front that was not used: by who took it, or once that one is dead and
    /// what it published was settled. Says whether all who may wait are to be kicked; `None` if it is not
    /// taken so any more.
    #[must_use]
    pub fn give_back(&self, taken: &Taken) -> Option<bool> {
        let word = self.slots.get(taken.slot as usize)?;
        if sync::load(word) != taken.word {
            return None;
        }
        // Of another generation: whoever still knows of this taking can't mistake the next one for it.
        self.put_first(taken.slot, word, generation(taken.word).wrapping_add(1));
        Some(self.has_starved())
    }

    fn put_first(&self, slot: u32, word: &AtomicU64, generation: u16) {
        let to = self.ends().0.wrapping_sub(1);
        sync::store(self.cell(to), slot);
        sync::release(&self.pool.takers.taken, to);
        steps::done(Step::SetBack);
        let posted = in_generation(generation, POSTED);
        sync::release(word, posted);
    }

    /// Puts what others have left to the front. Who dies over this has taken the word that there is some along:
    /// those who sweep up after it look [themselves](Self::find_left).
    #[cold]
    fn take_in(&self) {
        // Before the looks: who leaves one from here on says so again.
        let _none_by_now = sync::swap_if(&self.pool.takers.left, 1, 0);
        for (slot, word) in (0..self.slots.len() as u32).zip(self.slots).rev() {
            // Who left it has been told that it may still be written to.
            let seen = sync::acquire(word);
            if seen & STATE == LEFT {
                self.put_first(slot, word, generation(seen));
            }
        }
    }

    /// Where the next receive stands, and where the last one ends.
    fn ends(&self) -> (u64, u64) {
        let posted = sync::acquire_at(&self.pool.owner.posted, Site::SeePosted);
        let mut front = sync::load(&self.pool.takers.taken);
        let most = self.order.len() as u64;
        if posted.wrapping_sub(front) > most {
            // Either holders of the lock died here, and what they had marked was freed; or a stranger wrote
            // that. Whatever waits is among the last.
            front = posted.wrapping_sub(most);
        }
        while front != posted && sync::intact(Site::StepOver) && self.at(front).is_none() {
            front = front.wrapping_add(1);
        }
        (front, posted)
    }

    /// The slot at a position, if it is posted.
    fn at(&self, position: u64) -> Option<(u32, &AtomicU64)> {
        let slot = sync::load(self.cell(position));
        let word = self.slots.get(slot as usize)?;
        (sync::load(word) & STATE == POSTED).then_some((slot, word))
    }

    /// Whether the limit is reached with so many left: once. Who dies before it has told owes it.
    fn reaches_limit(&self, left: u64, by: u16) -> bool {
        let limit = self.pool.limit();
        let reached = left < u64::from(limit);
        if reached {
            sync::store(&self.pool.takers.owes, debtor(by));
            sync::release(&self.pool.takers.limit, 0);
        }
        reached
    }
}

/// What is done by those who can't have the lock.
impl Queue<'_> {
    /// Gives a receive back that was not used, for the next who takes one: then all who may wait are to be kicked.
    /// False if it is not taken so any more.
    #[must_use]
    pub fn leave(&self, taken: &Taken) -> bool {
        let Some(word) = self.slots.get(taken.slot as usize) else { return false };
        let to = in_generation(generation(taken.word).wrapping_add(1), LEFT);
        let leaves = sync::swap_if(word, taken.word, to).is_ok();
        if leaves {
            steps::done(Step::SetBack);
            sync::release(&self.pool.takers.left, 1);
        }
        leaves
    }

    /// Whether there is a receive that was left: it is said once more, as who left it may have died before that. Then
    /// all who may wait are to be kicked.
    #[must_use]
    pub fn find_left(&self) -> bool {
        let found = self.slots.iter().any(|word| sync::load(word) & STATE == LEFT);
        if found {
            sync::release(&self.pool.takers.left, 1);
        }
        found
    }
}

/// What a receive's completion says.
impl Queue<'_> {
    /// The completion with this tag, of queue pair `target`, is published: its slot is free. Under the lock of
    /// the completion queue; says nothing new the second time. A tag that can't be is ignored.
    pub fn settle(&self, tag: u32, target: u32) {
        let (slot, of) = tag::to_pool(tag);
        let Some(word) = self.slots.get(slot as usize) else { return };
        // Freeing it acquires.
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
        let _not_so_any_more = sync::swap_if(word, taken.word, free);
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
