//! Queues of a size that is known at run time, whose sides own the storage.
#![allow(unsafe_code)]

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::ptr::NonNull;

use super::owner::Owner;
use super::ring::{Ref, Ring};
use super::{
    CapacityError, Channel, Consumer, Control, NoChannel, OnChannel, Producer, Slot, Tail,
};
use crate::transport::{CqKey, Signal};

/// A queue on the heap. Its two sides own it together, so that each can go to a thread of its own. Feature `alloc`.
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
pub struct HeapCq {
    storage: Arc<Storage>,
    promised: u32,
}

#[derive(Debug)]
struct Storage {
    control: Control,
    slots: Box<[Slot]>,
}

/// Slots that were never written.
pub(super) fn slots(count: usize) -> Box<[Slot]> {
    (0..count).map(|_| Slot::new()).collect()
}

/// As many slots as hold so many completions.
pub(super) fn storage_for(capacity: u32) -> Result<usize, CapacityError> {
    let slots = (capacity as usize).checked_next_power_of_two();
    let slots = slots.ok_or(CapacityError::TooLarge(capacity as usize))?;
    CapacityError::check_promise(slots, capacity)?;
    Ok(slots)
}

impl HeapCq {
    /// An empty queue that holds so many completions, any number.
    ///
    /// # Errors
    /// The capacity is 0, or larger than [`MAX_STORAGE`](super::MAX_STORAGE).
    pub fn new(capacity: u32) -> Result<Self, CapacityError> {
        Self::with_slots(capacity, storage_for(capacity)?)
    }

    /// An empty queue that holds so many completions in so many slots, a power of two. Slots beyond the capacity let the
    /// consumer give them back in larger steps, up to a quarter of the ring at once, which saves the producer cache
    /// misses. An overrun then comes at the earliest one past the capacity, and at the latest one past the slots (O1).
    ///
    /// # Errors
    /// There is no such queue.
    pub fn with_slots(capacity: u32, slots: usize) -> Result<Self, CapacityError> {
        CapacityError::check_promise(slots, capacity)?;
        let storage = Storage { control: Control::new(), slots: self::slots(slots) };
        Ok(Self { storage: Arc::new(storage), promised: capacity })
    }

    /// The two sides of a queue without a channel.
    #[must_use]
    pub fn split(self) -> (Producer<'static>, Consumer<'static>) {
        self.sides(NoChannel, NoChannel)
    }

    /// The two sides of a queue that raises events: `signal` is called with `key`.
    #[must_use]
    pub fn split_with<S: Signal>(
        self,
        key: CqKey,
        signal: S,
    ) -> (Producer<'static, OnChannel<S>>, Consumer<'static, OnChannel>) {
        self.sides(OnChannel { key, signal }, OnChannel::named(key))
    }

    fn sides<P: Channel, C>(
        self,
        raises: P,
        armed: C,
    ) -> (Producer<'static, P>, Consumer<'static, C>) {
        let Self { storage, promised } = self;
        // SAFETY: each side owns the storage (`Owner::of`), and no reference of a side's is given to anybody else. They are
        // the only sides, since this takes the queue by value; the slots are all unwritten, from position 0 on.
        unsafe {
            let ring = Ring::new(Ref::kept(NonNull::from(&storage.slots[..])), ());
            let control: Ref<'static, Control> = Ref::kept(NonNull::from(&storage.control));
            let owner = Owner::of(storage);
            let producer = Producer::new(ring, control, raises, Tail::at(0), owner.clone());
            (producer, Consumer::new(ring, control.parts(), armed, 0, promised, owner))
        }
    }
}
