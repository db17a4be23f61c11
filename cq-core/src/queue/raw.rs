//! Completion queues in memory that the caller provides and that others may write to: memory shared between processes,
//! a DMA area. Only this module builds queues on such memory.
//!
//! ```
//! use core::ptr::NonNull;
//! use cq_core::queue::raw::{Layout, RawQueue};
//! use cq_core::queue::{NoChannel, Tail};
//! use cq_core::wc::{Wc, WcStatus};
//!
//! // Stands for zeroed memory that mmap(2) shares with another process.
//! #[repr(align(4096))]
//! struct Page([u8; 4096]);
//! let mut page = Page([0; 4096]);
//! let base = NonNull::from(&mut page).cast();
//! let layout = Layout { slots: 16, tags: false, promised: 16 };
//!
//! // SAFETY: `page` outlives both sides, and they are the only ones of this queue.
//! let open = || unsafe { RawQueue::new(base, 4096, layout) };
//! let mut producer = open()?.into_producer(Tail::at(0), NoChannel);
//! let mut consumer = open()?.into_consumer(0, NoChannel);
//!
//! producer.push(&Wc::new(7, WcStatus::SUCCESS, 5))?;
//! assert_eq!(consumer.poll(&mut [Wc::default(); 4]).unwrap().len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Corrupted memory
//! All words are atomic. Another process that corrupts the memory can forge and lose completions and can make the ring
//! look full or failed, but can do nothing else: each side keeps what it relies on (the number of slots, positions, the
//! guaranteed capacity) in private memory.
//!
//! # Producers under a lock
//! A producer can stop after any push, and another one can [resume](RawQueue::into_producer) at its [`Tail`], for
//! example under a lock in another process. Dropping a side does not end the queue.
//!
//! # Producers that are killed
//! A producer may be killed inside a push, while it holds the producers' lock. The ring is its own log:
//! [`RawQueue::recover`] finds what was published since a saved tail, and returns the tail to resume at.
#![allow(unsafe_code)]

mod layout;
mod slot;
mod tags;

use core::fmt;
#[cfg(not(loom))]
use core::ptr::NonNull;

pub use self::layout::Layout;
#[doc(hidden)]
pub use self::slot::Shared;
pub use self::slot::Slot;
pub use self::tags::Tag;
use self::tags::Tags;
use super::channel::{NoChannel, QueueChannel};
use super::completion::Completion;
use super::owner::Owner;
use super::reference::Ref;
use super::ring::{Position, Ring};
use super::slot::Access;
use super::{CapacityError, Control, End, Tail};
use crate::sync;
use crate::transport::Notify;
use crate::wc::Wc;

/// The producer of a raw queue.
pub type RawProducer<'a, C = NoChannel> = super::Producer<'a, Wc, C, Shared>;

/// The consumer of a raw queue.
pub type RawConsumer<'a, C = NoChannel> = super::Consumer<'a, Wc, C, Shared>;

#[cfg(not(loom))]
const _: () = {
    assert!(size_of::<Tag>() == 4 && align_of::<Tag>() == 4);
    // The slots follow the control words, and the tags the slots, without padding.
    assert!(size_of::<Control>().is_multiple_of(align_of::<Slot>()));
    assert!(align_of::<Control>().is_multiple_of(align_of::<Slot>()));
};

/// A queue in memory that the caller provides, to be turned into one of its sides.
///
/// ```
/// use cq_core::queue::raw::{RawQueue, Slot};
/// use cq_core::queue::{Control, NoChannel, Tail};
/// use cq_core::wc::{Wc, WcStatus};
///
/// let (control, slots) = (Control::new(), [const { Slot::new() }; 4]);
/// // SAFETY: the queue has one producer, and no consumer.
/// let mut queue = unsafe { RawQueue::of(&control, &slots, &[], 4) }?;
/// queue.producer(Tail::at(0), NoChannel).push(&Wc::new(7, WcStatus::SUCCESS, 5))?;
///
/// // The producer was killed before it saved its tail.
/// let mut found = 0;
/// let tail = queue.recover(Tail::at(0), |wc, _tag| found = wc.wr_id());
/// assert_eq!((found, tail.position()), (7, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// See [the module](self) for another example.
pub struct RawQueue<'a> {
    control: &'a Control,
    slots: &'a [Slot],
    tags: &'a [Tag],
    promised: u32,
    /// The number of unpolled completions at which it is full.
    limit: u32,
}

