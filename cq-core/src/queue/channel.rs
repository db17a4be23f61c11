//! Whether a queue has an event channel, as a type parameter of its sides.

use crate::transport::{CqKey, Signal};

/// Whether a queue raises events.
pub trait Channel: sealed::Sealed {
    /// Whether it does. A queue without a channel has no cost for events.
    const RAISES: bool;

    /// Raises an event.
    fn raise(&self);
}

/// What the consumer has of its queue's channel: nothing, the key of the events, or the key and a signal.
pub trait ConsumerChannel: sealed::Sealed {
    /// Takes the signal out, if there is one.
    #[doc(hidden)]
    fn take(&mut self) -> Self;

    /// Raises an event, if there is a signal.
    #[doc(hidden)]
    fn wake(&self);
}

/// The wake-up that is due to the consumer that waits for a queue which was [failed](super::Consumer::mark_failed).
#[must_use = "a thread that waits for the queue sleeps on"]
#[derive(Debug)]
pub struct FailWakeup<C>(pub(super) C);

impl<C: ConsumerChannel> FailWakeup<C> {
    /// Raises it.
    pub fn wake(self) {
        self.0.wake();
    }
}

/// A signal that both sides of a queue can have, for `split_with`: every [`Signal`] that can be cloned. The consumer
/// raises an event with its clone when it [fails](super::Consumer::fail) the queue. For a signal that can't be cloned,
/// pass a closure that borrows it, or that holds it in an `Arc`.
///
/// On targets without compare-and-swap, where [`flag::Raiser`](crate::channel::flag::Raiser) can't be cloned, it is every
/// signal, and the consumer gets none: no other thread can wait for the queue.
pub trait SplitSignal: Signal + Sized {
    /// That of the consumer.
    #[doc(hidden)]
    fn of_consumer(&self) -> Option<Self>;
}

#[cfg(target_has_atomic = "32")]
impl<S: Signal + Clone> SplitSignal for S {
    fn of_consumer(&self) -> Option<Self> {
        Some(self.clone())
    }
}

#[cfg(not(target_has_atomic = "32"))]
impl<S: Signal> SplitSignal for S {
    fn of_consumer(&self) -> Option<Self> {
        None
    }
}

/// A queue without a channel. It cannot be armed.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoChannel;

impl Channel for NoChannel {
    const RAISES: bool = false;

    fn raise(&self) {}
}

impl ConsumerChannel for NoChannel {
    fn take(&mut self) -> Self {
        Self
    }

    fn wake(&self) {}
}

/// A queue with a channel. The producer has a [`Signal`] that raises events. The consumer has their key, and a signal or
/// none: `OnChannel<Option<S>>`, or `OnChannel` where there never is one.
#[derive(Clone, Copy, Debug)]
pub struct OnChannel<S = ()> {
    /// The key that the queue's events carry.
    pub key: CqKey,
    /// The side's signal.
    pub signal: S,
}

impl OnChannel {
    /// For the consumer of a [raw](super::raw) queue that has no signal.
    #[must_use]
    pub const fn named(key: CqKey) -> Self {
        Self { key, signal: () }
    }
}

impl<S: SplitSignal> OnChannel<S> {
    /// For the producer and the consumer.
    pub(super) fn of_both(key: CqKey, signal: S) -> (Self, OnChannel<Option<S>>) {
        let of_consumer = OnChannel { key, signal: signal.of_consumer() };
        (Self { key, signal }, of_consumer)
    }
}

impl<S: Signal> Channel for OnChannel<S> {
    const RAISES: bool = true;

    #[inline]
    fn raise(&self) {
        self.signal.raise(self.key);
    }
}

impl ConsumerChannel for OnChannel {
    fn take(&mut self) -> Self {
        *self
    }

    fn wake(&self) {}
}

impl<S: Signal> ConsumerChannel for OnChannel<Option<S>> {
    fn take(&mut self) -> Self {
        Self { key: self.key, signal: self.signal.take() }
    }

    fn wake(&self) {
        if let Some(signal) = &self.signal {
            signal.raise(self.key);
        }
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::NoChannel {}
    impl<S> Sealed for super::OnChannel<S> {}
}
