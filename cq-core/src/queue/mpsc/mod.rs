//! The software completion queue with several producers, and resizing. Only on targets with 64-bit atomics.
//!
//! ```
//! use cq_core::queue::mpsc::SoftCq;
//! use cq_core::transport::{PollCq, PollError};
//! use cq_core::wc::{Wc, WcStatus};
//!
//! let mut storage = SoftCq::<64>::new();
//! let (producer, mut consumer) = storage.split();
//! let wc = |wr_id| Wc::new(wr_id, WcStatus::SUCCESS, 5);
//!
//! std::thread::scope(|threads| {
//!     for (thread, mut producer) in [producer.clone(), producer].into_iter().enumerate() {
//!         let thread = thread as u64;
//!         threads.spawn(move || {
//!             producer.push(&wc(thread)).unwrap();
//!             producer.push_batch(&[wc(thread + 10), wc(thread + 20)]).unwrap();
//!         });
//!     }
//! });
//! let mut out = [Wc::default(); 8];
//! assert_eq!(consumer.poll(&mut out)?.len(), 6);
//! assert_eq!(consumer.poll(&mut out).unwrap_err(), PollError::Closed); // both producers are gone
//! # Ok::<(), PollError>(())
//! ```
//!
//! # What several producers change
//! A producer reserves slots by one compare-and-swap and then publishes them, so a slot may be published while an
//! earlier one is not. The consumer stops at the first unpublished slot: "empty" means that the next entry was not
//! published ([P2](crate::contract#p2)). Each producer's entries stay in order.
//!
//! *Overrun.* A producer that [overruns](SharedProducer::push_or_overrun) a full ring closes it by that same compare-and-swap,
//! and then latches the overrun. A consumer that sees the latch loads the reservation word, for the first time, to learn the ring's final
//! position. It polls up to there, and then reports the overrun ([O3](crate::contract#o3)). Other producers may still
//! be counting dropped entries, so the count that errors report is a lower bound and may grow.
//!
//! *Events.* A solicited entry may be published after a slot that is still unpublished. If its producer loads the
//! arm word before the consumer arms for solicited entries, and the consumer then finds the earlier slot
//! unpublished, only the producer of that slot can wake it. So a producer of ordinary entries that loads Solicited
//! also fires if the slot after its own is published, or if the ring or the queue has ended: the consumer then finds what follows
//! ([N6](crate::contract#n6), [O5](crate::contract#o5)). At worst the wake-up is spurious ([N3](crate::contract#n3)).
//!
//! This is sufficient. Let the consumer have armed and found the next slot unpublished. Of the slots up to the
//! solicited one, take the last whose producer executed its fence after the consumer's. That producer sees the arm. If
//! its slot is the solicited one, it fires. Otherwise the producer of the slot after it executed its fence before the
//! consumer's, so that slot is seen as published, and the producer fires.
//!
//! # The reservation word
//!
//! | bits | meaning | written by |
//! |---|---|---|
//! | 0–61 | the number of entries reserved, wrapping | a producer that reserves |
//! | 62, RESIZED | the producers have to follow to another ring | the consumer, when it resizes |
//! | 63, CLOSED | the ring had too few free slots for a push that overruns | the producer that pushed |
//!
//! | from | to | by |
//! |---|---|---|
//! | open at `n` | open at `n + k` | a producer: `k` positions from `n` on are its own |
//! | open at `n` | CLOSED at `n + k` | a producer that overruns, since it needed more than the `k` free positions |
//! | open at `n` | RESIZED at `n` | the consumer |
//! | CLOSED, RESIZED | none | the position is final |
//!
//! Each transition is one compare-and-swap, which succeeds only on the tail for which the free slots were computed. So
//! a producer never overruns a ring that has free slots, and never writes to a slot that is not free. Every position
//! before the final one is published eventually, since it belongs to a producer.
//!
//! Each producer caches the head, and the word as it has found or left it. The cached head is never ahead of the real one, so it
//! errs towards full only, and the head is reloaded before a ring is taken as full. The reload comes after the load of the word,
//! which is an Acquire and pairs with the Release of each reservation; a cached word on which a reservation succeeds is the word
//! still, and has been acquired, or is the producer's own. So the reload sees a head at least as new as any that a producer
//! could see when it made its reservation, even one that reached it as a credit ([O7](crate::contract#o7)) and is not
//! in its cached head. Without this pair, a new tail could be compared with an old head, and a ring that is not full
//! would look full.
//!
//! The consumer does not load the word while the queue runs: it relies on the generations of the slots, as with one
//! producer.
//!
//! # Resizing
//! The arm word and the words of the end belong to the queue; the head, the reservation word and the slots belong to one of its
//! [rings](Ring). [`SharedConsumer::resize`] marks the ring RESIZED, which makes its last position final. Producers then get
//! [`PushError::Resized`] and have to [`follow`](SharedProducer::follow). The consumer takes the old ring's last entry before
//! the new ring's first, so each producer's order is kept. An arm stays in force, because the arm word is the same.
//!
//! # Static queues
//! One in a static is split once: unlike a queue with one producer, it is not had again from its sides, since every clone of a
//! producer would have to come back.
//!
//! # Targets
//! Producers reserve by a 64-bit compare-and-swap. A 32-bit word leaves 30 bits for the position, besides the two
//! marks. It wraps after 2³⁰ entries, and a producer that has pushed nothing meanwhile could then succeed on a value that is
//! a whole wrap old (ABA). On targets without 64-bit atomics,
//! several producers share a queue for one, in a critical section or under a lock.

