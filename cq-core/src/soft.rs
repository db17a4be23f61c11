//! The software completion queue: [ring](mod@crate::ring), [arm word](crate::notify) and
//! [health](crate::health), split into a producer's and a consumer's side. For every device that is
//! software: the loopback, a firmware's DMA driver, a test.
//!
//! ```
//! use core::cell::Cell;
//! use cq_core::soft::SoftCq;
//! use cq_core::transport::{Arm, Armed, CqKey, Notify, Poll, PollError, Signal};
//! use cq_core::wc::{Wc, WcStatus};
//!
//! struct Bell(Cell<u32>);
//! impl Signal for Bell {
//!     fn raise(&self, _: CqKey) {
//!         self.0.set(self.0.get() + 1);
//!     }
//! }
//!
//! let bell = Bell(Cell::new(0));
//! let mut storage = SoftCq::<2>::new();
//! let (mut producer, mut consumer) = storage.split_with(CqKey { index: 0, generation: 1 }, &bell);
//!
//! assert_eq!(consumer.arm(Notify::Next)?, Armed::Armed);
//! let wc = Wc::new(1, WcStatus::SUCCESS, 5);
//! producer.push(&wc)?; // raises the event
//! producer.push(&wc)?; // not armed any more
//! assert_eq!(bell.0.get(), 1);
//!
//! // One more than it can store: what was stored is handed out, then polling fails for ever (O3).
//! assert_eq!(producer.push(&wc).unwrap_err().dropped, 1);
//! let mut out = [Wc::default(); 4];
//! assert_eq!(consumer.poll(&mut out), Ok(2));
//! assert_eq!(consumer.poll(&mut out), Err(PollError::Overrun { dropped: Some(1) }));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Why no wake-up is lost
//! Producer: publish, [`push_fence`](crate::sync::push_fence), look at the arm word. Consumer: write the
//! arm word, [`arm_fence`](crate::sync::arm_fence), look at the slot and the latch. Whatever the
//! interleaving, one of the two comes second and sees what the other did: the producer fires, or the
//! consumer is told [`MayHaveMissed`](crate::transport::Armed::MayHaveMissed) (N2, N6). A queue without a channel does none of this.
//!
//! # Several producers, resizing
//! One producer spends no read-modify-write. Several take turns under a lock of their own, or are those of
//! [`shared`], whose queues can also be resized while they work. [`Control::adopt`] helps to replace the
//! storage of a queue whose sides are at rest.
//!
//! # Producers that are killed
//! Where they are processes, one may be killed inside a push, with the others' lock in its hands. The ring is
//! its own log: [`Parts::recover`] finds what was published since a tail that was kept, and goes on behind it.
//!
//! # Storage
//! [`SoftCq`] holds its storage; [`Parts`] borrows it from wherever it lies. Storage beyond what was
//! promised is used to give slots back in larger steps, up to a quarter of the ring at once, which saves
//! the producer cache misses; so an overrun comes at the earliest one past what was promised, and at the
//! latest one past the storage (O1).

mod consumer;
mod parts;
mod producer;
#[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
pub mod shared;

pub use self::consumer::Consumer;
pub use self::parts::Parts;
pub use self::producer::{Entry, Overrun, Producer};

use core::fmt;

use crate::health::{Health, State};
use crate::notify::ArmWord;
#[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
use crate::ring::shared::Reservation;
use crate::ring::{CapacityError, Head, Slot, Tail};
use crate::sync::{self, AtomicU32, array_of, const_unless_loom};
use crate::transport::{CqKey, Notify, Signal};

/// What the two sides share besides the slots. Any bytes are valid, zeros are a new queue.
#[derive(Debug)]
#[repr(C)]
pub struct Control {
    head: Head,
    alerts: Alerts,
}

/// What the sides tell each other rarely: the arm and the overrun. Away from the head, which changes all the
/// time. Any bytes are valid, zeros are a new queue.
#[derive(Debug)]
#[cfg_attr(target_pointer_width = "64", repr(C, align(128)))]
#[cfg_attr(not(target_pointer_width = "64"), repr(C))]
pub struct Alerts {
    arm: ArmWord,
    health: Health,
}

impl Alerts {
    const_unless_loom! {
        /// Of a new queue.
        #[must_use]
        pub const fn new() -> Self {
            Self { arm: ArmWord::new(), health: Health::new() }
        }
    }

    /// Whether the queue has overrun; for whoever is neither its producer nor its consumer.
    #[must_use]
    pub fn state(&self) -> State {
        self.health.state()
    }
}

impl Default for Alerts {
    fn default() -> Self {
        Self::new()
    }
}

impl Control {
    const_unless_loom! {
        /// Of a new queue.
        #[must_use]
        pub const fn new() -> Self {
            Self { head: Head::new(), alerts: Alerts::new() }
        }
    }