impl<'a> RawQueue<'a> {
    /// The queue in the `len` bytes at `base`. A new queue needs zeroed memory; other contents may be polled as forged
    /// completions.
    ///
    /// # Errors
    /// The layout is invalid, or the memory is too small for it or not [aligned](Layout::ALIGN).
    ///
    /// # Safety
    /// The memory stays mapped, readable and writable for `'a`. All other accesses to it during `'a` are atomic, and to
    /// the same whole words as this crate's. At any time, the queue has at most one producer and at most one consumer,
    /// in all processes together.
    #[cfg(not(loom))]
    #[inline]
    pub unsafe fn new(
        base: NonNull<u8>,
        len: usize,
        layout: Layout,
    ) -> Result<Self, CapacityError> {
        let needed = layout.bytes()?;
        if needed > len {
            return Err(CapacityError::TooSmall { needed, given: len });
        }
        let control = base.cast::<Control>();
        if !control.is_aligned() {
            return Err(CapacityError::Misaligned { to: Layout::ALIGN });
        }
        let tags = if layout.tags { layout.slots } else { 0 };
        // SAFETY: all parts lie within `len` bytes from `base` on (checked). `base` is aligned (checked), and so are
        // the parts that follow (the assertions above). The memory is mapped and accessed by atomics only (guaranteed
        // by the caller). The types consist of atomic integers, for which any bytes are valid.
        let (control, slots, tags) = unsafe {
            let slots = base.add(Layout::SLOTS_AT).cast().as_ptr();
            (
                control.as_ref(),
                core::slice::from_raw_parts(slots, layout.slots),
                core::slice::from_raw_parts(base.add(layout.tags_at()).cast().as_ptr(), tags),
            )
        };
        let Layout { promised, slots: limit, .. } = layout;
        Ok(Self { control, slots, tags, promised, limit: limit as u32 })
    }

    /// The queue of these parts, with as many tags as slots, or none.
    ///
    /// # Errors
    /// The number of slots or tags, or the guaranteed capacity, is invalid.
    ///
    /// # Safety
    /// At any time, the queue has at most one producer and at most one consumer.
    pub unsafe fn of(
        control: &'a Control,
        slots: &'a [Slot],
        tags: &'a [Tag],
        promised: u32,
    ) -> Result<Self, CapacityError> {
        CapacityError::check_promise(slots.len(), promised as usize)?;
        if !tags.is_empty() && tags.len() != slots.len() {
            return Err(CapacityError::TagsDiffer { tags: tags.len(), slots: slots.len() });
        }
        Ok(Self { control, slots, tags, promised, limit: slots.len() as u32 })
    }