mod consumer;
#[cfg(feature = "alloc")]
mod heap;
mod producer;
mod reservation;

pub use self::consumer::{ResizeRingError, SharedConsumer};
#[cfg(feature = "alloc")]
pub use self::heap::HeapCq;
pub use self::producer::{OverrunError, PushError, SharedProducer};
pub use self::reservation::ResizeErrorKind;
use self::reservation::{Gate, SharedRing};
use super::owner::Owner;
use super::reference::Ref;
use super::storage::Slots;
use super::{Alerts, NoChannel, OnChannel, Position, QueueChannel, SplitSignal};
use crate::entry::Entry;
use crate::sync::{AtomicU32, const_unless_loom};
use crate::transport::Signal;
use crate::wc::Wc;

/// What all sides of a queue share, whichever ring it uses.
#[derive(Debug)]
struct Shared {
    alerts: Alerts,
    /// The number of producers; saturates.
    producers: AtomicU32,
}

impl Shared {
    const_unless_loom! {
        const fn new() -> Self {
            Self { alerts: Alerts::new(), producers: AtomicU32::new(0) }
        }
    }
}

/// Storage for one ring of a queue, for `N` entries; `N` is a power of two.
///
/// ```
/// use cq_core::queue::mpsc::{Ring, SoftCq};
/// use cq_core::wc::{Wc, WcStatus};
///
/// let (mut storage, mut larger) = (SoftCq::<4>::new(), Ring::<64>::new());
/// let (mut producer, mut consumer) = storage.split();
/// let new = consumer.resize(larger.spare()).unwrap();
/// producer.follow(&new);
/// producer.push(&Wc::new(1, WcStatus::SUCCESS, 5)).unwrap();
/// assert_eq!(consumer.capacity(), 64);
/// ```
#[derive(Debug)]
pub struct Ring<const N: usize, E: Entry = Wc> {
    gate: Gate,
    slots: Slots<N, E>,
}

impl<const N: usize> Ring<N> {
    const_unless_loom! {
        /// An empty ring of completions.
        #[must_use]
        pub const fn new() -> Self {
            Self::at(0)
        }
    }
}

impl<const N: usize, E: Entry> Ring<N, E> {
    const_unless_loom! {
        /// An empty ring.
        #[must_use]
        pub const fn of_entries() -> Self {
            Self::at(0)
        }

        /// An empty ring whose positions begin at `position`, modulo 2⁶²: for tests of what wraps.
        #[must_use]
        pub const fn at(position: Position) -> Self {
            Self { gate: Gate::at(position), slots: Slots::new() }
        }
    }

    /// Returns the ring, for a queue to be [resized](SharedConsumer::resize) to. Discards what an earlier queue left in it.
    pub fn spare(&mut self) -> Spare<'_, E> {
        // Its positions continue, and every reserved one was published: a slot is unwritten, or holds the round just before.
        self.gate.reset();
        Spare { ring: self.shared() }
    }

    fn shared(&self) -> SharedRing<'_, E> {
        SharedRing {
            ring: self.slots.ring(),
            gate: Ref::from(&self.gate),
            promised: Slots::<N, E>::CAPACITY,
            _owner: Owner::borrowed(),
        }
    }
}

