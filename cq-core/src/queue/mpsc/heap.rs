//! Queues sized at run time, whose sides own the storage.
#![allow(unsafe_code)]

use alloc::sync::Arc;
use core::ptr::NonNull;

use super::super::CapacityError;
use super::super::heap::{HeapSlots, slots_for};
use super::super::owner::Owner;
use super::reservation::{Gate, SharedRing};
use super::{
    NoChannel, OnChannel, Position, QueueChannel, Ref, Shared, SharedConsumer, SharedProducer,
    Spare, SplitSignal,
};
use crate::entry::Entry;
use crate::transport::Signal;
use crate::wc::Wc;

/// A queue for several producers on the heap. Its sides share ownership. Feature `alloc`.
///
/// ```
/// use cq_core::queue::mpsc::HeapCq;
/// use cq_core::transport::{PollCq, PollError};
/// use cq_core::wc::{Wc, WcStatus};
///
/// let (producer, mut consumer) = HeapCq::new(1000)?.split();
/// let devices = [producer.clone(), producer].map(|mut producer| {
///     std::thread::spawn(move || producer.push(&Wc::new(7, WcStatus::SUCCESS, 1)))
/// });
/// for device in devices {
///     device.join().unwrap()?;
/// }
/// let mut out = [Wc::default(); 4];
/// assert_eq!(consumer.poll(&mut out)?.len(), 2);
/// assert_eq!(consumer.poll(&mut out).unwrap_err(), PollError::Closed); // the producers are gone
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct HeapCq<E: Entry = Wc> {
    storage: Arc<Storage<E>>,
    promised: u32,
}

#[derive(Debug)]
struct Storage<E: Entry> {
    shared: Shared,
    ring: RingStorage<E>,
}

#[derive(Debug)]
struct RingStorage<E: Entry> {
    gate: Gate,
    slots: HeapSlots<E>,
}

impl<E: Entry> RingStorage<E> {
    fn at(position: Position, capacity: usize) -> Result<Self, CapacityError> {
        let slots = HeapSlots::new(slots_for(capacity)?, capacity)?;
        Ok(Self { gate: Gate::at(position), slots })
    }

    /// # Safety
    /// This is alive whenever a copy of the ring is dereferenced. `owner` may keep it so.
    unsafe fn shared(&self, promised: u32, owner: Owner) -> SharedRing<'static, E> {
        // SAFETY: the caller keeps `self` alive while copies are dereferenced. It is borrowed shared, never mutably.
        let (ring, gate) = unsafe { (self.slots.ring(), Ref::kept(NonNull::from(&self.gate))) };
        SharedRing { ring, gate, promised, _owner: owner }
    }
}

impl<E: Entry> Spare<'static, E> {
    /// Storage on the heap for `capacity` entries, which need not be a power of two, for a queue to be
    /// [resized](SharedConsumer::resize) to. It is freed when the last side that uses it is dropped or moves to another ring.
    /// Feature `alloc`.
    ///
    /// # Errors
    /// The capacity is 0, or larger than [`MAX_STORAGE`](super::super::MAX_STORAGE).
    pub fn new(capacity: usize) -> Result<Self, CapacityError> {
        let storage = Arc::new(RingStorage::at(0, capacity)?);
        // SAFETY: each copy contains an `Owner` that keeps the storage alive, and is dropped with it.
        let ring = unsafe { storage.shared(capacity as u32, Owner::of(Arc::clone(&storage) as _)) };
        Ok(Self { ring })
    }
}

impl HeapCq {
    /// An empty queue for `capacity` completions, which need not be a power of two.
    ///
    /// # Errors
    /// The capacity is 0, or larger than [`MAX_STORAGE`](super::super::MAX_STORAGE).
    pub fn new(capacity: usize) -> Result<Self, CapacityError> {
        Self::of_entries(capacity)
    }
}

impl<E: Entry> HeapCq<E> {
    /// An empty queue for `capacity` [entries](crate::entry), which need not be a power of two.
    ///
    /// # Errors
    /// The capacity is 0, or larger than [`MAX_STORAGE`](super::super::MAX_STORAGE).
    pub fn of_entries(capacity: usize) -> Result<Self, CapacityError> {
        Self::new_at(capacity, 0)
    }

    /// An empty queue whose positions start at `position`, modulo 2⁶².
    #[cfg(loom)]
    pub fn starting_at(capacity: usize, position: Position) -> Result<Self, CapacityError> {
        Self::new_at(capacity, position)
    }

    fn new_at(capacity: usize, position: Position) -> Result<Self, CapacityError> {
        let storage = Storage { shared: Shared::new(), ring: RingStorage::at(position, capacity)? };
        Ok(Self { storage: Arc::new(storage), promised: capacity as u32 })
    }

    /// Returns the two sides of a queue without a channel; clone the producer for more.
    #[must_use]
    pub fn split(self) -> (SharedProducer<'static, E>, SharedConsumer<'static, E>) {
        self.sides(NoChannel, NoChannel)
    }

    /// Returns the two sides of a queue that raises its events by `signal`; clone the producer for more. Every side has
    /// a copy of `signal`, the consumer to [fail](SharedConsumer::fail) the queue.
    #[must_use]
    pub fn split_with<S: Signal + SplitSignal>(
        self,
        signal: S,
    ) -> (SharedProducer<'static, E, S>, SharedConsumer<'static, E, OnChannel<S>>) {
        let armed = OnChannel::beside(&signal);
        self.sides(signal, armed)
    }

    fn sides<P: QueueChannel, C>(
        self,
        raises: P,
        armed: C,
    ) -> (SharedProducer<'static, E, P>, SharedConsumer<'static, E, C>) {
        let Self { storage, promised } = self;
        // SAFETY: each side keeps the storage alive (`Owner::of`) for as long as it dereferences its `Ref`s; the copy
        // in a `NewRing` is only compared. This takes the queue by value, so the consumer is the only one, and the ring
        // is new.
        unsafe {
            let ring = storage.ring.shared(promised, Owner::borrowed());
            let shared = Ref::kept(NonNull::from(&storage.shared));
            let owner = Owner::of(storage);
            let consumer = SharedConsumer::new(ring.clone(), shared, armed, owner.clone());
            (SharedProducer::new(ring, shared, raises, owner), consumer)
        }
    }
}
