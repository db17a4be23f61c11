//! Completion queues in memory that somebody else laid out and others may write to: shared memory of processes, a DMA
//! area. The one door through which such memory enters.
//!
//! ```
//! use core::ptr::NonNull;
//! use cq_core::queue::raw::{Layout, RawQueue};
//! use cq_core::queue::{NoChannel, Tail};
//! use cq_core::transport::PollCq;
//! use cq_core::wc::{Wc, WcStatus};
//!
//! // What mmap(2) would have given: zeros, shared with another process.
//! #[repr(align(4096))]
//! struct Page([u8; 4096]);
//! let mut page = Page([0; 4096]);
//! let base = NonNull::from(&mut page).cast();
//! let layout = Layout { slots: 16, tags: false, promised: 16 };
//!
//! // SAFETY: the memory stays for both sides, and nobody else has a side of this queue.
//! let open = || unsafe { RawQueue::new(base, 4096, layout) };
//! let mut producer = open()?.into_producer(Tail::at(0), NoChannel);
//! let mut consumer = open()?.into_consumer(0, NoChannel);
//!
//! producer.push(&Wc::new(7, WcStatus::SUCCESS, 5))?;
//! assert_eq!(consumer.poll(&mut [Wc::default(); 4]), Ok(1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What others can do
//! All words are atomic, so who scribbles over the memory can forge and lose completions, make the ring look full or
//! failed, and do nothing else. The sides keep what they rely on (storage, positions, what was promised) in
//! memory of their own.
//!
//! # Producers that take turns
//! A producer can stop at any push, and another one [go on](RawQueue::into_producer) at its [`Tail`]: under a lock, say,
//! in another process. Neither side ends the queue as it is dropped.
//!
//! # Producers that are killed
//! One may be killed inside a push, with the others' lock in its hands. The ring is its own log:
//! [`RawQueue::recover`] finds what was published since a tail that was kept, and goes on behind it.
#![allow(unsafe_code)]

use core::fmt;
#[cfg(not(loom))]
use core::ptr::NonNull;

use super::channel::{Channel, NoChannel};
use super::owner::Owner;
use super::ring::{Position, Ref, Ring};
use super::slot::Memory;
pub use super::slot::Slot;
pub use super::tags::Tag;
use super::tags::Tags;
use super::{CapacityError, Control, State, Tail};
use crate::sync;
use crate::transport::Notify;
use crate::wc::Wc;

/// The device's side of a raw queue.
pub type Producer<'a, C = NoChannel> = super::Producer<'a, C, Shared>;

/// The application's side of a raw queue.
pub type Consumer<'a, C = NoChannel> = super::Consumer<'a, C, Shared>;

/// Memory that others may write to at any time: each word is accessed by itself, atomically.
#[derive(Clone, Copy, Debug)]
pub enum Shared {}

#[cfg(not(loom))]
const _: () = {
    assert!(size_of::<Tag>() == 4 && align_of::<Tag>() == 4);
    // Slots follow the control, tags follow the slots.
    assert!(size_of::<Control>().is_multiple_of(align_of::<Slot>()));
    assert!(align_of::<Control>().is_multiple_of(align_of::<Slot>()));
};

impl Memory for Shared {
    type Beside = Tags;

    #[inline(always)]
    fn keep_tag(tags: Tags, slot: usize, tag: u32) {
        tags.store(slot, tag);
    }

    #[inline(always)]
    unsafe fn write(slot: &Slot, wc: &Wc) {
        slot.write_by(wc, |from, to| {
            for (from, to) in from.iter().zip(to) {
                sync::store(to, *from);
            }
        });
    }

    #[inline(always)]
    unsafe fn read(slot: &Slot, generation: u16, out: &mut Wc) -> bool {
        slot.read_by(generation, out, |from, to| {
            for (from, to) in from.iter().zip(to) {
                *to = sync::load(from);
            }
        })
    }
}

