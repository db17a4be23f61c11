//! Queues sized at run time, whose sides own the storage.
#![allow(unsafe_code)]

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::ptr::NonNull;

use super::super::heap::{slots, storage_for};
use super::super::owner::Owner;
use super::reservation::{Gate, SharedRing};
use super::{
    CapacityError, Channel, NoChannel, OnChannel, Shared, SharedConsumer, SharedProducer, Slot,
    Slots, Spare, SplitSignal,
};
use super::{Position, Ref};
use crate::transport::CqKey;

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
/// assert_eq!(consumer.poll(&mut out)?, 2);
/// assert_eq!(consumer.poll(&mut out), Err(PollError::Closed)); // the producers are gone
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct HeapCq {
    storage: Arc<Storage>,
    promised: u32,
}

#[derive(Debug)]
struct Storage {
    shared: Shared,
    ring: RingStorage,
}

#[derive(Debug)]
struct RingStorage {
    gate: Gate,
    slots: Box<[Slot]>,
}

impl RingStorage {
    fn at(position: Position, capacity: u32) -> Result<Self, CapacityError> {
        Ok(Self { gate: Gate::at(position), slots: slots(storage_for(capacity)?) })
    }

    /// # Safety
    /// This is alive whenever a copy of the ring is dereferenced. `owner` may keep it so.
    unsafe fn shared(&self, promised: u32, owner: Owner) -> SharedRing<'static> {
        // SAFETY: the caller keeps `self` alive while copies are dereferenced. It is borrowed shared, never mutably.
        let (slots, gate) = unsafe {
            (Ref::kept(NonNull::from(&self.slots[..])), Ref::kept(NonNull::from(&self.gate)))
        };
        // SAFETY: `storage_for` made the number of slots a power of two (`at`).
        let ring = unsafe { Slots::new(slots, ()) };
        SharedRing { ring, gate, promised, _owner: owner }
    }
}

impl Spare<'static> {
    /// Storage on the heap for `capacity` completions, which need not be a power of two, for a queue to be
    /// [resized](SharedConsumer::resize) to. It is freed when the last side that uses it is dropped or moves to another ring.
    /// Feature `alloc`.
    ///
    /// # Errors
    /// The capacity is 0, or larger than [`MAX_STORAGE`](super::super::MAX_STORAGE).
    pub fn new(capacity: u32) -> Result<Self, CapacityError> {
        let storage = Arc::new(RingStorage::at(0, capacity)?);
        // SAFETY: each copy contains an `Owner` that keeps the storage alive, and is dropped with it.
        let ring = unsafe { storage.shared(capacity, Owner::of(Arc::clone(&storage) as _)) };
        Ok(Self { ring })
    }
}

impl HeapCq {
    /// An empty queue for `capacity` completions, which need not be a power of two.
    ///
    /// # Errors
    /// The capacity is 0, or larger than [`MAX_STORAGE`](super::super::MAX_STORAGE).
    pub fn new(capacity: u32) -> Result<Self, CapacityError> {
        Self::new_at(capacity, 0)
    }

    /// An empty queue whose positions start at `position`, modulo 2⁶².
    #[cfg(loom)]
    pub fn starting_at(capacity: u32, position: Position) -> Result<Self, CapacityError> {
        Self::new_at(capacity, position)
    }

    fn new_at(capacity: u32, position: Position) -> Result<Self, CapacityError> {
        let storage = Storage { shared: Shared::new(), ring: RingStorage::at(position, capacity)? };
        Ok(Self { storage: Arc::new(storage), promised: capacity })
    }

    /// Returns the two sides of a queue without a channel; clone the producer for more.
    #[must_use]
    pub fn split(self) -> (SharedProducer<'static>, SharedConsumer<'static>) {
        self.sides(NoChannel, NoChannel)
    }

    /// Returns the two sides of a queue that raises events by calling `signal` with `key`; clone the producer for more.
    /// The consumer has a clone of `signal`, to [fail](SharedConsumer::fail) the queue.
    #[must_use]
    pub fn split_with<S: SplitSignal>(
        self,
        key: CqKey,
        signal: S,
    ) -> (SharedProducer<'static, OnChannel<S>>, SharedConsumer<'static, OnChannel<Option<S>>>)
    {
        let (raises, armed) = OnChannel::of_both(key, signal);
        self.sides(raises, armed)
    }

    fn sides<P: Channel, C>(
        self,
        raises: P,
        armed: C,
    ) -> (SharedProducer<'static, P>, SharedConsumer<'static, C>) {
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