    /// The same queue, full with exactly the guaranteed capacity of unpolled completions: one more overruns it, also
    /// where there are more slots. The consumer releases the slots of each poll at once. For both sides: a producer
    /// that is made without this uses all slots.
    ///
    /// ```
    /// use core::ptr::NonNull;
    /// use cq_core::queue::raw::{Layout, RawQueue};
    /// use cq_core::queue::{NoChannel, Tail};
    /// use cq_core::wc::{Wc, WcStatus};
    ///
    /// #[repr(align(4096))]
    /// struct Page([u8; 4096]);
    /// let mut page = Page([0; 4096]);
    /// let layout = Layout { slots: 16, tags: false, promised: 3 };
    /// // SAFETY: `page` outlives the producer, which is the only one of this queue.
    /// let queue = unsafe { RawQueue::new(NonNull::from(&mut page).cast(), 4096, layout) }?;
    /// let mut producer = queue.exact().into_producer(Tail::at(0), NoChannel);
    /// let wc = Wc::new(7, WcStatus::SUCCESS, 5);
    /// assert!([(); 3].map(|()| producer.push(&wc).is_ok()).iter().all(|stored| *stored));
    /// assert!(producer.push(&wc).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn exact(self) -> Self {
        Self { limit: self.promised, ..self }
    }

    /// Returns the producer, resuming at `tail`: that of this queue's last producer, or the one that
    /// [`recover`](Self::recover) returned.
    #[inline]
    #[must_use]
    pub fn into_producer<C: QueueChannel>(self, tail: Tail, channel: C) -> RawProducer<'a, C> {
        // SAFETY: it is the only producer (guaranteed to `new`). Writing to `Shared` slots is sound at any tail,
        // because all their words are atomic.
        let producer = unsafe {
            RawProducer::new(self.ring(), self.control.into(), channel, tail, Owner::followed())
        };
        producer.limited(self.limit)
    }

    /// As [`into_producer`](Self::into_producer), of a queue that outlives the producer: for producers under a lock,
    /// each of which validates the queue once.
    #[inline]
    #[must_use]
    pub fn producer<C: QueueChannel>(&mut self, tail: Tail, channel: C) -> RawProducer<'_, C> {
        // There is no other producer while this is borrowed.
        RawQueue { ..*self }.into_producer(tail, channel)
    }

    /// Stores a completion at `tail` if that knows of a free slot, and returns the tail behind it; otherwise a
    /// [`producer`](Self::producer) has to. For a queue without a channel: it raises no event.
    #[inline(always)]
    #[must_use]
    pub fn store_at(&mut self, tail: Tail, completion: &impl Completion<Wc>) -> Option<Tail> {
        let ring = self.ring();
        let tail = tail.within(ring.storage());
        if tail.free() == 0 || self.control.alerts.ends.refuses() {
            return None;
        }
        // SAFETY: there is no other producer (guaranteed to `new`, and this is borrowed). Writing to `Shared` slots is
        // sound at any tail, because all their words are atomic.
        unsafe { ring.write(tail.position(), completion) };
        Some(tail.after(1))
    }

    /// Returns the consumer, starting at `position`. All slots before it are released. For a consumer that raises an
    /// event when it [fails](super::Consumer::fail) the queue, `channel` is [`OnChannel::new`](super::OnChannel::new) a signal.
    #[inline]
    #[must_use]
    pub fn into_consumer<C>(self, position: Position, channel: C) -> RawConsumer<'a, C> {
        let (ring, shared) = (self.ring(), Ref::from(self.control).parts());
        // SAFETY: it is the only consumer (guaranteed to `new`). Reading `Shared` slots is sound at any position,
        // because all their words are atomic.
        let consumer = unsafe {
            RawConsumer::new(ring, shared, channel, position, self.promised, Owner::followed())
        };
        consumer.limited(self.limit)
    }

    /// Returns both sides of an empty queue, starting at `position`.
    #[must_use]
    pub fn into_sides<P: QueueChannel, C>(
        self,
        position: Position,
        raises: P,
        armed: C,
    ) -> (RawProducer<'a, P>, RawConsumer<'a, C>) {
        let other = Self { ..self };
        (self.into_producer(Tail::at(position), raises), other.into_consumer(position, armed))
    }

    /// Returns the tail to resume at when the last producer's process was killed, at any instant, even inside a push.
    /// `tail` is an earlier tail of the queue, since which less than a whole ring was stored. Calls `each` with every
    /// completion published since and its tag, oldest first: at most one per slot, even if the memory was corrupted.
    ///
    /// The killed producer may have disarmed the queue without raising the event, so the consumer may still sleep.
    /// Raise the event afterwards, armed or not; a spurious wake-up is harmless ([N5](crate::contract#n5)).
    #[must_use]
    pub fn recover(&self, tail: Tail, each: impl FnMut(&Wc, u32)) -> Tail {
        let (ring, position) = (self.ring(), self.look_through(tail.position(), each));
        // A batch's first entry is published last: entries after a gap are of a batch that was cut short.
        for nth in 0..self.slots.len() {
            let place = ring.place(position.wrapping_add(nth as Position));
            place.slot.withdraw(place.generation);
        }
        Tail::at(position)
    }

    /// Calls `each` with every completion published from `position` on and its tag, oldest first: at most one per slot,
    /// even if the memory was corrupted. Changes nothing, and returns the position after the last one. For a caller
    /// that keeps producers out, and knows up to which position was polled: other slots may be overwritten meanwhile.
    pub fn look_through(&self, mut position: Position, mut each: impl FnMut(&Wc, u32)) -> Position {
        let (ring, mut wc) = (self.ring(), [Wc::default()]);
        for _ in self.slots {
            // SAFETY: `Shared` slots are sound to read at any time, because all their words are atomic.
            if unsafe { Shared::read_run(&ring, position, &mut wc) } == 0 {
                break;
            }
            each(&wc[0], ring.beside().load(ring.index(position)));
            position = position.wrapping_add(1);
        }
        position
    }

    /// The slot of the entry at `position`, for prefetching it.
    #[inline]
    #[must_use]
    pub fn slot(&self, position: Position) -> &'a Slot {
        &self.slots[position as usize & (self.slots.len() - 1)]
    }

    /// The control words that both sides share.
    #[must_use]
    pub const fn control(&self) -> &'a Control {
        self.control
    }

    fn ring(&self) -> Ring<'a, Wc, Shared> {
        // SAFETY: the tags live for `'a`, and are accessed only through the ring, which lives no longer.
        let tags = unsafe { Tags::kept(self.tags) };
        // SAFETY: `new`, or `of`, has checked that the number of slots is a power of two, and not too large.
        unsafe { Ring::new(Ref::from(self.slots), tags) }
    }
}

