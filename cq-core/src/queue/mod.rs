//! The software completion queue, for devices in software: a loopback, a firmware's DMA driver, a packet loop, a test.
//!
//! ```
//! use core::cell::Cell;
//! use cq_core::queue::{PushError, SoftCq};
//! use cq_core::transport::{Arm, Armed, CqKey, Notify, PollCq, PollError, Signal};
//! use cq_core::wc::{Wc, WcStatus};
//!
//! struct Channel(Cell<u32>);
//! impl Signal for &Channel {
//!     fn key(&self) -> CqKey {
//!         CqKey { index: 0, generation: 1 }
//!     }
//!     fn raise(&self) {
//!         self.0.set(self.0.get() + 1);
//!     }
//! }
//!
//! let channel = Channel(Cell::new(0));
//! let mut storage = SoftCq::<2>::new();
//! let (mut producer, mut consumer) = storage.split_with(&channel);
//!
//! assert_eq!(consumer.arm(Notify::Next)?, Armed::Armed);
//! let wc = Wc::new(1, WcStatus::SUCCESS, 5);
//! producer.push(&wc)?; // raises the event
//! producer.push(&wc)?; // disarmed: no event
//! assert_eq!(channel.0.get(), 1);
//!
//! // A third one does not fit. A program that can wait pushes it again later.
//! assert_eq!(producer.push(&wc), Err(PushError::Full));
//! // A device can't: it overruns the queue. Stored completions are polled first, then every poll fails (O3).
//! assert!(producer.push_or_overrun(&wc).is_err());
//! let mut out = [Wc::default(); 4];
//! assert_eq!(consumer.poll(&mut out).unwrap().len(), 2);
//! assert_eq!(consumer.poll(&mut out).unwrap_err(), PollError::Overrun { dropped: Some(1) });
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Choosing a type
//!
//! | storage | type | producer and consumer |
//! |---|---|---|
//! | inline: a static, the stack | [`SoftCq`] | borrow it |
//! | on the heap, sized at run time (feature `alloc`) | `HeapCq` | own it |
//! | in memory shared with other processes or a device | [`raw::RawQueue`] | borrow it |
//!
//! A single producer uses no read-modify-write operation. Its channel may, when it raises an event, as
//! [`channel::flag`](crate::channel::flag) does where the target has one. For several producers, use [`mpsc`], or a raw queue
//! under a lock.
//!
//! Queues hold completions, or any other plain old data ([`entry`](crate::entry)); raw ones hold completions. A poll copies
//! entries to the caller's buffer; [`Consumer::poll_in_place`] lends them where they lie.
//!
//! # A full queue
//! [`Producer::push`] on a full queue returns [`PushError::Full`] and changes nothing: push again once the consumer has polled,
//! or let [`push_or_wait`](Producer::push_or_wait) do so.
//!
//! A device can't wait, and a completion that is silently lost is worse than a queue that fails.
//! [`Producer::push_or_overrun`] on a full queue drops the completion and overruns the queue. Stored completions are still
//! polled; then every poll fails, permanently ([O3](crate::contract#o3)).
//!
//! # A ring between threads
//! An entry need not come from a device. A program that passes buffers from one thread to another pushes their numbers, or a
//! type of its own. The queue does not interpret it, except that an urgent entry raises an event also for a consumer that armed
//! for solicited ones ([N3](crate::contract#n3)).
//!
//! A queue whose capacity is the number of buffers is never full, since a buffer is in one place at a time. The
//! guide to poll-mode loops in cq-verbs has an example.
//!
//! # Unsafe code
//! The crate denies it, except in these files:
//!
//! | file | what its unsafe code relies on |
//! |---|---|
//! | `queue/{ring, slot, producer, consumer, consumer/poll, in_place, raw/slot}`, `queue/mpsc/{producer, consumer}` | one producer owns a slot between the head's release and the publication, one consumer after it |
//! | `queue/{mod, heap, storage}`, `queue/mpsc/{mod, heap}` | the sides that they make are the only ones, and keep the storage alive |
//! | `queue/reference` | who makes one of a pointer keeps the value alive |
//! | `queue/reunite`, `channel/sides` | all sides of a queue or channel were given back |
//! | `queue/raw` | what the caller of its constructors guarantees; all words are atomic |
//! | `sync/plain` | plain copies of words that nobody else accesses; an instruction that accesses nothing |
//! | `shared_cq` | there is one guard at a time |
//!
//! That entries are plain bytes is `bytemuck`'s to check.
//!
//! # The end of a queue
//! A queue ends when it overruns, when [`Consumer::fail`] is called, when its last producer or its consumer is dropped. [`End`]
//! says which. A consumer can still poll what was stored. A [raw] queue outlives its sides. The end is recorded
//! in one place, so a side that is created later finds it too.
//!
//! Each end wakes the other side: a consumer that sleeps on the queue's channel by an event, a producer in
//! [`push_or_wait`](Producer::push_or_wait) by its next attempt. The side that finds the end sees everything that the other
//! one did before it. So a producer that was refused, because the consumer has failed the queue or is gone, can use again the
//! buffers that the consumer was reading.
//!
//! # The protocol
//! 1. The producer writes an entry into the next slot. It stores one word last, or a byte beside the slot, with Release; the
//!    [generation](crate::entry#generations) in it marks the slot as published. The consumer loads it with Acquire: there is no
//!    producer index.
//! 2. The consumer copies published entries, or reads them in place, then releases their slots: it stores its head with Release.
//!    The producer loads the head with Acquire only when its cached copy makes the ring look full.
//! 3. After an overrun the consumer returns what is stored, checks the slots once more, then reports the overrun.
//! 4. Before it sleeps, the consumer arms the queue and checks the slot again. The producer publishes, then checks the arm word:
//!    if it is armed, the producer disarms it, then raises the event.
//!
//! # Why no wake-up is lost
//! The producer publishes, executes a fence, and loads the arm word. The consumer stores the arm word, executes a
//! fence, and loads the next slot and the state of the queue. Both fences are SeqCst, so the side whose fence comes
//! second sees what the other one wrote before its fence: either the producer sees the arm and fires, or the consumer
//! sees the completion or the end and arming returns [`MayHaveMissed`](crate::transport::Armed::MayHaveMissed)
//! ([N2](crate::contract#n2), [N6](crate::contract#n6)). A queue without a channel does none of this.
//!
//! # Modules
//!
//! | module | owns |
//! |---|---|
//! | `producer`, `consumer/poll` | a push, a poll, step by step |
//! | `consumer` | arming, failing |
//! | `in_place` | a batch that is read where it lies |
//! | `reference` | a reference to a queue's memory, which a side may own |
//! | `ring` | which slot a position has, and which generation |
//! | `slot`, `storage` | how entries are written and read; the memory of a queue's own |
//! | `arm` | which event the consumer asked for |
//! | `end` | whether and how the queue has ended; what pushes say then |
//! | `channel` | whether the queue has a channel, as a type |
//! | `completion` | what can be pushed |
//! | `raw/slot`, `raw/tags` | a slot's words in memory that others share; a word beside it |
//! | `capacity` | which capacities are valid |
//! | `heap`, `owner` | queues on the heap; what keeps storage alive |
//! | `reunite` | the queue of two sides that are given back |
//! | [`raw`] | queues in memory that the caller provides |
//! | [`mpsc`] | several producers, and resizing |
//!
//! # Words
//!
//! | word | encoding | written by | in |
//! |---|---|---|---|
//! | generation of a slot | in spare bits of the entry, for completions their padding, or in a byte apart: 0 unwritten, otherwise the top bit set | the producer that owns the slot | `slot`, `ring` |
//! | head | the position up to which slots are released | the consumer | `ring` |
//! | arm word | Idle, Solicited, Next | the consumer arms, a producer disarms | `arm` |
//! | producers' end | running, the number of dropped completions, closed | producers | [`End`] |
//! | consumer's end | bits: failed, reported, abandoned, adopted | the consumer | [`End`] |
//! | reservation word | position, CLOSED, RESIZED | producers; the consumer as it resizes | `mpsc/reservation` |
//! | number of producers | a count, which saturates | producers as they are cloned and dropped | `mpsc/mod` |

