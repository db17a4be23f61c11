//! Whether a queue has an event channel, as a type parameter of its sides.

use crate::transport::{CqKey, Signal};

/// What a side has of its queue's channel: [`NoChannel`]; a producer a [`Signal`], a consumer an [`OnChannel`].
pub trait QueueChannel: Sized {
    /// Whether there are events. A queue without a channel has no cost for them.
    const RAISES: bool;

    /// Raises an event, if there is a signal.
    #[doc(hidden)]
    fn notify(&self);

    /// Takes a consumer's signal out.
    #[doc(hidden)]
    fn take_signal(&mut self) -> Option<Self> {
        None
    }
}

/// The wake-up that is due to the consumer that waits for a queue which was [failed](super::Consumer::mark_failed).
#[must_use = "a thread that waits for the queue sleeps on"]
#[derive(Debug)]
pub struct FailWakeup<C>(pub(super) Option<C>);

impl<C: QueueChannel> FailWakeup<C> {
    /// Raises it.
    pub fn wake(self) {
        self.0.iter().for_each(C::notify);
    }
}

/// A signal that all sides of one queue can have: every [`Signal`] that can be cloned, and the raisers of
/// [`channel`](crate::channel), which only the engine can copy. The consumer raises an event with its copy when it
/// [fails](super::Consumer::fail) the queue. For a signal that can't be
/// cloned, pass a key and a closure that holds it in an `Arc`, for one queue.
///
/// On targets without compare-and-swap it is every signal, and none is copied: no other thread can wait for the queue.
pub trait SplitSignal: QueueChannel {
    /// Another one, for the same queue.
    #[cfg(target_has_atomic = "32")]
    #[doc(hidden)]
    #[must_use]
    fn copy(&self, token: &Token) -> Self;
}

/// What the engine copies a signal with. Nobody else makes one; a signal that wraps another one is given it for that.
#[derive(Debug)]
pub struct Token(());

#[cfg(target_has_atomic = "32")]
impl Token {
    pub(super) const THE: Self = Self(());
}

#[cfg(target_has_atomic = "32")]
impl<S: QueueChannel + Clone> SplitSignal for S {
    fn copy(&self, _: &Token) -> Self {
        self.clone()
    }
}

#[cfg(not(target_has_atomic = "32"))]
impl<S: QueueChannel> SplitSignal for S {}

/// A queue without a channel. It cannot be armed.
///
/// ```
/// use cq_core::queue::{Consumer, NoChannel, Producer, SoftCq};
/// use cq_core::wc::{Wc, WcStatus};
///
/// let mut storage = SoftCq::<4>::new();
/// type Sides<'a> = (Producer<'a, Wc, NoChannel>, Consumer<'a, Wc, NoChannel>);
/// let (mut producer, mut consumer): Sides<'_> = storage.split();
/// producer.push(&Wc::new(7, WcStatus::SUCCESS, 5))?;
/// assert_eq!(consumer.pop()?.map(|wc| wc.wr_id()), Some(7));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct NoChannel;

impl QueueChannel for NoChannel {
    const RAISES: bool = false;

    fn notify(&self) {}
}

impl<S: Signal> QueueChannel for S {
    const RAISES: bool = true;

    #[inline]
    fn notify(&self) {
        self.raise();
    }
}

/// What the consumer of a queue with a channel has of it: the key of the queue's events, and a [`Signal`] or none.
///
/// ```
/// use cq_core::channel::flag::Flag;
/// use cq_core::queue::raw::{RawQueue, Slot};
/// use cq_core::queue::{Control, OnChannel};
/// use cq_core::transport::{Arm, Armed, Events, Notify, Signal};
/// use cq_core::wc::{Wc, WcStatus};
///
/// let (mut flag, control, slots) = (Flag::new(), Control::new(), [const { Slot::new() }; 4]);
/// let (raiser, mut events) = flag.split();
/// let key = raiser.key();
/// // SAFETY: the queue has these two sides, and no others.
/// let queue = unsafe { RawQueue::of(&control, &slots, &[], 4) }?;
/// let (mut producer, mut consumer) = queue.into_sides(0, raiser, OnChannel::named(key));
/// assert_eq!(consumer.arm(Notify::Next)?, Armed::Armed);
/// producer.push(&Wc::new(7, WcStatus::SUCCESS, 5))?;
/// assert_eq!(events.take_event()?, Some(key));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct OnChannel<S = NoChannel> {
    pub(super) key: CqKey,
    signal: Option<S>,
}

impl OnChannel {
    /// For the consumer of a [raw](super::raw) queue that has no signal.
    #[must_use]
    pub const fn named(key: CqKey) -> Self {
        Self { key, signal: None }
    }
}

impl<S: Signal> OnChannel<S> {
    /// For the consumer of a [raw](super::raw) queue that raises an event when it [fails](super::Consumer::fail) the queue.
    #[must_use]
    pub fn new(signal: S) -> Self {
        Self { key: signal.key(), signal: Some(signal) }
    }

    /// For the consumer of the queue that this is the producer's signal of.
    pub(super) fn beside(signal: &S) -> Self
    where
        S: SplitSignal,
    {
        #[cfg(target_has_atomic = "32")]
        let copy = Some(signal.copy(&Token::THE));
        #[cfg(not(target_has_atomic = "32"))]
        let copy = None;
        Self { key: signal.key(), signal: copy }
    }
}

impl<S: QueueChannel> QueueChannel for OnChannel<S> {
    const RAISES: bool = S::RAISES;

    fn notify(&self) {
        self.signal.iter().for_each(S::notify);
    }

    fn take_signal(&mut self) -> Option<Self> {
        Some(Self { key: self.key, signal: self.signal.take() })
    }
}