/// What a raw queue is, and so where its parts lie: the [`Control`], the slots behind it, the tags behind them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// How many slots: a power of two.
    pub slots: usize,
    /// Whether each slot has a [`Tag`]. Writing them costs the producer another cache line.
    pub tags: bool,
    /// How many completions the queue is to hold, at most as many as slots (O1). Slots beyond that let the consumer give
    /// them back in larger steps, which saves the producer cache misses.
    pub promised: u32,
}

impl Layout {
    /// How many bytes such a queue takes.
    ///
    /// # Errors
    /// There is no such queue.
    pub const fn bytes(&self) -> Result<usize, CapacityError> {
        match CapacityError::check_promise(self.slots, self.promised) {
            Ok(()) => {
                Ok(self.tags_at() + if self.tags { self.slots * size_of::<Tag>() } else { 0 })
            }
            Err(error) => Err(error),
        }
    }

    /// To how many bytes its memory is aligned.
    pub const ALIGN: usize = align_of::<Control>();

    /// Where the slots begin.
    pub const SLOTS_AT: usize = size_of::<Control>();

    const fn tags_at(&self) -> usize {
        Self::SLOTS_AT + self.slots * size_of::<Slot>()
    }
}

/// A queue in somebody else's memory, from which one side is made.
pub struct RawQueue<'a> {
    control: &'a Control,
    slots: &'a [Slot],
    tags: &'a [Tag],
    promised: u32,
}

impl<'a> RawQueue<'a> {
    /// The queue in the `len` bytes at `base`. New memory is all zeros; what is not begins with forged
    /// completions.
    ///
    /// # Errors
    /// There is no such queue, or the memory is too small for it, or not [aligned](Layout::ALIGN).
    ///
    /// # Safety
    /// The memory stays mapped for `'a`, readable and writable, and who else reaches it during `'a` does so by atomic
    /// accesses, to whole words as this crate's. At any time there is one producer of the queue and one consumer
    /// at the most, in all processes.
    #[cfg(not(loom))]
    #[inline]
    pub unsafe fn new(
        base: NonNull<u8>,
        len: usize,
        layout: Layout,
    ) -> Result<Self, CapacityError> {
        match layout.bytes() {
            Ok(needed) if needed > len => {
                return Err(CapacityError::TooSmall { needed, given: len });
            }
            Err(error) => return Err(error),
            Ok(_) => {}
        }
        let control = base.cast::<Control>();
        if !control.is_aligned() {
            return Err(CapacityError::Misaligned { to: Layout::ALIGN });
        }
        let tags = if layout.tags { layout.slots } else { 0 };
        // SAFETY: all lies within `len` bytes from `base` on, which is aligned (checked; the parts follow each other as the
        // assertions above have it), mapped, and shared by atomics only (the caller's word); and any bytes are a
        // value of these types, which are atomic integers.
        let (control, slots, tags) = unsafe {
            let slots = base.add(Layout::SLOTS_AT).cast().as_ptr();
            (
                control.as_ref(),
                core::slice::from_raw_parts(slots, layout.slots),
                core::slice::from_raw_parts(base.add(layout.tags_at()).cast().as_ptr(), tags),
            )
        };
        Ok(Self { control, slots, tags, promised: layout.promised })
    }

    /// The queue of these parts, with as many tags as slots, or none.
    ///
    /// # Errors
    /// There is no such queue.
    ///
    /// # Safety
    /// At any time there is one producer of the queue and one consumer at the most.
    #[cfg(any(loom, feature = "test-util"))]
    pub(crate) unsafe fn of(
        control: &'a Control,
        slots: &'a [Slot],
        tags: &'a [Tag],
        promised: u32,
    ) -> Result<Self, CapacityError> {
        CapacityError::check_promise(slots.len(), promised)?;
        if !tags.is_empty() && tags.len() != slots.len() {
            return Err(CapacityError::TagsDiffer { tags: tags.len(), slots: slots.len() });
        }
        Ok(Self { control, slots, tags, promised })
    }

