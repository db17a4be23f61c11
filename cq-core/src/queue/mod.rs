//! The software completion queue: for every device that is software, such as the loopback, a firmware's DMA driver, a
//! packet loop, a test.
//!
//! ```
//! use core::cell::Cell;
//! use cq_core::queue::SoftCq;
//! use cq_core::transport::{Arm, Armed, CqKey, Notify, PollCq, PollError, Signal};
//! use cq_core::wc::{Wc, WcStatus};
//!
//! struct Channel(Cell<u32>);
//! impl Signal for &Channel {
//!     fn raise(&self, _: CqKey) {
//!         self.0.set(self.0.get() + 1);
//!     }
//! }
//!
//! let channel = Channel(Cell::new(0));
//! let mut storage = SoftCq::<2>::new();
//! let (mut producer, mut consumer) = storage.split_with(CqKey { index: 0, generation: 1 }, &channel);
//!
//! assert_eq!(consumer.arm(Notify::Next)?, Armed::Armed);
//! let wc = Wc::new(1, WcStatus::SUCCESS, 5);
//! producer.push(&wc)?; // raises the event
//! producer.push(&wc)?; // not armed any more
//! assert_eq!(channel.0.get(), 1);
//!
//! // One more than it can store: what was stored is handed out, then polling fails for ever (O3).
//! assert_eq!(producer.push(&wc).unwrap_err().total, 1);
//! let mut out = [Wc::default(); 4];
//! assert_eq!(consumer.poll(&mut out), Ok(2));
//! assert_eq!(consumer.poll(&mut out), Err(PollError::Overrun { dropped: Some(1) }));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Which one
//!
//! | storage | type | sides |
//! |---|---|---|
//! | in the value: a static, a stack | [`SoftCq`] | borrow it |
//! | on the heap, of a size that is known at run time (feature `alloc`) | `HeapCq` | own it |
//! | in memory that others share | [`raw::RawQueue`] | borrow it |
//!
//! One producer spends no read-modify-write. Several are those of [`mpsc`], or take turns at a raw queue under a lock.
//!
//! # A full queue
//! A device can't wait: [`Producer::push`] drops what finds no room, and the queue with it. What was stored is handed
//! out, then every poll fails for ever (O3). Software that can wait uses [`Producer::try_push`], which says that there is
//! no room, and nothing has happened.
//!
//! # The end
//! A queue ends by an overrun; by [`Consumer::fail`]; when its producers are gone, once everything is polled; and for its
//! producers when the consumer is gone. Whatever side comes later, by whatever way, finds it ended: one place knows
//! it.
//!
//! # Why no wake-up is lost
//! Producer: publish, fence, look at the arm word. Consumer: write the arm word, fence, look at the slot and at whether
//! the queue has ended. Whatever the interleaving, one of the two comes second and sees what the other did: the producer
//! fires, or the consumer is told [`MayHaveMissed`](crate::transport::Armed::MayHaveMissed) (N2, N6). A queue without a
//! channel does none of this.
//!
//! # Modules
//!
//! | module | owns |
//! |---|---|
//! | `producer`, `consumer` | a push and a poll, from beginning to end |
//! | `ring`, `slot` | where an entry lies, and how it is written and read |
//! | `arm` | what the consumer asked an event for |
//! | `health` | whether the queue still works |
//! | `tags` | a word beside each slot of a raw queue |
//! | `channel` | whether the queue has a channel, as a type |
//! | [`raw`] | memory that somebody else laid out |
//! | [`mpsc`] | several producers, and resizing |

mod arm;
mod capacity;
mod channel;
mod completion;
mod consumer;
mod health;
#[cfg(feature = "alloc")]
mod heap;
#[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
pub mod mpsc;
mod owner;
mod producer;
pub mod raw;
mod ring;
mod slot;
mod tags;

pub use self::capacity::CapacityError;
pub use self::channel::{Channel, NoChannel, OnChannel};
pub use self::completion::{Completion, Entry};
pub use self::consumer::Consumer;
pub use self::health::{Dropped, State};
#[cfg(feature = "alloc")]
pub use self::heap::HeapCq;
pub use self::producer::{Producer, Tail, TryPushError};
pub use self::ring::{MAX_STORAGE, Position};
pub use self::slot::Own;

use self::slot::Slot;

use self::arm::ArmWord;
use self::health::Health;
use self::owner::Owner;
use self::ring::{Head, Ref, Ring};
use crate::sync::{array_of, const_unless_loom};
use crate::transport::{CqKey, Signal};

