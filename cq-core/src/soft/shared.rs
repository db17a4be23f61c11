//! The software completion queue with several producers, and how it moves to other storage. Only where the
//! target has 64-bit atomics.
//!
//! ```
//! use cq_core::soft::SoftCq;
//! use cq_core::transport::Poll;
//! use cq_core::wc::{Wc, WcStatus};
//!
//! let mut storage = SoftCq::<64>::new();
//! let (producer, mut consumer) = storage.split_shared();
//! let wc = |wr_id| Wc::new(wr_id, WcStatus::SUCCESS, 5);
//!
//! std::thread::scope(|threads| {
//!     for thread in 0..2 {
//!         let mut producer = producer.clone();
//!         threads.spawn(move || {
//!             producer.push(&wc(thread)).unwrap();
//!             producer.push_batch(&[wc(thread + 10), wc(thread + 20)]).unwrap();
//!         });
//!     }
//! });
//! let mut out = [Wc::default(); 8];
//! assert_eq!(consumer.poll(&mut out)?, 6);
//! # Ok::<(), cq_core::transport::PollError>(())
//! ```
//!
//! # What several producers change
//! A producer reserves slots by one compare-and-swap and then publishes them, so a slot may be published
//! while one before it is not. The consumer stops there: "empty" means that the next entry was not
//! published (P2). Each producer's completions stay in order.
//!
//! *Overrun.* The producer that finds the ring full closes it by that same compare-and-swap, then latches
//! [`health`](crate::health). A consumer that sees the latch looks up where the ring ends, for the first
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
//! The arm and the health belong to the queue ([`Alerts`]); head, reservation word and slots to one of its
//! rings ([`Parts`]). [`Consumer::resize`] marks the ring RESIZED, by which its last position is final.
//! Producers then are refused with [`PushError::Resized`] and have to [`follow`](Producer::follow). The
//! consumer takes the old ring's last entry before the new ring's first, so each producer's order is kept,
//! and an arm stays in force, because the word is the same.

mod consumer;
mod producer;

pub use self::consumer::{Consumer, ResizeError};
pub use self::producer::{BatchError, Producer, PushError};

use super::parts::{check_storage, lag};
use super::{Alerts, SoftCq, Tag, Tags};
use crate::ring::shared::{Gate, SharedRing};
use crate::ring::{CapacityError, Ring, Slot};
use crate::transport::{CqKey, NoSignal, Signal};

/// One ring of a queue with several producers, in borrowed memory.
///
/// Copies are the same ring: it must belong to one queue and have one consumer. Its memory has to be new, or
/// what it held before is handed out again, and producers find it ended.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    shared: SharedRing<'a>,
    tags: Tags<'a>,
    promised: u32,
}

impl<'a> Parts<'a> {
    /// A ring in this memory that is to hold `promised` completions; with as many tags as slots, or none.
    ///
    /// # Errors
    /// The storage is no power of two, too small, too large, or there are tags, but not one a slot.
    pub fn new(
        gate: &'a Gate,
        slots: &'a [Slot],
        tags: &'a [Tag],
        promised: u32,
    ) -> Result<Self, CapacityError> {
        check_storage(slots, tags, promised)?;
        let ring = Ring::of(slots, &gate.head);
        let shared = SharedRing { ring, reservation: &gate.reservation };
        Ok(Self { shared, tags: Tags(tags), promised })
    }

    /// A producer; its clones are the others. Without a signal it spends nothing on events.
    #[must_use]
    pub fn producer<S: Signal>(
        self,
        alerts: &'a Alerts,
        key: CqKey,
        signal: Option<S>,
    ) -> Producer<'a, S> {
        Producer { ring: self.shared.producer(), alerts, tags: self.tags, key, signal }
    }

    /// The consumer; `events` says whether the producers have a signal.
    #[must_use]
    pub fn consumer(self, alerts: &'a Alerts, key: CqKey, events: bool) -> Consumer<'a> {
        let Self { shared, tags, promised } = self;
        let ring = shared.consumer(lag(shared.ring.storage(), promised));
        let inner = super::Consumer { ring, alerts, tags, key, events, promised };
        Consumer { inner, shared, next: None }
    }
}

impl<const N: usize> SoftCq<N> {
    /// [`split`](Self::split) for several producers: clone the one that this returns.
    pub fn split_shared(&mut self) -> (Producer<'_>, Consumer<'_>) {
        self.shared_sides(CqKey { index: 0, generation: 0 }, None::<NoSignal>)
    }

    /// [`split_with`](Self::split_with) for several producers: clone the one that this returns.
    pub fn split_shared_with<S: Signal>(
        &mut self,
        key: CqKey,
        signal: S,
    ) -> (Producer<'_, S>, Consumer<'_>) {
        self.shared_sides(key, Some(signal))
    }

    fn shared_sides<S: Signal>(
        &mut self,
        key: CqKey,
        signal: Option<S>,
    ) -> (Producer<'_, S>, Consumer<'_>) {
        self.renew();
        let (alerts, events) = (&self.control.alerts, signal.is_some());
        let ring = Ring::of(&self.slots, &self.control.head);
        let shared = SharedRing { ring, reservation: &self.reservation };
        let parts = Parts { shared, tags: Tags(&[]), promised: Self::CAPACITY };
        (parts.producer(alerts, key, signal), parts.consumer(alerts, key, events))
    }
}
