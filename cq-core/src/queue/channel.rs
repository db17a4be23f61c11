//! Whether a queue has an event channel: in the type of its sides.

use crate::transport::{CqKey, Signal};

/// Whether a side's queue raises events.
pub trait Channel: sealed::Sealed {
    /// Whether it does. A queue without a channel spends nothing on events.
    const RAISES: bool;

    /// Raises one.
    fn raise(&self);
}

/// A queue without a channel: it can't be armed.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoChannel;

impl Channel for NoChannel {
    const RAISES: bool = false;

    fn raise(&self) {}
}

/// A queue whose events come to a channel. The producer has the [`Signal`] that raises them, the consumer nothing but
/// the name that they carry.
#[derive(Clone, Copy, Debug)]
pub struct OnChannel<S = ()> {
    /// What the queue's events are called.
    pub key: CqKey,
    /// The producer's side of the channel.
    pub signal: S,
}

impl OnChannel {
    /// The consumer's part.
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