impl fmt::Debug for RawQueue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut queue = f.debug_struct("RawQueue");
        queue.field("promised", &self.promised).field("ring", &self.ring()).finish_non_exhaustive()
    }
}

/// Operations on the control words for the owner of a raw queue.
impl Control {
    /// How the queue has ended, if it has, for code that is neither its producer nor its consumer.
    #[must_use]
    pub fn end(&self) -> Option<End> {
        self.alerts.ends.end()
    }

    /// The position up to which the consumer has released slots: less than what was polled by at most the
    /// [lag](Layout::lag).
    ///
    /// # Staleness
    /// The consumer may have released more by now. Others may have corrupted the word.
    #[must_use]
    pub fn released(&self) -> Position {
        self.head.acquire()
    }

    /// What the consumer has armed for; `None` if it has not, or if a producer has disarmed it since.
    ///
    /// # Staleness
    /// Either side may change it at once.
    #[must_use]
    pub fn armed(&self) -> Option<Notify> {
        self.alerts.arm.armed()
    }

    /// Raises the event that the consumer armed for; to be called after a push by a producer without a channel.
    /// `urgent` says whether a completion was pushed that a consumer armed for solicited completions waits for. `holds`
    /// is called with what the consumer armed for, and returns `true` to hold the event back: the queue then stays
    /// armed, and the caller must call this again later, even without a new completion.
    pub fn notify_unless(
        &self,
        urgent: bool,
        holds: impl FnOnce(Notify) -> bool,
        raise: impl FnOnce(),
    ) {
        sync::push_fence();
        self.alerts.arm.fire_unless(|| urgent, holds, raise);
    }

    /// Takes over the arm and the end of the queue that this one replaces. Neither side may be in use meanwhile.
    pub fn adopt(&self, old: &Self) {
        self.alerts.arm.adopt(&old.alerts.arm);
        self.alerts.ends.adopt(&old.alerts.ends);
    }
}
