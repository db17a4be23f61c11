//! A transport's completion queue with an observer, which sees each poll, each arm, and the events that were taken. It
//! is a type of its own: a queue without an observer costs nothing.
//!
//! `counters` of cq-verbs has an observer that counts, the example `logging` one that writes what fails to a log. Another one
//! takes a few lines:
//!
//! ```
//! use std::collections::HashMap;
//!
//! use cq_core::cq::CompletionQueue;
//! use cq_core::observe::{Observed, Observer};
//! use cq_core::queue::SoftCq;
//! use cq_core::transport::PollCq;
//! use cq_core::wc::{Wc, WcStatus};
//!
//! /// Counts completions by queue pair.
//! #[derive(Default)]
//! struct ByQueuePair(HashMap<u32, u64>);
//!
//! impl Observer for ByQueuePair {
//!     fn polled(&mut self, _: &dyn PollCq<Entry = Wc>, _: usize, batch: &[Wc]) {
//!         for wc in batch {
//!             *self.0.entry(wc.qp_num()).or_default() += 1;
//!         }
//!     }
//! }
//!
//! let mut storage = SoftCq::<4>::new();
//! let (mut device, consumer) = storage.split();
//! let mut cq = CompletionQueue::new(Observed::new(consumer, ByQueuePair::default()));
//! device.push(&Wc::new(1, WcStatus::SUCCESS, 17))?;
//! assert_eq!(cq.poll(&mut [Wc::default(); 4])?.len(), 1);
//! assert_eq!(cq.get_ref().observer().0[&17], 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::of_target;
use crate::transport::{
    Arm, ArmError, Armed, Capacity, CqKey, Notify, PollCq, PollError, poll_checked,
};
use crate::wc::Wc;

/// What an observer sees of a queue. It is called where the queue is polled and armed, by the thread that does so.
pub trait Observer<E = Wc> {
    /// A poll for up to `asked` completions has returned this batch. `queue` is the queue after the poll.
    fn polled(&mut self, queue: &dyn PollCq<Entry = E>, asked: usize, batch: &[E]);

    /// The same, of a queue whose type is known, for an observer that queries the queue at each poll: no call is indirect.
    #[inline(always)]
    fn polled_by(&mut self, queue: &impl PollCq<Entry = E>, asked: usize, batch: &[E])
    where
        Self: Sized,
    {
        self.polled(queue, asked, batch);
    }

    /// A poll has failed.
    #[inline]
    fn failed(&mut self, error: PollError) {
        let _ = error;
    }

    /// An arm has returned this.
    #[inline]
    fn armed(&mut self, armed: Result<Armed, ArmError>) {
        let _ = armed;
    }

    /// This many events of the queue were taken, before it is polled again. Not zero.
    #[inline]
    fn took_events(&mut self, count: u32) {
        let _ = count;
    }
}

/// A queue with an observer. It implements what the queue implements, and has the handle that the queue has:
/// wrap it in a [`CompletionQueue`](crate::cq::CompletionQueue).
///
/// ```
/// use cq_core::observe::{Observed, Observer};
/// use cq_core::queue::SoftCq;
/// use cq_core::transport::{PollCq, PollError};
/// use cq_core::wc::Wc;
///
/// /// Counts the polls that find nothing.
/// struct Empty(u64);
///
/// impl Observer for Empty {
///     fn polled(&mut self, _: &dyn PollCq<Entry = Wc>, _: usize, batch: &[Wc]) {
///         self.0 += u64::from(batch.is_empty());
///     }
/// }
///
/// let mut storage = SoftCq::<4>::new();
/// let (_producer, consumer) = storage.split();
/// let mut observed = Observed::new(consumer, Empty(0));
/// observed.pop()?;
/// assert_eq!(observed.into_parts().1.0, 1);
/// # Ok::<(), PollError>(())
/// ```
///
/// See [the module](self) for another example.
#[derive(Clone, Debug)]
pub struct Observed<T, O> {
    transport: T,
    observer: O,
}

impl<T, O> Observed<T, O> {
    /// Wraps a queue.
    pub const fn new(transport: T, observer: O) -> Self {
        Self { transport, observer }
    }

    /// Returns the observer.
    pub const fn observer(&self) -> &O {
        &self.observer
    }

    /// Returns the queue. It can't be polled by this, past the observer.
    pub const fn get_ref(&self) -> &T {
        &self.transport
    }

    /// Returns the queue, for transport-specific calls. The observer does not see polls and arms of it.
    pub const fn get_mut(&mut self) -> &mut T {
        &mut self.transport
    }

    /// Returns the queue and the observer.
    pub fn into_parts(self) -> (T, O) {
        (self.transport, self.observer)
    }
}

impl<H: ?Sized, T: AsRef<H>, O> AsRef<H> for Observed<T, O> {
    of_target! { self.transport; as_ref(&self) -> &H; }
}

impl<T: PollCq, O: Observer<T::Entry>> PollCq for Observed<T, O> {
    type Entry = T::Entry;

    // As of the queue itself: not inlined, an empty poll takes three times as long.
    #[inline(always)]
    fn poll_into(&mut self, out: &mut [T::Entry]) -> Result<usize, PollError> {
        // By value: what the observer gets by reference would be stored first.
        match poll_checked(&mut self.transport, out) {
            Ok(count) => {
                self.observer.polled_by(&self.transport, out.len(), &out[..count]);
                Ok(count)
            }
            Err(error) => {
                self.observer.failed(error);
                Err(error)
            }
        }
    }

    of_target! { self.transport; holds_more_than(&self, count: usize) -> bool; }
}

impl<T: Arm, O: Observer<T::Entry>> Arm for Observed<T, O> {
    #[inline]
    fn arm(&mut self, on: Notify) -> Result<Armed, ArmError> {
        let armed = self.transport.arm(on);
        self.observer.armed(armed);
        armed
    }

    of_target! { self.transport; key(&self) -> CqKey; }

    #[inline]
    fn took_events(&mut self, count: u32) {
        self.transport.took_events(count);
        self.observer.took_events(count);
    }
}

impl<T: Capacity, O> Capacity for Observed<T, O> {
    of_target! { self.transport; capacity(&self) -> usize; }
}
