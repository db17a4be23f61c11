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
//! # Storage
//! [`SoftCq`] holds its storage; [`Parts`] borrows it from wherever it lies. Storage beyond what was
//! promised is used to give slots back in larger steps, up to a quarter of the ring at once, which saves
//! the producer cache misses; so an overrun comes at the earliest one past what was promised, and at the
//! latest one past the storage (O1).

mod consumer;
mod producer;
#[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
pub mod shared;

pub use self::consumer::Consumer;
pub use self::producer::{Entry, Overrun, Producer};

use core::fmt;

use crate::health::{Health, State};
use crate::notify::ArmWord;
#[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
use crate::ring::shared::Reservation;
use crate::ring::{CapacityError, Head, Position, Ring, Slot, Tail};
use crate::sync::{self, AtomicU32, array_of, const_unless_loom};
use crate::transport::{CqKey, Signal};
use crate::wc::Wc;

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

/// A queue whose storage is borrowed: a static, shared memory, a DMA area.
///
/// Copies are the same queue: it must have one producer at a time and one consumer. Two of either lose and
/// forge completions, but do no other harm.
#[derive(Clone, Copy)]
pub struct Parts<'a> {
    control: &'a Control,
    slots: &'a [Slot],
    tags: &'a [Tag],
    promised: u32,
}

impl<'a> Parts<'a> {
    /// A queue in this storage that is to hold `promised` completions. A device that wants no tags gives
    /// none: writing them costs it another cache line.
    ///
    /// # Errors
    /// The storage is no power of two, too small, too large, or there are tags, but not one a slot.
    pub fn new(
        control: &'a Control,
        slots: &'a [Slot],
        tags: &'a [Tag],
        promised: u32,
    ) -> Result<Self, CapacityError> {
        check_storage(slots, tags, promised)?;
        Ok(Self { control, slots, tags, promised })
    }

    /// The producer, from `tail` on; without a signal it spends nothing on events.
    #[must_use]
    pub fn producer<S: Signal>(self, tail: Tail, key: CqKey, signal: Option<S>) -> Producer<'a, S> {
        Producer {
            ring: self.ring().producer(tail),
            alerts: &self.control.alerts,
            tags: Tags(self.tags),
            key,
            signal,
        }
    }

    /// The consumer, from `position` on; `events` says whether the producer has a signal.
    #[must_use]
    pub fn consumer(self, position: Position, key: CqKey, events: bool) -> Consumer<'a> {
        let lag = lag(self.slots.len(), self.promised);
        Consumer {
            ring: self.ring().consumer(position, lag),
            alerts: &self.control.alerts,
            tags: Tags(self.tags),
            key,
            events,
            promised: self.promised,
        }
    }

    /// Where the producer goes on if the last one stopped at any instant, even inside a push: a process that
    /// was killed. `tail` is a place where one stood before it stored as much as a whole ring. Hands each
    /// completion that was published since, with its tag, to `each`, oldest first; whatever the memory
    /// holds, those are no more than the storage.
    ///
    /// What it was to wake may sleep on: its event may have been disarmed and not been raised. So raise it,
    /// armed or not; whoever wakes to nothing sleeps again (N5).
    ///
    /// ```
    /// use cq_core::ring::{Slot, Tail};
    /// use cq_core::soft::{Control, Parts};
    /// use cq_core::transport::{CqKey, NoSignal, Poll};
    /// use cq_core::wc::{Wc, WcStatus};
    ///
    /// let (control, slots) = (Control::new(), [const { Slot::new() }; 4]);
    /// let parts = Parts::new(&control, &slots, &[], 4)?;
    /// let key = CqKey { index: 0, generation: 1 };
    /// let wc = |wr_id| Wc::new(wr_id, WcStatus::SUCCESS, 5);
    ///
    /// // Gone before anybody has kept its tail.
    /// parts.producer(Tail::default(), key, None::<NoSignal>).push(&wc(1))?;
    ///
    /// let mut found = 0;
    /// let tail = parts.recover(Tail::default(), |_, _| found += 1);
    /// assert_eq!((found, tail.position()), (1, 1));
    /// parts.producer(tail, key, None::<NoSignal>).push(&wc(2))?;
    /// assert_eq!(parts.consumer(0, key, false).poll(&mut [Wc::default(); 4])?, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn recover(self, tail: Tail, mut each: impl FnMut(&Wc, u32)) -> Tail {
        let tags = Tags(self.tags);
        let tail = self.ring().recover(tail, |wc, slot| each(wc, tags.load(slot)));
        tail.with_closed(self.control.state() != State::Running)
    }

    /// What the sides share besides the slots.
    #[must_use]
    pub const fn control(&self) -> &'a Control {
        self.control
    }

    fn ring(&self) -> Ring<'a> {
        Ring::of(self.slots, &self.control.head)
    }
}

impl fmt::Debug for Parts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = f.debug_struct("Parts");
        parts.field("promised", &self.promised).field("ring", &self.ring()).finish_non_exhaustive()
    }
}

/// Whether a queue may have this storage and this promise.
fn check_storage(slots: &[Slot], tags: &[Tag], promised: u32) -> Result<(), CapacityError> {
    CapacityError::check_storage(slots.len())?;
    if promised == 0 {
        return Err(CapacityError::Zero);
    }
    if promised as usize > slots.len() {
        return Err(CapacityError::MoreThanStorage { promised, storage: slots.len() });
    }
    if !tags.is_empty() && tags.len() != slots.len() {
        return Err(CapacityError::TagsDiffer { tags: tags.len(), slots: slots.len() });
    }
    Ok(())
}

/// How late slots are given back: as late as the promise allows, but not later than a quarter of the ring.
const fn lag(storage: usize, promised: u32) -> u32 {
    let (slack, quarter) = (storage as u32 - promised, storage as u32 / 4);
    if slack < quarter { slack } else { quarter }
}