    /// Whether the queue has overrun; for whoever is neither its producer nor its consumer.
    #[must_use]
    pub fn state(&self) -> State {
        self.alerts.state()
    }

    /// Gives the queue up, as if it had overrun: for whoever can't push to it any more.
    pub fn fail(&self) {
        self.alerts.health.drop_one();
    }

    /// For a producer that was given no signal and has pushed: raises what the consumer armed for, if this is it,
    /// unless it `holds` that back for later, knowing what that is. `urgent` says whether it pushed what a
    /// consumer that armed for solicited completions waits for. Whoever holds an event back calls this again in
    /// the end, be it without a completion.
    pub fn notify_unless(
        &self,
        urgent: bool,
        holds: impl FnOnce(Notify) -> bool,
        raise: impl FnOnce(),
    ) {
        sync::push_fence();
        self.alerts.arm.fire_unless(urgent, holds, raise);
    }

    /// Takes over the arm and the health of the queue that this one replaces; while neither side is at
    /// work.
    pub fn adopt(&self, old: &Self) {
        self.alerts.arm.adopt(&old.alerts.arm);
        self.alerts.health.adopt(&old.alerts.health);
    }

    fn reset(&mut self) {
        self.head.reset();
        self.alerts.arm.reset();
        self.alerts.health.reset();
    }
}

impl Default for Control {
    fn default() -> Self {
        Self::new()
    }
}

/// The tags of a queue.
#[derive(Clone, Copy)]
struct Tags<'a>(&'a [Tag]);

impl Tags<'_> {
    #[inline(always)]
    fn store(&self, slot: usize, tag: u32) {
        if let Some(place) = self.0.get(slot) {
            sync::store_u32(&place.0, tag);
        }
    }

    /// 0 where there are none.
    #[inline(always)]
    fn load(&self, slot: usize) -> u32 {
        self.0.get(slot).map_or(0, |place| sync::load_u32(&place.0))
    }
}

impl fmt::Debug for Tags<'_> {
    /// Without the tags: there are thousands.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tags", self.0.len())
    }
}

/// A word beside a slot for the device's own use, handed back by [`Consumer::poll_with`].
#[derive(Debug)]
#[repr(transparent)]
pub struct Tag(AtomicU32);

impl Tag {
    const_unless_loom! {
        /// Zero.
        #[must_use]
        pub const fn new() -> Self {
            Self(AtomicU32::new(0))
        }
    }
}

impl Default for Tag {
    fn default() -> Self {
        Self::new()
    }
}

/// A queue that holds its storage, for `N` completions; `N` is a power of two.
///
/// A capacity that can't be does not compile:
/// ```compile_fail
/// let queue = cq_core::soft::SoftCq::<3>::new();
/// ```
#[derive(Debug)]
pub struct SoftCq<const N: usize> {
    control: Control,
    #[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
    reservation: Reservation,
    slots: [Slot; N],
}

impl<const N: usize> SoftCq<N> {
    const CAPACITY: u32 = {
        assert!(
            CapacityError::check_storage(N).is_ok(),
            "the capacity is a power of two, of at most MAX_STORAGE"
        );
        N as u32
    };

    const_unless_loom! {
        /// An empty queue.
        #[must_use]
        pub const fn new() -> Self {
            assert!(Self::CAPACITY as usize == N);
            Self {
                control: Control::new(),
                #[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
                reservation: Reservation::new(),
                slots: array_of![Slot::new(); N],
            }
        }
    }

    /// The two sides of a queue that nobody sleeps on. Starts afresh: what an earlier pair of sides left
    /// is gone.
    pub fn split(&mut self) -> (Producer<'_>, Consumer<'_>) {
        let parts = self.renewed();
        let key = CqKey { index: 0, generation: 0 };
        (parts.producer(Tail::default(), key, None), parts.consumer(0, key, false))
    }

    /// The two sides of a queue that raises events: `signal` is called with `key`. Starts afresh: what an
    /// earlier pair of sides left is gone.
    pub fn split_with<S: Signal>(
        &mut self,
        key: CqKey,
        signal: S,
    ) -> (Producer<'_, S>, Consumer<'_>) {
        let parts = self.renewed();
        (parts.producer(Tail::default(), key, Some(signal)), parts.consumer(0, key, true))
    }

    /// How many completions it holds (O1).
    #[must_use]
    pub const fn capacity(&self) -> u32 {
        Self::CAPACITY
    }

    fn renew(&mut self) {
        self.control.reset();
        #[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
        self.reservation.reset();
        self.slots.iter_mut().for_each(Slot::reset);
    }

    fn renewed(&mut self) -> Parts<'_> {
        self.renew();
        Parts { control: &self.control, slots: &self.slots, tags: &[], promised: Self::CAPACITY }
    }
}

impl<const N: usize> Default for SoftCq<N> {
    fn default() -> Self {
        Self::new()
    }
}
