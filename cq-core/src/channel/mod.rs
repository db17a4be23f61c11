//! Event channels for software queues.
//!
//! ```
//! use cq_core::channel::flag::Flag;
//! use cq_core::cq::CompletionQueue;
//! use cq_core::queue::SoftCq;
//! use cq_core::transport::{Arm, Events, Notify};
//! use cq_core::wc::{Wc, WcStatus};
//!
//! let (mut storage, mut flag) = (SoftCq::<16>::new(), Flag::new());
//! let (raiser, mut events) = flag.split();
//! let (mut producer, consumer) = storage.split_with(raiser);
//! let (mut cq, mut batch) = (CompletionQueue::new(consumer), [Wc::default(); 4]);
//!
//! assert!(cq.poll_or_arm(&mut batch, Notify::Next)?.is_empty()); // armed: sleep until the event
//! producer.push(&Wc::new(7, WcStatus::SUCCESS, 5))?; // in an interrupt handler, say
//! assert_eq!(events.take_event(), Ok(Some(cq.get_ref().key())));
//! assert_eq!(cq.poll(&mut batch)?.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | channel | for | needs |
//! |---|---|---|
//! | [`flag`] | firmware that checks it when the core wakes | nothing, not even compare-and-swap |
//! | `thread` | a thread that sleeps | feature `std` |
//! | `waker` | a task of any executor | feature `async` |
//!
//! Each makes the keys of its queues. A raiser is moved into the one queue that it is for, by `split_with`; the engine
//! copies it for the queue's other sides, and nobody else can. A wait for a queue on another one's channel fails with
//! [`WrongChannel`](crate::transport::WaitError::WrongChannel).
//!
//! [`route`] shares one channel between several queues. A channel with a descriptor, for event loops, is in cq-verbs. A
//! channel of your own is a [`Signal`] and its [`Events`](crate::transport::Events); by [`signal_fn`] a closure is a signal:
//! one that writes to an eventfd in an `Arc`, for example.

pub mod flag;
pub mod route;
mod share;
#[cfg(feature = "std")]
pub mod thread;
#[cfg(feature = "async")]
pub mod waker;

use core::fmt;

pub use self::share::Share;
use crate::transport::{CqKey, Signal};

/// A closure as the [`Signal`] of the queue `key`. The consumer of a queue gets a clone of it.
///
/// ```
/// use cq_core::channel::signal_fn;
/// use cq_core::queue::HeapCq;
/// use cq_core::transport::{Arm, CqKey, Notify};
/// use cq_core::wc::{Wc, WcStatus};
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
///
/// let events = Arc::new(AtomicU32::new(0));
/// let raised = Arc::clone(&events);
/// let signal = signal_fn(CqKey { index: 0, generation: 1 }, move || _ = raised.fetch_add(1, Relaxed));
/// let (mut producer, mut consumer) = HeapCq::new(16)?.split_with(signal);
/// let _ = consumer.arm(Notify::Next)?;
/// producer.push(&Wc::new(7, WcStatus::SUCCESS, 5))?;
/// assert_eq!(events.load(Relaxed), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub const fn signal_fn<F: Fn()>(key: CqKey, raise: F) -> SignalFn<F> {
    SignalFn { key, raise }
}

/// See [`signal_fn`].
#[derive(Clone, Copy)]
pub struct SignalFn<F> {
    key: CqKey,
    raise: F,
}

impl<F: Fn()> Signal for SignalFn<F> {
    fn key(&self) -> CqKey {
        self.key
    }

    fn raise(&self) {
        (self.raise)();
    }
}

impl<F> fmt::Debug for SignalFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignalFn").field("key", &self.key).finish_non_exhaustive()
    }
}
