//! A pool of receives, whose takers can be killed, and what has completed of it.

use std::array::from_fn;
use std::sync::Arc;

use transport_rxe_loop::protocol::lock::AttachmentKey;
use transport_rxe_loop::protocol::number::QpNumber;
use transport_rxe_loop::protocol::pool::{Pool, Queue, Taken};
use transport_rxe_loop::sync::{self, AtomicU32, AtomicU64};

use crate::mortal::Mortal;
use crate::threads::Watched;

/// What the assertions about receives say.
pub const WRONG: &str = "lost or doubled";

/// The queue pair that all is taken for.
pub const TARGET: QpNumber = QpNumber::new(0x1001);

const SLOTS: usize = 2;
const RECEIVES: usize = 4;

/// A pool of two, and its lock, whose holder may be dead.
#[derive(Default)]
pub struct World {
    pool: Pool,
    slots: [AtomicU64; SLOTS],
    order: [AtomicU32; SLOTS],
    /// Which receive was put into a slot.
    requests: [Watched<u64>; SLOTS],
    /// The tag of each receive's completion, once that is published; not 0.
    published: [AtomicU32; RECEIVES],
    /// Who takes and may be killed.
    pub victim: Mortal,
}

impl World {
    /// With so many receives posted.
    pub fn with(receives: u64) -> Arc<Self> {
        let world = Self { published: from_fn(|_| AtomicU32::new(0)), ..Self::default() };
        assert!(!world.post_up_to(receives), "{WRONG}");
        Arc::new(world)
    }

    /// The pool.
    ///
    /// # Panics
    /// Not in a model.
    pub fn queue(&self) -> Queue<'_> {
        Queue::new(&self.pool, &self.slots, &self.order).unwrap()
    }

    /// Posts at once as many receives as there are free slots for, up to `all` of them; true if those who wait
    /// are to be woken.
    pub fn post_up_to(&self, all: u64) -> bool {
        let queue = self.queue();
        let mut end = queue.posted();
        while end.get() < all {
            let Some(slot) = queue.find_free(end.get() as u32) else { break };
            // It is free, so whatever was here was read.
            self.requests[slot as usize].set(end.get());
            queue.put(slot, end);
            end = end.next();
        }
        end != queue.posted() && queue.post(end)
    }

    /// Takes one, or leaves the mark that it starves; inherits the lock, if it has to.
    pub fn take(&self, me: AttachmentKey) -> Option<Taken> {
        self.take_if(me, || true)
    }

    /// The same, if `may` says so under the lock.
    pub fn take_if(&self, me: AttachmentKey, may: impl FnOnce() -> bool) -> Option<Taken> {
        self.victim.enter(self.pool.lock(), me);
        let taken = may().then(|| self.queue().take_or_starve(me.attachment(), TARGET)).flatten();
        self.victim.leave(self.pool.lock());
        taken
    }

    /// Waits until whoever is taking has marked it.
    pub fn pass(&self, me: AttachmentKey) {
        self.victim.enter(self.pool.lock(), me);
        self.victim.leave(self.pool.lock());
    }

    /// How many have completed.
    pub fn completed(&self) -> u64 {
        self.published.iter().filter(|tag| sync::acquire(*tag) != 0).count() as u64
    }

    /// Which receive it is.
    pub fn read(&self, taken: &Taken) -> u64 {
        self.requests[taken.slot as usize].get()
    }

    /// Completes one: publishes, and settles.
    ///
    /// # Panics
    /// It has completed before.
    pub fn complete(&self, taken: &Taken) {
        let published = &self.published[self.read(taken) as usize];
        assert_eq!(sync::load(published), 0, "{WRONG}");
        sync::release(published, taken.tag());
        self.queue().settle(taken.tag(), TARGET);
    }

    /// Gives one back; true if those who wait are to be woken.
    pub fn give_back(&self, me: AttachmentKey, taken: &Taken) -> bool {
        self.victim.enter(self.pool.lock(), me);
        let starved = self.queue().give_back(taken);
        self.victim.leave(self.pool.lock());
        starved == Some(true)
    }

    /// Settles all that is published, as who inherits the lock of a completion queue does: again, most of it.
    pub fn repair(&self) {
        for tag in self.published.iter().map(sync::acquire).filter(|&tag| tag != 0) {
            self.queue().settle(tag, TARGET);
        }
    }

    /// Gives back what the dead victim had taken.
    pub fn recover(&self, me: AttachmentKey, dead: AttachmentKey) {
        for taken in self.queue().taken().filter(|taken| taken.by() == dead.attachment()) {
            self.give_back(me, &taken);
        }
    }

    /// Completes all that is left, and checks that each of so many receives has completed.
    ///
    /// # Panics
    /// One has not.
    pub fn drain(&self, me: AttachmentKey, all: u64) {
        while let Some(taken) = self.take(me) {
            self.complete(&taken);
        }
        assert_eq!(self.completed(), all, "{WRONG}");
        assert_eq!(self.queue().taken().next(), None, "{WRONG}");
        assert!(self.queue().front() == self.queue().posted(), "{WRONG}");
    }
}
