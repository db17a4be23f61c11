//! Queues sized at run time, whose sides own the storage.
#![allow(unsafe_code)]

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::ptr::NonNull;

use super::owner::Owner;
use super::reference::Ref;
use super::ring::Ring;
use super::slot::{Generation, Slot};
use super::storage::Cell;
use super::{
    CapacityError, Consumer, Control, NoChannel, OnChannel, Producer, QueueChannel, SplitSignal,
    Tail,
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
/// assert_eq!(consumer.poll(&mut out)?.len(), 1);
/// assert_eq!(consumer.poll(&mut out).unwrap_err(), PollError::Closed); // the producer is gone
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

/// Slots on the heap. Their number is a power of two.
#[derive(Debug)]
pub(super) struct HeapSlots<E: Entry> {
    slots: Box<[Slot<E>]>,
    beside: Box<[Cell<E>]>,
}

impl<E: Entry> HeapSlots<E> {
    /// `count` unwritten slots.
    ///
    /// # Errors
    /// That is no valid number of slots, or `capacity` is larger or 0.
    pub(super) fn new(count: usize, capacity: usize) -> Result<Self, CapacityError> {
        CapacityError::check_promise(count, capacity)?;
        // On targets of 32 bits large entries may be more than there is memory for: a panic of the allocation.
        let bytes = count.checked_mul(size_of::<E>()).and_then(|bytes| isize::try_from(bytes).ok());
        bytes.ok_or(CapacityError::TooLarge(count))?;
        Ok(Self {
            slots: (0..count).map(|_| Slot::new()).collect(),
            beside: (0..count).map(|_| E::Generation::unwritten()).collect(),
        })
    }

    /// # Safety
    /// The slots are alive whenever the ring is used.
    pub(super) unsafe fn ring(&self) -> Ring<'static, E> {
        // SAFETY: their number is a power of two that is not too large, and that of the cells is the same (`new`). The caller
        // keeps them alive.
        unsafe {
            let slots = Ref::kept(NonNull::from(&self.slots[..]));
            Ring::new(slots, E::Generation::beside(&self.beside))
        }
    }
}

/// The number of slots for `capacity` entries.
pub(super) fn slots_for(capacity: usize) -> Result<usize, CapacityError> {
    capacity.checked_next_power_of_two().ok_or(CapacityError::TooLarge(capacity))
}

impl HeapCq {
    /// An empty queue for `capacity` completions, which need not be a power of two: it is full with the next one
    /// ([O1](crate::contract#o1)).
    ///
    /// # Errors
    /// The capacity is 0, or larger than [`MAX_STORAGE`](super::MAX_STORAGE).
    pub fn new(capacity: usize) -> Result<Self, CapacityError> {
        Self::of_entries(capacity)
    }
}

impl<E: Entry> HeapCq<E> {
    /// An empty queue for `capacity` [entries](crate::entry), which need not be a power of two: it is full with the next one
    /// ([O1](crate::contract#o1)).
    ///
    /// # Errors
    /// The capacity is 0, or larger than [`MAX_STORAGE`](super::MAX_STORAGE).
    pub fn of_entries(capacity: usize) -> Result<Self, CapacityError> {
        Self::with_slots(capacity, slots_for(capacity)?)
    }

    /// An empty queue for `capacity` entries in `slots` slots, a power of two. With more slots than `capacity`, the
    /// consumer releases them in larger steps, up to a quarter of the ring at once, which saves the producer cache
    /// misses. The queue then overruns at the earliest one entry past the capacity, and at the latest one past the
    /// slots ([O1](crate::contract#o1)).
    ///
    /// # Errors
    /// The capacity is 0 or larger than `slots`, or `slots` is not a power of two or larger than
    /// [`MAX_STORAGE`](super::MAX_STORAGE).
    pub fn with_slots(capacity: usize, slots: usize) -> Result<Self, CapacityError> {
        let slots = HeapSlots::new(slots, capacity)?;
        let storage = Storage { control: Control::new(), slots };
        Ok(Self { storage: Arc::new(storage), promised: capacity as u32 })
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

    fn sides<P: QueueChannel, C>(
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