mod arm;
mod capacity;
mod channel;
mod completion;
mod consumer;
mod end;
#[cfg(all(feature = "alloc", any(target_has_atomic = "ptr")))]
mod heap;
mod in_place;
#[cfg(all(any(target_has_atomic = "64"), not(cq_core_word32)))]
// For targets with 64-bit atomics. On others, share a producer in a critical section: see cq_core::guide::firmware.
pub mod mpsc;
mod owner;
mod producer;
pub mod raw;
mod reference;
mod reunite;
mod ring;
pub(crate) mod slot;
mod storage;
mod tail;

use core::ptr::NonNull;

use self::arm::ArmWord;
pub use self::capacity::CapacityError;
#[doc(hidden)]
pub use self::channel::Token;
pub use self::channel::{FailWakeup, NoChannel, OnChannel, QueueChannel, SplitSignal};
pub use self::completion::{Completion, Tagged};
pub use self::consumer::Consumer;
use self::end::Ends;
pub use self::end::{BatchError, DroppedError, End, PushError};
#[cfg(all(feature = "alloc", any(target_has_atomic = "ptr")))]
// For targets with compare-and-swap. On others, put a SoftCq into a static: see cq_core::guide::firmware.
pub use self::heap::HeapCq;
pub use self::in_place::InPlace;
use self::owner::Owner;
pub use self::producer::Producer;
pub(crate) use self::reference::Ref;
pub use self::reunite::ReuniteError;
use self::ring::{Head, LINES};
pub use self::ring::{MAX_STORAGE, Position};
use self::storage::Slots;
pub use self::tail::Tail;
use crate::entry::Entry;
use crate::sync::{Unused, const_unless_loom};
use crate::transport::Signal;
use crate::wc::Wc;