impl<const N: usize, E: Entry> Default for Ring<N, E> {
    fn default() -> Self {
        Self::of_entries()
    }
}

/// A ring that no queue uses: a [`Ring`], or storage on the heap (`Spare::new`, feature `alloc`).
///
/// ```
/// use cq_core::queue::mpsc::{HeapCq, PushError, Spare};
/// use cq_core::wc::{Wc, WcStatus};
///
/// let (mut producer, mut consumer) = HeapCq::new(16)?.split();
/// let new = consumer.resize(Spare::new(1000)?)?;
/// let wc = Wc::new(7, WcStatus::SUCCESS, 5);
/// assert_eq!(producer.push(&wc), Err(PushError::Resized));
/// producer.follow(&new);
/// producer.push(&wc)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Spare<'a, E: Entry = Wc> {
    ring: SharedRing<'a, E>,
}

/// The ring that a queue was resized to.
#[derive(Clone)]
pub struct NewRing<'a, E: Entry = Wc> {
    ring: SharedRing<'a, E>,
    /// The queue, by address.
    of: Ref<'a, Shared>,
    /// Keeps the address from being another queue's.
    _queue: Owner,
}

// Not at the queue, which may be gone.
crate::debug_of!([E: Entry + core::fmt::Debug] NewRing<'_, E> { ring });

/// A queue for several producers with inline storage for `N` entries; `N` is a power of two.
///
/// ```
/// use cq_core::queue::mpsc::SoftCq;
/// use cq_core::wc::{Wc, WcStatus};
///
/// let mut storage = SoftCq::<4>::new();
/// let (mut producer, mut consumer) = storage.split();
/// let mut second = producer.clone(); // for another thread
/// producer.push(&Wc::new(1, WcStatus::SUCCESS, 5))?;
/// second.push(&Wc::new(2, WcStatus::SUCCESS, 5))?;
/// assert_eq!(consumer.poll(&mut [Wc::default(); 4])?.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// See [the module](self) for another example.
#[derive(Debug)]
pub struct SoftCq<const N: usize, E: Entry = Wc> {
    shared: Shared,
    ring: Ring<N, E>,
}

impl<const N: usize> SoftCq<N> {
    const_unless_loom! {
        /// An empty queue of completions.
        #[must_use]
        pub const fn new() -> Self {
            Self::at(0)
        }
    }
}

impl<const N: usize, E: Entry> SoftCq<N, E> {
    const_unless_loom! {
        /// An empty queue.
        #[must_use]
        pub const fn of_entries() -> Self {
            Self::at(0)
        }

        /// An empty queue whose positions begin at `position`, modulo 2⁶²: for tests of what wraps.
        #[must_use]
        pub const fn at(position: Position) -> Self {
            Self { shared: Shared::new(), ring: Ring::at(position) }
        }
    }

    /// Returns the two sides of a queue without a channel; clone the producer for more. Resets the queue: entries
    /// and state left by earlier sides are discarded.
    pub fn split(&mut self) -> (SharedProducer<'_, E>, SharedConsumer<'_, E>) {
        self.sides(NoChannel, NoChannel)
    }

    /// Returns the two sides of a queue that raises its events by `signal`; clone the producer for more. Every side has
    /// a copy of `signal`, the consumer to [fail](SharedConsumer::fail) the queue. Resets the queue, as
    /// [`split`](Self::split) does.
    pub fn split_with<S: Signal + SplitSignal>(
        &mut self,
        signal: S,
    ) -> (SharedProducer<'_, E, S>, SharedConsumer<'_, E, OnChannel<S>>) {
        let armed = OnChannel::beside(&signal);
        self.sides(signal, armed)
    }

    #[allow(unsafe_code)]
    fn sides<P: QueueChannel, C>(
        &mut self,
        raises: P,
        armed: C,
    ) -> (SharedProducer<'_, E, P>, SharedConsumer<'_, E, C>) {
        self.shared = Shared::new();
        let Spare { ring } = self.ring.spare();
        let shared = Ref::from(&self.shared);
        // SAFETY: the sides borrow the queue mutably, so no others exist. The ring was reset.
        let consumer =
            unsafe { SharedConsumer::new(ring.clone(), shared, armed, Owner::borrowed()) };
        (SharedProducer::new(ring, shared, raises, Owner::borrowed()), consumer)
    }
}

impl<const N: usize, E: Entry> Default for SoftCq<N, E> {
    fn default() -> Self {
        Self::of_entries()
    }
}
