//! The software completion queue with several producers, and how it moves to other storage. Only where the
//! target has 64-bit atomics.
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
//! assert_eq!(consumer.poll(&mut out)?, 6);
//! assert_eq!(consumer.poll(&mut out), Err(PollError::Closed)); // both producers are gone
//! # Ok::<(), PollError>(())
//! ```
//!
//! # What several producers change
//! A producer reserves slots by one compare-and-swap and then publishes them, so a slot may be published
//! while one before it is not. The consumer stops there: "empty" means that the next entry was not
//! published (P2). Each producer's completions stay in order.
//!
//! *Overrun.* The producer that finds the ring full closes it by that same compare-and-swap, then latches
//! the overrun. A consumer that sees the latch looks up where the ring ends, for the first
//! time; it polls on until it is there, and then reports the overrun (O3). Producers that come late go on
//! counting, so what it reports as dropped is a lower bound, which may grow.
//!
//! *Events.* A solicited completion may be published behind a slot that is not. If its producer looks at
//! the arm word before the consumer arms for solicited completions, and the consumer then finds the slot
//! before it empty, only the producer of that slot can wake it. So a producer of ordinary completions which
//! sees Solicited also fires if the slot behind its own is published, or if the ring has ended: the
//! consumer then learns what is behind (N6, O5). At worst it finds nothing it waits for (N3).
//!
//! Why that is enough: let the consumer have armed, and the next slot be unpublished when it looked. Of the
//! slots up to the solicited one, take the last whose producer fenced after the consumer did. It sees the
//! arm, and the slot behind it, whose producer fenced before the consumer did; so it fires.
//!
//! # Resizing
//! The arm and the health belong to the queue; head, reservation word and slots to one of its [rings](Ring).
//! [`Consumer::resize`] marks the ring RESIZED, by which its last position is final. Producers then are refused with
//! [`PushError::Resized`] and have to [`follow`](Producer::follow). The consumer takes the old ring's last entry before
//! the new ring's first, so each producer's order is kept, and an arm stays in force, because the word is the same.
//!
//! # Targets
//! Producers reserve by compare-and-swap on 64 bits: a position of 30 bits, what a 32-bit word leaves beside the two
//! marks, comes round after 2³⁰ completions, and a producer that was put off between its look at the word and the swap
//! could then take a reservation that is a whole round old for its own (ABA). On targets without 64-bit atomics several
//! producers take turns at the queue of one: in a critical section, or under a lock.

mod consumer;
#[cfg(feature = "alloc")]
mod heap;
mod producer;
mod reservation;

use core::fmt;

pub use self::consumer::{Consumer, ResizeError, WhyNot};
#[cfg(feature = "alloc")]
pub use self::heap::HeapCq;
pub use self::producer::{Producer, PushError};

use self::reservation::{Gate, SharedRing};
use super::owner::Owner;
use super::ring::{Ref, Ring as Slots};
use super::slot::Slot;
use super::{Alerts, CapacityError, Channel, NoChannel, OnChannel, Position};
use crate::sync::{AtomicU32, array_of, const_unless_loom};
use crate::transport::{CqKey, Signal};

/// What all sides of a queue share, whatever ring it is in.
#[derive(Debug)]
struct Shared {
    alerts: Alerts,
    /// How many producers there are.
    producers: AtomicU32,
}

impl Shared {
    const_unless_loom! {
        const fn new() -> Self {
            Self { alerts: Alerts::new(), producers: AtomicU32::new(0) }
        }
    }
}

/// Storage for one ring of a queue, for `N` completions; `N` is a power of two.
#[derive(Debug)]
pub struct Ring<const N: usize> {
    gate: Gate,
    slots: [Slot; N],
}

impl<const N: usize> Ring<N> {
    const CAPACITY: u32 = {
        assert!(
            CapacityError::check_storage(N).is_ok(),
            "the capacity is a power of two, of at most MAX_STORAGE"
        );
        N as u32
    };

    const_unless_loom! {
        /// An empty ring.
        #[must_use]
        pub const fn new() -> Self {
            Self::at(0)
        }

        pub(crate) const fn at(position: Position) -> Self {
            assert!(Self::CAPACITY as usize == N);
            Self { gate: Gate::at(position), slots: array_of![Slot::new(); N] }
        }
    }

    /// The ring, for a queue to be [resized](Consumer::resize) to. What an earlier queue left in it is gone.
    pub fn spare(&mut self) -> Spare<'_> {
        // Its positions go on, so what lies in its slots is of earlier rounds.
        self.gate.reset();
        Spare { ring: self.shared() }
    }

    fn shared(&self) -> SharedRing<'_> {
        let ring = Slots::new(Ref::from(&self.slots[..]), ());
        SharedRing {
            ring,
            gate: Ref::from(&self.gate),
            promised: Self::CAPACITY,
            _owner: Owner::borrowed(),
        }
    }
}

impl<const N: usize> Default for Ring<N> {
    fn default() -> Self {
        Self::new()
    }
}

/// A ring that no queue uses: of a [`Ring`], or on the heap (`Spare::new`, feature `alloc`).
#[derive(Debug)]
pub struct Spare<'a> {
    ring: SharedRing<'a>,
}

/// The ring that a queue was resized to.
#[derive(Clone)]
pub struct NewRing<'a> {
    ring: SharedRing<'a>,
    /// To be compared and no more: this may outlive a queue that owns its storage.
    of: Ref<'a, Shared>,
}

impl fmt::Debug for NewRing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewRing").field("ring", &self.ring).finish_non_exhaustive()
    }
}

/// A queue for several producers that holds its storage, for `N` completions; `N` is a power of two.
#[derive(Debug)]
pub struct SoftCq<const N: usize> {
    shared: Shared,
    ring: Ring<N>,
}

impl<const N: usize> SoftCq<N> {
    const_unless_loom! {
        /// An empty queue.
        #[must_use]
        pub const fn new() -> Self {
            Self::at(0)
        }

        pub(crate) const fn at(position: Position) -> Self {
            Self { shared: Shared::new(), ring: Ring::at(position) }
        }
    }

    /// The two sides of a queue without a channel; clones of the producer are the others. Starts afresh: what earlier sides
    /// left is gone.
    pub fn split(&mut self) -> (Producer<'_>, Consumer<'_>) {
        self.sides(NoChannel, NoChannel)
    }

    /// The two sides of a queue that raises events: `signal` is called with `key`. Clones of the producer are the others.
    /// Starts afresh: what earlier sides left is gone.
    pub fn split_with<S: Signal>(
        &mut self,
        key: CqKey,
        signal: S,
    ) -> (Producer<'_, OnChannel<S>>, Consumer<'_, OnChannel>) {
        self.sides(OnChannel { key, signal }, OnChannel::named(key))
    }

    #[allow(unsafe_code)]
    fn sides<P: Channel, C>(&mut self, raises: P, armed: C) -> (Producer<'_, P>, Consumer<'_, C>) {
        self.shared.alerts.reset();
        crate::sync::store_u32(&self.shared.producers, 0);
        let Spare { ring } = self.ring.spare();
        let shared = Ref::from(&self.shared);
        // SAFETY: the sides borrow the queue mutably, so there are no others.
        let consumer = unsafe { Consumer::new(ring.clone(), shared, armed, Owner::borrowed()) };
        (Producer::new(ring, shared, raises, Owner::borrowed()), consumer)
    }
}

impl<const N: usize> Default for SoftCq<N> {
    fn default() -> Self {
        Self::new()
    }
}
