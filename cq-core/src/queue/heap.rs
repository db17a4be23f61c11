//! Queues sized at run time, whose sides own the storage.
#![allow(unsafe_code)]

use alloc::sync::Arc;
use core::ptr::NonNull;

use super::owner::Owner;
use super::ring::Ref;
use super::storage::HeapSlots;
use super::{
    CapacityError, Channel, Consumer, Control, NoChannel, OnChannel, Producer, SplitSignal, Tail,
};
use crate::entry::Entry;
use crate::transport::Signal;
use crate::wc::Wc;

/// A queue on the heap. Its two sides share ownership, so each can move to its own thread. Feature `alloc`.
///
/// ```
/// use cq_core::queue::HeapCq;
/// use cq_core::transport::{PollCq, PollError};
/// use cq_core::wc::{Wc, WcStatus};
///
/// let (mut producer, mut consumer) = HeapCq::new(1000)?.split();
/// let device = std::thread::spawn(move || producer.push(&Wc::new(7, WcStatus::SUCCESS, 1)));
/// device.join().unwrap()?;
/// let mut out = [Wc::default(); 4];
/// assert_eq!(consumer.poll(&mut out)?, 1);
/// assert_eq!(consumer.poll(&mut out), Err(PollError::Closed)); // the producer is gone
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct HeapCq<E: Entry = Wc> {
    storage: Arc<Storage<E>>,
    promised: u32,
}

#[derive(Debug)]
struct Storage<E: Entry> {
    control: Control,
    slots: HeapSlots<E>,
}

/// The number of slots for `capacity` entries.
pub(super) fn storage_for(capacity: u32) -> Result<usize, CapacityError> {
    let slots = (capacity as usize).checked_next_power_of_two();
    let slots = slots.ok_or(CapacityError::TooLarge(capacity as usize))?;
    CapacityError::check_promise(slots, capacity)?;
    Ok(slots)
}

impl HeapCq {
    /// An empty queue for `capacity` completions, which need not be a power of two: it is full with the next one
    /// ([O1](crate::contract#o1)).
    ///
    /// # Errors
    /// The capacity is 0, or larger than [`MAX_STORAGE`](super::MAX_STORAGE).
    pub fn new(capacity: u32) -> Result<Self, CapacityError> {
        Self::of_entries(capacity)
    }
}

impl<E: Entry> HeapCq<E> {
    /// An empty queue for `capacity` [entries](crate::entry), which need not be a power of two: it is full with the next one
    /// ([O1](crate::contract#o1)).
    ///
    /// # Errors
    /// The capacity is 0, or larger than [`MAX_STORAGE`](super::MAX_STORAGE).
    pub fn of_entries(capacity: u32) -> Result<Self, CapacityError> {
        Self::with_slots(capacity, storage_for(capacity)?)
    }

    /// An empty queue for `capacity` entries in `slots` slots, a power of two. With more slots than `capacity`, the
    /// consumer releases them in larger steps, up to a quarter of the ring at once, which saves the producer cache
    /// misses. The queue then overruns at the earliest one entry past the capacity, and at the latest one past the
    /// slots ([O1](crate::contract#o1)).
    ///
    /// # Errors
    /// The capacity is 0 or larger than `slots`, or `slots` is not a power of two or larger than
    /// [`MAX_STORAGE`](super::MAX_STORAGE).
    pub fn with_slots(capacity: u32, slots: usize) -> Result<Self, CapacityError> {
        let slots = HeapSlots::new(slots, capacity)?;
        let storage = Storage { control: Control::new(), slots };
        Ok(Self { storage: Arc::new(storage), promised: capacity })
    }

    /// Returns the two sides of a queue without a channel.
    #[must_use]
    pub fn split(self) -> (Producer<'static, E>, Consumer<'static, E>) {
        self.sides(NoChannel, NoChannel)
    }

    /// Returns the two sides of a queue that raises its events by `signal`. The consumer has a copy of it, to
    /// [fail](Consumer::fail) the queue.
    #[must_use]
    pub fn split_with<S: Signal + SplitSignal>(
        self,
        signal: S,
    ) -> (Producer<'static, E, S>, Consumer<'static, E, OnChannel<S>>) {
        let armed = OnChannel::beside(&signal);
        self.sides(signal, armed)
    }

    fn sides<P: Channel, C>(
        self,
        raises: P,
        armed: C,
    ) -> (Producer<'static, E, P>, Consumer<'static, E, C>) {
        let Self { storage, promised } = self;
        // SAFETY: each side keeps the storage alive (`Owner::of`), and gives none of its `Ref`s away. They are the only
        // sides, since this takes the queue by value. All slots are unwritten, and both sides start at position 0.
        unsafe {
            let ring = storage.slots.ring();
            let control: Ref<'static, Control> = Ref::kept(NonNull::from(&storage.control));
            let owner = Owner::of(storage);
            let producer = Producer::new(ring, control, raises, Tail::at(0), owner.clone());
            (producer, Consumer::new(ring, control.parts(), armed, 0, promised, owner))
        }
    }
}
