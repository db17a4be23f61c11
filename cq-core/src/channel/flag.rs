//! A channel of one word, for firmware: an interrupt handler pushes, and the main loop takes the event when it wakes.
//!
//! ```
//! use cq_core::channel::flag::Flag;
//! use cq_core::transport::{CqKey, Events, Signal};
//!
//! const KEY: CqKey = CqKey { index: 0, generation: 1 };
//! let mut flag = Flag::new();
//! let (raiser, mut events) = flag.split();
//! raiser.raise(KEY);
//! raiser.raise(KEY);
//! assert_eq!(events.take_event(), Ok(Some(KEY))); // the two are merged
//! assert_eq!(events.take_event(), Ok(None));
//! ```
//!
//! # How it works
//! The word counts raised events, and the receiver remembers how many it has taken. After a merge, the consumer sees
//! the writes before every raise, because each one is a Release of the word. The count is exact up to 2³² unread
//! events; a queue that is armed again after each event leaves at most two.
//!
//! On targets with compare-and-swap a [`Raiser`] can be cloned. On others there is one, which loads and stores.
//!
//! # Sleeping
//! The flag does not put the core to sleep: the program does, in a closure, and [`CompletionQueue::wait`] calls it
//! while there is no event. On Arm that is `WFE`, which also an interrupt before it ends; or `WFI`, after another look
//! at the flag with interrupts masked. An event that came between looks ends the sleep in both.
//!
//! ```
//! use cq_core::channel::flag::Flag;
//! use cq_core::cq::CompletionQueue;
//! use cq_core::queue::SoftCq;
//! use cq_core::transport::CqKey;
//! use cq_core::wc::{Wc, WcStatus};
//!
//! let (mut storage, mut flag) = (SoftCq::<16>::new(), Flag::new());
//! let (raiser, events) = flag.split();
//! let (mut producer, consumer) = storage.split_with(CqKey { index: 0, generation: 1 }, raiser);
//!
//! // On a core, `|_| asm::wfe()`. Here the interrupt comes while it sleeps.
//! let mut channel = events.sleeping(|_| _ = producer.push(&Wc::new(7, WcStatus::SUCCESS, 5)));
//! let (mut cq, mut buffer) = (CompletionQueue::new(consumer), [Wc::default(); 4]);
//! assert_eq!(cq.wait(&mut buffer, &mut channel, None)?[0].wr_id(), 7);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The [guide](crate::guide::firmware) has a whole program.
//!
//! [`CompletionQueue::wait`]: crate::cq::CompletionQueue::wait

use core::cell::Cell;
use core::convert::Infallible;
use core::fmt;
use core::marker::PhantomData;

use crate::sync::{self, AtomicU32, const_unless_loom};
use crate::transport::{Block, CqKey, EventError, Events, Signal, Woken};

/// The channel of one queue.
#[derive(Debug, Default)]
pub struct Flag {
    raised: AtomicU32,
    /// The key of the queue whose events these are, since the first of them.
    index: AtomicU32,
    generation: AtomicU32,
}

impl Flag {
    const_unless_loom! {
        /// A channel without an event.
        #[must_use]
        pub const fn new() -> Self {
            Self {
                raised: AtomicU32::new(0),
                index: AtomicU32::new(0),
                generation: AtomicU32::new(0),
            }
        }
    }

    /// The two sides. Unread events are discarded.
    pub fn split(&mut self) -> (Raiser<'_>, Receiver<'_>) {
        let (flag, taken) = (&*self, self.count());
        (Raiser { flag, one_thread: PhantomData }, Receiver { flag, taken })
    }

    /// How many events were raised, wrapping.
    #[inline]
    pub(super) fn count(&self) -> u32 {
        sync::see_events(&self.raised)
    }

    #[inline]
    pub(super) fn raise(&self, cq: CqKey) {
        sync::store_u32(&self.index, cq.index);
        sync::store_u32(&self.generation, cq.generation);
        sync::count_event(&self.raised);
    }

    /// Takes all events that came since there were `taken`, if they are of this queue.
    pub(super) fn forget(&self, taken: &mut u32, key: CqKey) {
        let mut all = *taken;
        if self.take(&mut all) == Some(key) {
            *taken = all;
        }
    }

    /// Takes all events that came since there were `taken`.
    #[inline]
    pub(super) fn take(&self, taken: &mut u32) -> Option<CqKey> {
        let before = core::mem::replace(taken, self.count());
        (*taken != before).then(|| CqKey {
            index: sync::load_u32(&self.index),
            generation: sync::load_u32(&self.generation),
        })
    }
}

/// The producer's side, for one thread or one interrupt handler. It is not `Sync`:
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>() {}
/// shared::<cq_core::channel::flag::Raiser<'_>>();
/// ```
#[derive(Debug)]
#[cfg_attr(target_has_atomic = "32", derive(Clone))]
pub struct Raiser<'a> {
    flag: &'a Flag,
    one_thread: PhantomData<Cell<()>>,
}

impl Signal for Raiser<'_> {
    #[inline]
    fn raise(&self, cq: CqKey) {
        self.flag.raise(cq);
    }
}

/// The consumer's side.
#[derive(Debug)]
pub struct Receiver<'a> {
    flag: &'a Flag,
    /// The count when an event was last taken.
    taken: u32,
}

impl<'a> Receiver<'a> {
    /// Whether there is an event to take.
    ///
    /// # Staleness
    /// An event may be raised at any time. One that is pending stays so until it is taken.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        self.flag.count() != self.taken
    }

    /// A channel that sleeps. `sleep` is called while there is no event, and puts the core to sleep until an interrupt:
    /// at once if one came since it was called. It may return early, and without an event.
    pub const fn sleeping<S: FnMut(&Self)>(self, sleep: S) -> Sleeper<'a, S> {
        Sleeper { events: self, sleep }
    }
}

impl Events for Receiver<'_> {
    #[inline]
    fn take_event(&mut self) -> Result<Option<CqKey>, EventError> {
        Ok(self.flag.take(&mut self.taken))
    }

    fn forget(&mut self, key: CqKey) {
        self.flag.forget(&mut self.taken, key);
    }
}

/// The consumer's side of a core that sleeps: [`Receiver::sleeping`]. It has no clock, so a wait has no deadline.
pub struct Sleeper<'a, S> {
    events: Receiver<'a>,
    sleep: S,
}

impl<S> fmt::Debug for Sleeper<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleeper").field("events", &self.events).finish_non_exhaustive()
    }
}

impl<S> Events for Sleeper<'_, S> {
    #[inline]
    fn take_event(&mut self) -> Result<Option<CqKey>, EventError> {
        self.events.take_event()
    }

    fn forget(&mut self, key: CqKey) {
        self.events.forget(key);
    }
}

impl<'a, S: FnMut(&Receiver<'a>)> Block for Sleeper<'a, S> {
    type Instant = Infallible;

    fn block(&mut self, _: Option<Infallible>) -> Result<Woken, EventError> {
        while !self.events.is_pending() {
            (self.sleep)(&self.events);
        }
        Ok(Woken::Event)
    }
}