/// What the two sides share besides the slots. Any bytes are valid, zeros are a new queue.
#[derive(Debug)]
#[repr(C, align(8))]
pub struct Control {
    head: Head,
    alerts: Alerts,
}

impl<'a> Ref<'a, Control> {
    /// What a consumer needs of it.
    fn parts(self) -> (Ref<'a, Head>, Ref<'a, Alerts>) {
        (self.part(|control| &control.head), self.part(|control| &control.alerts))
    }
}

/// What the sides tell each other rarely: the arm, and that the queue has ended. Away from the head, which changes all the
/// time.
#[derive(Debug)]
#[cfg_attr(target_pointer_width = "64", repr(C, align(128)))]
#[cfg_attr(not(target_pointer_width = "64"), repr(C))]
struct Alerts {
    arm: ArmWord,
    health: Health,
}

#[cfg(all(target_pointer_width = "64", not(loom)))]
const _: () = {
    assert!(size_of::<Control>() == 256 && align_of::<Control>() == 128);
    assert!(core::mem::offset_of!(Control, head) == 0);
    assert!(core::mem::offset_of!(Control, alerts) == 128);
    assert!(core::mem::offset_of!(Alerts, arm) == 0);
    assert!(core::mem::offset_of!(Alerts, health) == 4);
};

impl Alerts {
    const_unless_loom! {
        const fn new() -> Self {
            Self { arm: ArmWord::new(), health: Health::new() }
        }
    }

    fn reset(&mut self) {
        self.arm.reset();
        self.health.reset();
    }
}

impl Control {
    const_unless_loom! {
        /// Of a new queue.
        #[must_use]
        pub const fn new() -> Self {
            Self { head: Head::at(0), alerts: Alerts::new() }
        }
    }

    fn reset(&mut self) {
        // The consumer stores the head.
        self.alerts.reset();
    }
}

impl Default for Control {
    fn default() -> Self {
        Self::new()
    }
}

/// A queue that holds its storage, for `N` completions; `N` is a power of two.
///
/// A capacity that can't be does not compile:
/// ```compile_fail,E0080
/// let queue = cq_core::queue::SoftCq::<3>::new();
/// ```
#[derive(Debug)]
pub struct SoftCq<const N: usize> {
    control: Control,
    slots: [Slot; N],
}

impl<const N: usize> SoftCq<N> {
    const CAPACITY: u32 = {
        assert!(
            CapacityError::check_storage(N).is_ok(),
            "the capacity is a power of two, of at most MAX_STORAGE"
        );
        N as u32
    };

    const_unless_loom! {
        /// An empty queue.
        #[must_use]
        pub const fn new() -> Self {
            assert!(Self::CAPACITY as usize == N);
            Self { control: Control::new(), slots: array_of![Slot::new(); N] }
        }
    }

    /// The two sides of a queue without a channel. Starts afresh: what an earlier pair of sides left is gone.
    pub fn split(&mut self) -> (Producer<'_>, Consumer<'_>) {
        self.sides(NoChannel, NoChannel)
    }

    /// The two sides of a queue that raises events: `signal` is called with `key`. Starts afresh: what an earlier pair of
    /// sides left is gone.
    pub fn split_with<S: Signal>(
        &mut self,
        key: CqKey,
        signal: S,
    ) -> (Producer<'_, OnChannel<S>>, Consumer<'_, OnChannel>) {
        self.sides(OnChannel { key, signal }, OnChannel::named(key))
    }

    /// How many completions it holds (O1).
    #[must_use]
    pub const fn capacity(&self) -> u32 {
        Self::CAPACITY
    }

    #[allow(unsafe_code)]
    fn sides<P: Channel, C>(&mut self, raises: P, armed: C) -> (Producer<'_, P>, Consumer<'_, C>) {
        self.control.reset();
        self.slots.iter_mut().for_each(Slot::reset);
        let ring = Ring::new(Ref::from(&self.slots[..]), ());
        let control = Ref::from(&self.control);
        // SAFETY: the sides borrow the queue mutably, so there are no others; the slots are all unwritten, from
        // position 0 on.
        unsafe {
            let producer = Producer::new(ring, control, raises, Tail::at(0), Owner::borrowed());
            let consumer =
                Consumer::new(ring, control.parts(), armed, 0, Self::CAPACITY, Owner::borrowed());
            (producer, consumer)
        }
    }
}

impl<const N: usize> Default for SoftCq<N> {
    fn default() -> Self {
        Self::new()
    }
}
