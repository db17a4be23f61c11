//! A channel of two words, for firmware: an interrupt handler pushes, and the main loop takes the event when it wakes.
//!
//! ```
//! use cq_core::channel::flag::Flag;
//! use cq_core::transport::{Events, Signal};
//!
//! let mut flag = Flag::new();
//! let (raiser, mut events) = flag.split();
//! raiser.raise();
//! raiser.raise();
//! assert_eq!(events.take_event(), Ok(Some(raiser.key()))); // the two are merged
//! assert_eq!(events.take_event(), Ok(None));
//! ```
//!
//! # How it works
//! A word counts raised events, and the receiver remembers how many it has taken. After a merge, the consumer sees
//! the writes before every raise, because each one is a Release of the word. The count is exact up to 2³² unread
//! events; a queue that is armed again after each event leaves at most two. The other word counts the sides, so that
//! [`reunite`](Flag::reunite) knows whether it is given all of them.
//!
//! The queue's key is the address of the flag, which is another one's only after the flag is gone.
//!
//! A raise is a read-modify-write. On targets without compare-and-swap it is a load and a store, since there is one raiser.
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
//! use cq_core::wc::{Wc, WcStatus};
//!
//! let (mut storage, mut flag) = (SoftCq::<16>::new(), Flag::new());
//! let (raiser, events) = flag.split();
//! let (mut producer, consumer) = storage.split_with(raiser);
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

use super::share::{Counted, Share};
use crate::queue::ReuniteError;
#[cfg(target_has_atomic = "32")]
use crate::queue::{SplitSignal, Token};
use crate::sync::{self, AtomicU32, const_unless_loom};
use crate::transport::{Block, CqKey, EventError, Events, Signal, Woken};

/// The channel of one queue.
#[derive(Debug, Default)]
pub struct Flag {
    raised: AtomicU32,
    /// The number of its sides.
    shares: AtomicU32,
}

impl Flag {
    const_unless_loom! {
        /// A channel without an event.
        #[must_use]
        pub const fn new() -> Self {
            Self { raised: AtomicU32::new(0), shares: AtomicU32::new(0) }
        }
    }

    /// The two sides. Unread events are discarded.
    pub fn split(&mut self) -> (Raiser<'_>, Receiver<'_>) {
        let taken = self.count();
        let (raiser, receiver) = Share::pair(self);
        (Raiser { flag: raiser, one_thread: PhantomData }, Receiver { flag: receiver, taken })
    }

    /// The flag of these sides, which can be split again. [`SoftCq::reunite`](crate::queue::SoftCq::reunite) gives back the
    /// raiser of a queue.
    ///
    /// # Errors
    /// They are the sides of two flags, or a queue has a copy of the raiser. Both are returned.
    pub fn reunite<'a>(
        raiser: Raiser<'a>,
        receiver: Receiver<'a>,
    ) -> Result<&'a mut Self, ReuniteError<Raiser<'a>, Receiver<'a>>> {
        if !raiser.flag.is_pair(&receiver.flag) {
            return Err(ReuniteError(raiser, receiver));
        }
        drop(receiver);
        Ok(raiser.flag.into_mut())
    }

    /// How many events were raised, wrapping.
    #[inline]
    pub(super) fn count(&self) -> u32 {
        sync::see_events(&self.raised)
    }

    pub(super) fn key(&self) -> CqKey {
        CqKey::at(self)
    }

    #[inline]
    pub(super) fn raise(&self) {
        sync::count_event(&self.raised);
    }

    /// Takes all events that came since there were `taken`, if they are of this queue.
    pub(super) fn forget(&self, taken: &mut u32, key: CqKey) {
        if key == self.key() {
            *taken = self.count();
        }
    }

    /// Takes all events that came since there were `taken`.
    #[inline]
    pub(super) fn take(&self, taken: &mut u32) -> Option<CqKey> {
        let before = core::mem::replace(taken, self.count());
        (*taken != before).then(|| self.key())
    }
}

impl Counted for Flag {
    fn shares(&self) -> &AtomicU32 {
        &self.shares
    }
}

/// The producer's side, for one queue, and one thread or one interrupt handler. Neither can it be cloned, nor is it
/// `Sync`:
///
/// ```compile_fail,E0599
/// let mut flag = cq_core::channel::flag::Flag::new();
/// let (raiser, _events) = flag.split();
/// let another = raiser.clone();
/// ```
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>() {}
/// shared::<cq_core::channel::flag::Raiser<'_>>();
/// ```
#[derive(Debug)]
pub struct Raiser<'a> {
    flag: Share<'a, Flag>,
    one_thread: PhantomData<Cell<()>>,
}

impl Signal for Raiser<'_> {
    fn key(&self) -> CqKey {
        self.flag.key()
    }

    #[inline]
    fn raise(&self) {
        self.flag.raise();
    }
}

#[cfg(target_has_atomic = "32")]
impl SplitSignal for Raiser<'_> {
    fn copy(&self, _: &Token) -> Self {
        Self { flag: self.flag.clone(), one_thread: PhantomData }
    }
}

/// The consumer's side.
#[derive(Debug)]
pub struct Receiver<'a> {
    flag: Share<'a, Flag>,
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

    fn serves(&self, key: CqKey) -> bool {
        key == self.flag.key()
    }
}

/// The consumer's side of a core that sleeps: [`Receiver::sleeping`]. It has no clock, so a wait has no deadline.
pub struct Sleeper<'a, S> {
    events: Receiver<'a>,
    sleep: S,
}

impl<'a, S> Sleeper<'a, S> {
    /// The consumer's side.
    pub fn into_receiver(self) -> Receiver<'a> {
        self.events
    }
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

    fn serves(&self, key: CqKey) -> bool {
        self.events.serves(key)
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