    /// The producer, from where the last one stopped: `tail` is that of this queue's last producer, or of what
    /// [`recover`](Self::recover) found.
    #[inline]
    #[must_use]
    pub fn into_producer<C: Channel>(self, tail: Tail, channel: C) -> Producer<'a, C> {
        // SAFETY: it is the one producer (`new`), and slots of atomic words are sound in any case.
        unsafe { Producer::new(self.ring(), self.control.into(), channel, tail, Owner::followed()) }
    }

    /// The consumer, from `position` on; all slots before it are given back.
    #[inline]
    #[must_use]
    pub fn into_consumer<C>(self, position: Position, channel: C) -> Consumer<'a, C> {
        let (ring, shared) = (self.ring(), Ref::from(self.control).parts());
        // SAFETY: it is the one consumer (`new`), and slots of atomic words are sound in any case.
        unsafe { Consumer::new(ring, shared, channel, position, self.promised, Owner::followed()) }
    }

    /// Both sides of an empty queue, from `position` on.
    #[must_use]
    pub fn into_sides<P: Channel, C>(
        self,
        position: Position,
        raises: P,
        armed: C,
    ) -> (Producer<'a, P>, Consumer<'a, C>) {
        let other = Self { ..self };
        (self.into_producer(Tail::at(position), raises), other.into_consumer(position, armed))
    }

    /// Where the producer goes on if the last one stopped at any instant, even inside a push: a process that was killed.
    /// `tail` is a place where one stood before it stored as much as a whole ring. Hands each completion that was
    /// published since, with its tag, to `each`, oldest first; whatever the memory holds, those are no more than the
    /// slots.
    ///
    /// A consumer may sleep on: its event may have been disarmed and not been raised. So raise it, armed or not; a
    /// spurious wake-up does no harm (N5).
    #[must_use]
    pub fn recover(&self, tail: Tail, mut each: impl FnMut(&Wc, u32)) -> Tail {
        let ring = self.ring();
        let (mut position, mut wc) = (tail.position(), [Wc::default()]);
        for _ in self.slots {
            // SAFETY: slots of atomic words are sound to read at any time.
            if unsafe { ring.read_run(position, &mut wc) } == 0 {
                break;
            }
            each(&wc[0], ring.beside().load(ring.index(position)));
            position = position.wrapping_add(1);
        }
        // A batch is published from its second on, and then its first: what comes behind a gap is nobody's.
        for nth in 0..self.slots.len() {
            ring.place(position.wrapping_add(nth as Position)).withdraw();
        }
        Tail::at(position)
    }

    /// What both sides share besides the slots.
    #[must_use]
    pub const fn control(&self) -> &'a Control {
        self.control
    }

    fn ring(&self) -> Ring<'a, Shared> {
        // SAFETY: no tags are looked at but by way of the ring, which is there for `'a` at most.
        let tags = unsafe { Tags::kept(self.tags) };
        Ring::new(Ref::from(self.slots), tags)
    }
}

impl fmt::Debug for RawQueue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut queue = f.debug_struct("RawQueue");
        queue.field("promised", &self.promised).field("ring", &self.ring()).finish_non_exhaustive()
    }
}

/// What a raw queue's owner does to what both sides share.
impl Control {
    /// What became of the queue; for who is neither its producer nor its consumer.
    #[must_use]
    pub fn state(&self) -> State {
        self.alerts.health.state()
    }

    /// For a producer without a channel that has pushed: raises what the consumer armed for, if this is it, unless it
    /// `holds` that back for later, knowing what that is. `urgent` says whether it pushed what a consumer that armed for
    /// solicited completions waits for. Who holds an event back calls this again in the end, be it without a completion.
    pub fn notify_unless(
        &self,
        urgent: bool,
        holds: impl FnOnce(Notify) -> bool,
        raise: impl FnOnce(),
    ) {
        sync::push_fence();
        self.alerts.arm.fire_unless(urgent, holds, raise);
    }

    /// Takes over the arm and the state of the queue that this one replaces; while neither side is at work.
    pub fn adopt(&self, old: &Self) {
        self.alerts.arm.adopt(&old.alerts.arm);
        self.alerts.health.adopt(&old.alerts.health);
    }
}