/// The control words that both sides share. Any bit pattern is valid; zeros are a new queue.
///
/// # The arm word
/// The arm word records whether the consumer wants an event, and for what.
///
/// | word | state | written by | from |
/// |---|---|---|---|
/// | 0 | Idle | a producer, when it fires | Solicited, Next |
/// | 1 | Solicited | the consumer, when it arms | Idle |
/// | 2 or any other value | Next | the consumer, when it arms | Idle, Solicited |
///
/// With one producer, both sides use loads and stores only, so this works on targets without compare-and-swap. If the
/// consumer arms while the producer fires, the producer's store of Idle may overwrite the arm. This loses no wake-up,
/// because the producer disarms **first and then** raises: an overwritten arm is always followed by an event, at worst
/// a spurious one ([N5](crate::contract#n5)).
///
/// A producer may also hold an event back so that it stands for several completions. The queue then stays armed, and
/// the event must be raised later, by count or by time.
///
/// Several producers disarm by a compare-and-swap with the value that was loaded. With stores, two producers would raise
/// two events for one arm. With a swap, a producer that loaded Next could erase a later Solicited, for which it raises
/// nothing. The consumer arms as with one producer: its store races with a disarm only when it replaces Solicited by
/// Next, and then no event is lost in either order.
///
/// The fences described in the [module](crate::queue#why-no-wake-up-is-lost) order arming against publishing.
///
/// # The end of the queue
/// [`End`] documents the two words that say whether it has ended.
///
/// # Example
/// ```
/// use cq_core::queue::raw::{RawQueue, Slot};
/// use cq_core::queue::{Control, End, NoChannel};
/// use cq_core::wc::{Wc, WcStatus};
///
/// let (control, slots) = (Control::new(), [const { Slot::new() }; 4]);
/// // SAFETY: the queue has these two sides, and no others.
/// let queue = unsafe { RawQueue::of(&control, &slots, &[], 4) }?;
/// let (mut producer, mut consumer) = queue.into_sides(0, NoChannel, NoChannel);
/// producer.push(&Wc::new(7, WcStatus::SUCCESS, 5))?;
/// assert_eq!(consumer.pop()?.map(|wc| wc.wr_id()), Some(7));
/// consumer.fail();
/// assert_eq!((control.released(), control.end()), (1, Some(End::Failed)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
#[repr(C, align(8))]
pub struct Control {
    head: Head,
    alerts: Alerts,
}

impl<'a> Ref<'a, Control> {
    /// The parts that a consumer uses.
    fn parts(self) -> (Ref<'a, Head>, Ref<'a, Alerts>) {
        (self.part(|control| &control.head), self.part(|control| &control.alerts))
    }
}

/// The words that change rarely: the arm word, and whether the queue has ended. On other cache lines than the head,
/// which the consumer stores often.
#[derive(Debug, Default)]
#[cfg_attr(target_pointer_width = "64", repr(C, align(128)))]
#[cfg_attr(not(target_pointer_width = "64"), repr(C))]
struct Alerts {
    arm: ArmWord,
    ends: Ends,
    unused: Unused<UNUSED>,
}

