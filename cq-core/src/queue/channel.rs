//! Whether a queue has an event channel, as a type parameter of its sides.

use crate::transport::{CqKey, Signal};

/// Whether a queue raises events.
pub trait Channel: sealed::Sealed {
    /// Whether it does. A queue without a channel has no cost for events.
    const RAISES: bool;

    /// Raises an event.
    fn raise(&self);
}

/// A queue without a channel. It cannot be armed.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoChannel;

impl Channel for NoChannel {
    const RAISES: bool = false;

    fn raise(&self) {}
}

/// A queue with a channel. The producer has the [`Signal`] that raises events, the consumer only their key.
#[derive(Clone, Copy, Debug)]
pub struct OnChannel<S = ()> {
    /// The key that the queue's events carry.
    pub key: CqKey,
    /// The producer's side of the channel.
    pub signal: S,
}

impl OnChannel {
    /// For the consumer.
    #[must_use]
    pub const fn named(key: CqKey) -> Self {
        Self { key, signal: () }
    }
}

impl<S: Signal> Channel for OnChannel<S> {
    const RAISES: bool = true;

    #[inline]
    fn raise(&self) {
        self.signal.raise(self.key);
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::NoChannel {}
    impl<S> Sealed for super::OnChannel<S> {}
}
