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
//! the writes before every raise, because each one is a Release of the word. Up to 2³² − 1 unread events differ from none; a
//! queue that is armed again after each event leaves at most two. The other word counts the sides, so that
//! [`reunite`](super::Raiser::reunite) knows whether it is given all of them.
//!
//! The queue's key is the address of the flag, which is another one's only after the flag is gone.
//!
//! A raise is a read-modify-write. On targets without compare-and-swap it is a load and a store, since there is one raiser.
//!
//! # Sleeping
//! The flag does not put the core to sleep: the program does, in a closure, and [`CompletionQueue::wait`] calls it
//! while there is no event. On Arm that is `WFE`, which returns at once if an interrupt came before it; or `WFI`, after checking
//! the flag again with interrupts masked; a pending interrupt ends it.
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

use core::convert::Infallible;

use super::sides::{self, FlagChannel, Share};
use crate::sync::{self, AtomicU32, const_unless_loom};
use crate::transport::{Block, CqKey, EventError, Events, Woken};

/// The channel of one queue.
///
/// ```
/// use cq_core::channel::flag::Flag;
/// use cq_core::transport::{Events, Signal};
///
/// let mut flag = Flag::new();
/// let (raiser, events) = flag.split();
/// assert!(events.serves(raiser.key()) && !events.is_pending());
/// raiser.raise(); // in an interrupt handler
/// assert!(events.is_pending());
/// ```
///
/// See [the module](self) for another example.
#[derive(Debug, Default)]
pub struct Flag {
    pub(super) raised: AtomicU32,
    /// The number of its sides.
    pub(super) shares: AtomicU32,
}

/// The producer's side.
pub type Raiser<'a> = sides::Raiser<Share<'a, Flag>>;

/// The consumer's side.
pub type Receiver<'a> = sides::Receiver<Share<'a, Flag>>;

impl Flag {
    const_unless_loom! {
        /// A channel without an event.
        #[must_use]
        pub const fn new() -> Self {
            Self { raised: AtomicU32::new(0), shares: AtomicU32::new(0) }
        }
    }

    /// The two sides, which [`reunite`](super::Raiser::reunite). Unread events are discarded.
    pub fn split(&mut self) -> (Raiser<'_>, Receiver<'_>) {
        sides::split(self)
    }

    /// How many events were raised, wrapping.
    #[inline]
    pub(super) fn count(&self) -> u32 {
        sync::see_events(&self.raised)
    }

    /// The address, which no other flag has while this one lives.
    pub(super) fn key(&self) -> CqKey {
        let address = core::ptr::from_ref(self).addr() as u64;
        CqKey { index: address as u32, generation: (address >> 32) as u32 }
    }
}

impl FlagChannel for Flag {
    #[inline]
    fn flag(&self) -> &Flag {
        self
    }
}

impl<'a> sides::Receiver<Share<'a, Flag>> {
    /// A channel that sleeps. `sleep` is called while there is no event, and puts the core to sleep until an interrupt:
    /// at once if one came since it was called. It may return early, and without an event.
    pub const fn sleeping<S: FnMut(&Self)>(self, sleep: S) -> Sleeper<'a, S> {
        Sleeper { events: self, sleep, clock: NoClock }
    }

    /// A channel that sleeps until a deadline at most. `now` reads a clock, and `sleep` is called while there is no event and the
    /// deadline has not passed, if there is one. It puts the core to sleep until an interrupt, as that of
    /// [`sleeping`](Self::sleeping), of which one comes at the deadline or soon after: an alarm that `sleep` sets, or the tick
    /// of the clock.
    ///
    /// ```
    /// use core::cell::Cell;
    ///
    /// use cq_core::channel::flag::Flag;
    /// use cq_core::cq::CompletionQueue;
    /// use cq_core::queue::SoftCq;
    /// use cq_core::wc::{Wc, WcStatus};
    ///
    /// let (mut storage, mut flag) = (SoftCq::<16>::new(), Flag::new());
    /// let (raiser, events) = flag.split();
    /// let (mut producer, consumer) = storage.split_with(raiser);
    ///
    /// let ticks = Cell::new(0); // on a core, an atomic that a timer's interrupt counts up
    /// let mut channel = events.sleeping_until(|| ticks.get(), |_, _deadline| ticks.set(ticks.get() + 1));
    /// let (mut cq, mut buffer) = (CompletionQueue::new(consumer), [Wc::default(); 4]);
    /// assert!(cq.wait(&mut buffer, &mut channel, Some(100))?.is_empty());
    /// assert_eq!(ticks.get(), 100);
    /// producer.push(&Wc::new(7, WcStatus::SUCCESS, 5))?;
    /// assert_eq!(cq.wait(&mut buffer, &mut channel, Some(100))?.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// With a type of its own for the clock's instants, which is a [`Deadline`](crate::transport::Deadline), `wait_timeout` takes
    /// a `Duration`.
    pub const fn sleeping_until<I, N, S>(self, now: N, sleep: S) -> Sleeper<'a, S, N>
    where
        I: Copy + PartialOrd,
        N: FnMut() -> I,
        S: FnMut(&Self, Option<I>),
    {
        Sleeper { events: self, sleep, clock: now }
    }
}

/// The consumer's side of a core that sleeps: [`Receiver::sleeping`] or, with a clock, [`Receiver::sleeping_until`]. Without one, a
/// wait has no deadline.
pub struct Sleeper<'a, S, N = NoClock> {
    /// The channel that does not sleep.
    pub events: Receiver<'a>,
    sleep: S,
    clock: N,
}

/// What a [`Sleeper`] without a clock has instead.
#[derive(Clone, Copy, Debug)]
pub struct NoClock;

crate::debug_of!([S, N] Sleeper<'_, S, N> { events });

impl<S, N> Events for Sleeper<'_, S, N> {
    crate::of_target! { self.events;
        take_event(&mut self) -> Result<Option<CqKey>, EventError>;
        forget(&mut self, key: CqKey);
        serves(&self, key: CqKey) -> bool;
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

impl<'a, I, N, S> Block for Sleeper<'a, S, N>
where
    I: Copy + PartialOrd,
    N: FnMut() -> I,
    S: FnMut(&Receiver<'a>, Option<I>),
{
    type Instant = I;

    fn block(&mut self, deadline: Option<I>) -> Result<Woken, EventError> {
        while !self.events.is_pending() {
            if deadline.is_some_and(|deadline| (self.clock)() >= deadline) {
                return Ok(Woken::DeadlinePassed);
            }
            (self.sleep)(&self.events, deadline);
        }
        Ok(Woken::Event)
    }
}