/// The bytes behind the three words, up to the next lines, or to the alignment of [`Control`].
const UNUSED: usize = if cfg!(target_pointer_width = "64") { LINES - 12 } else { LINES - 4 };

#[cfg(all(target_pointer_width = "64", not(loom)))]
const _: () = {
    assert!(size_of::<Control>() == 256 && align_of::<Control>() == 128);
    assert!(core::mem::offset_of!(Control, head) == 0);
    assert!(core::mem::offset_of!(Control, alerts) == 128);
    assert!(core::mem::offset_of!(Alerts, arm) == 0);
    assert!(core::mem::offset_of!(Alerts, ends) == 4);
};
/// No byte is padding.
#[cfg(not(loom))]
const _: () = assert!(size_of::<Control>() == LINES + 12 + UNUSED);

impl Alerts {
    const_unless_loom! {
        const fn new() -> Self {
            Self { arm: ArmWord::new(), ends: Ends::new(), unused: Unused::new() }
        }
    }
}

impl Control {
    const_unless_loom! {
        /// The control words of a new queue.
        #[must_use]
        pub const fn new() -> Self {
            Self { head: Head::at(0), alerts: Alerts::new() }
        }
    }
}

/// A queue with inline storage for `N` completions; `N` is a power of two.
///
/// An invalid capacity does not compile:
/// ```compile_fail,E0080
/// let queue = cq_core::queue::SoftCq::<3>::new();
/// ```
///
/// Neither does a second pair of sides while the first is in use:
/// ```compile_fail,E0499
/// let mut queue = cq_core::queue::SoftCq::<4>::new();
/// let (producer, _consumer) = queue.split();
/// let second = queue.split();
/// drop(producer);
/// ```
///
/// Of other [entries](crate::entry) than completions it is made by [`of_entries`](Self::of_entries).
#[derive(Debug)]
#[repr(C)]
pub struct SoftCq<const N: usize, E: Entry = Wc> {
    control: Control,
    slots: Slots<N, E>,
}

impl<const N: usize> SoftCq<N> {
    const_unless_loom! {
        /// An empty queue of completions.
        #[must_use]
        pub const fn new() -> Self {
            Self::of_entries()
        }
    }
}

impl<const N: usize, E: Entry> SoftCq<N, E> {
    const_unless_loom! {
        /// An empty queue.
        #[must_use]
        pub const fn of_entries() -> Self {
            Self { control: Control::new(), slots: Slots::new() }
        }
    }

    /// Returns the two sides of a queue without a channel. Resets the queue: entries and state left by earlier
    /// sides are discarded.
    pub fn split(&mut self) -> (Producer<'_, E>, Consumer<'_, E>) {
        self.sides(NoChannel, NoChannel)
    }

    /// Returns the two sides of a queue that raises its events by `signal`. The consumer has a copy of it, to
    /// [fail](Consumer::fail) the queue. Resets the queue, as [`split`](Self::split) does.
    pub fn split_with<S: Signal + SplitSignal>(
        &mut self,
        signal: S,
    ) -> (Producer<'_, E, S>, Consumer<'_, E, OnChannel<S>>) {
        let armed = OnChannel::beside(&signal);
        self.sides(signal, armed)
    }

    /// The capacity, in entries ([O1](crate::contract#o1)).
    #[must_use]
    pub const fn capacity(&self) -> usize {
        N
    }

    #[allow(unsafe_code)]
    fn sides<P: QueueChannel, C>(
        &mut self,
        raises: P,
        armed: C,
    ) -> (Producer<'_, E, P>, Consumer<'_, E, C>) {
        self.control = Control::new();
        self.slots.reset();
        let queue = NonNull::from(self);
        // SAFETY: `control` is the first field (`repr(C)`). The sides borrow the queue mutably, so no others exist. All
        // slots were reset to unwritten, and both sides start at position 0.
        unsafe {
            let (control, ring) = (Ref::kept(queue.cast::<Control>()), queue.as_ref().slots.ring());
            let producer = Producer::new(ring, control, raises, Tail::at(0), Owner::borrowed());
            let capacity = Slots::<N, E>::CAPACITY;
            let consumer =
                Consumer::new(ring, control.parts(), armed, 0, capacity, Owner::borrowed());
            (producer, consumer)
        }
    }
}

impl<const N: usize, E: Entry> Default for SoftCq<N, E> {
    fn default() -> Self {
        Self::of_entries()
    }
}
