//! A completion queue over any transport: batch poll, arm and poll again, wait. This is safe code and does not depend
//! on the layout of a ring, because hardware does not expose one.
//!
//! ```
//! use std::time::Duration;
//! use cq_core::cq::{CompletionQueue, WaitError};
//! use cq_core::transport::{Arm, Block, Deadline};
//! use cq_core::wc::Wc;
//!
//! /// Serves completions until none has arrived for a second. Polls while there is work, sleeps otherwise.
//! fn serve<T, C>(cq: &mut CompletionQueue<T>, channel: &mut C) -> Result<(), WaitError>
//! where
//!     T: Arm<Entry = Wc>,
//!     C: Block<Instant: Deadline>,
//! {
//!     let mut buffer = [Wc::default(); 32];
//!     loop {
//!         let batch = cq.wait_timeout(&mut buffer, channel, Duration::from_secs(1))?;
//!         if batch.is_empty() {
//!             return Ok(());
//!         }
//!         for wc in batch {
//!             println!("request {} is done: {}", wc.wr_id(), wc.status());
//!         }
//!     }
//! }
//! ```

mod next_batch;
#[cfg(feature = "async")]
mod stream;

use core::time::Duration;

#[cfg(feature = "async")]
pub use self::stream::CompletionStream;
pub use crate::transport::WaitError;
use crate::transport::{
    Arm, Armed, Block, Capacity, CqKey, Deadline, Events, Notify, PollCq, PollError, Woken,
    poll_checked,
};

/// A completion queue of a transport.
///
/// ```
/// use cq_core::cq::CompletionQueue;
/// use cq_core::queue::SoftCq;
/// use cq_core::wc::{Wc, WcStatus};
///
/// let mut storage = SoftCq::<16>::new();
/// let (mut producer, consumer) = storage.split();
/// producer.push_batch(&[1, 2, 3].map(|wr_id| Wc::new(wr_id, WcStatus::SUCCESS, 5)))?;
///
/// let (mut cq, mut batch) = (CompletionQueue::new(consumer), [Wc::default(); 2]);
/// assert_eq!(cq.poll(&mut batch)?.len(), 2);
/// assert_eq!(cq.pop()?.map(|wc| wc.wr_id()), Some(3));
/// assert!(cq.poll(&mut batch)?.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// See [the module](self) for another example.
#[doc(alias = "ibv_cq")]
#[derive(Debug)]
pub struct CompletionQueue<T: ?Sized> {
    pub(crate) transport: T,
}

impl<T: Capacity> CompletionQueue<T> {
    /// How many completions the queue holds ([O1](crate::contract#o1)).
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.transport.capacity()
    }
}

impl<T: PollCq> CompletionQueue<T> {
    /// Wraps a transport.
    pub const fn new(transport: T) -> Self {
        Self { transport }
    }

    crate::polled_without_import!(T::Entry);

    /// Returns the transport's completion queue.
    #[must_use]
    pub const fn get_ref(&self) -> &T {
        &self.transport
    }

    /// Returns the transport, for transport-specific calls.
    pub const fn get_mut(&mut self) -> &mut T {
        &mut self.transport
    }

    /// Consumes the queue and returns the transport.
    pub fn into_inner(self) -> T {
        self.transport
    }

    #[inline]
    pub(crate) fn take(&mut self, buffer: &mut [T::Entry]) -> Result<usize, PollError> {
        poll_checked(&mut self.transport, buffer)
    }
}

impl<H: ?Sized, T: AsRef<H>> AsRef<H> for CompletionQueue<T> {
    crate::of_target! { self.transport; as_ref(&self) -> &H; }
}

impl<T: Arm> CompletionQueue<T> {
    /// Polls. If the queue is empty, arms it for `on` and polls again. An empty result means that the queue is armed
    /// and it is safe to sleep until the event ([N2](crate::contract#n2), [N6](crate::contract#n6)). If `buffer` is
    /// empty, the result is empty and the queue is not armed.
    ///
    /// This is for event loops that sleep on their own descriptor: after a wake-up, take the channel's events, then
    /// call this until the result is empty. Each arm may raise one event, so events accumulate if they are never taken
    /// ([N9](crate::contract#n9)).
    ///
    /// # Errors
    /// The queue failed, or can't be armed.
    pub fn poll_or_arm<'r>(
        &mut self,
        buffer: &'r mut [T::Entry],
        on: Notify,
    ) -> Result<&'r [T::Entry], WaitError> {
        let mut count = self.look(buffer, 0, None)?;
        if count == 0 && !buffer.is_empty() {
            count = self.look(buffer, 0, Some(on))?;
        }
        Ok(first(buffer, count))
    }

    /// Takes up to `buffer.len()` completions. Sleeps on `channel` until there is at least one. Returns an empty slice
    /// if the deadline has passed, or if `buffer` is empty. A deadline of `None` waits indefinitely.
    ///
    /// The channel must serve this queue, and no other. `wait` takes pending events, including those that no wait slept for,
    /// before it arms the queue again. So at most two events are unread, no matter how many waits return without
    /// sleeping: that of the last arm, and one that was being raised when the queue was armed.
    ///
    /// # Errors
    /// - The queue or the channel failed, or the queue can't be armed.
    /// - The queue was empty, and the channel does not serve it ([`WrongChannel`](WaitError::WrongChannel)). Nothing was
    ///   armed. On a channel that can't detect that, the wait is never woken.
    /// - The channel delivered an event of another queue. The error carries its key; nothing is lost if the event is
    ///   passed on to that queue's owner.
    /// - The sleep was interrupted, for example by a signal, and the queue was empty. If there are completions, they
    ///   are returned without this error, so check a signal handler's flag after each wait.
    pub fn wait<'r, C: Block>(
        &mut self,
        buffer: &'r mut [T::Entry],
        channel: &mut C,
        deadline: Option<C::Instant>,
    ) -> Result<&'r [T::Entry], WaitError> {
        wait_with(self.transport.key(), buffer, channel, deadline, |buffer, events, on| {
            self.look(buffer, events, on)
        })
    }

    /// [`wait`](Self::wait) for at most this time.
    ///
    /// # Errors
    /// The same as [`wait`](Self::wait).
    pub fn wait_timeout<'r, C: Block<Instant: Deadline>>(
        &mut self,
        buffer: &'r mut [T::Entry],
        channel: &mut C,
        timeout: Duration,
    ) -> Result<&'r [T::Entry], WaitError> {
        self.wait(buffer, channel, Deadline::after(timeout))
    }

    /// Polls if `on` is `None`. Otherwise arms, and polls if completions may have been added before the arm. `events` is
    /// how many events of the queue were taken since the last look.
    pub(crate) fn look(
        &mut self,
        buffer: &mut [T::Entry],
        events: u32,
        on: Option<Notify>,
    ) -> Result<usize, WaitError> {
        if events > 0 {
            self.transport.took_events(events);
        }
        let Some(on) = on else { return self.take(buffer).map_err(WaitError::Poll) };
        match self.transport.arm(on)? {
            Armed::MayHaveMissed => Ok(self.take(buffer)?),
            Armed::Armed => Ok(0),
        }
    }
}

/// Waits for the queue `key`. `look` polls or arms it, as [`CompletionQueue::look`] does.
pub(crate) fn wait_with<'r, E, C: Block>(
    key: CqKey,
    buffer: &'r mut [E],
    channel: &mut C,
    deadline: Option<C::Instant>,
    mut look: impl FnMut(&mut [E], u32, Option<Notify>) -> Result<usize, WaitError>,
) -> Result<&'r [E], WaitError> {
    let (mut count, mut events) = (0, 0);
    while !buffer.is_empty() {
        count = look(buffer, events, None)?;
        if count > 0 {
            break;
        }
        // Take events before arming: one taken later may be this arm's, and the sleep would then miss it.
        events = take_events(key, channel)?;
        count = look(buffer, events, Some(Notify::Next))?;
        if count > 0 {
            break;
        }
        let woken = channel.block(deadline)?;
        if woken == Woken::Event {
            events = take_event(key, channel)?.into();
            continue;
        }
        count = look(buffer, 0, None)?;
        if count == 0 && woken == Woken::Interrupted {
            return Err(WaitError::Interrupted);
        }
        break;
    }
    Ok(first(buffer, count))
}

/// The first completions, of which there are so many: `poll_checked` has seen to it that there are no more than the buffer holds,
/// which the compiler does not know, and no panic is compiled in for it.
fn first<E>(buffer: &[E], count: usize) -> &[E] {
    &buffer[..count.min(buffer.len())]
}

/// The most events that are taken at a time. If one is left, the next sleep returns at once.
const MOST_EVENTS: u32 = 16;

/// Takes the pending events, up to [`MOST_EVENTS`], and returns their number.
fn take_events(of: CqKey, channel: &mut impl Events) -> Result<u32, WaitError> {
    if !channel.serves(of) {
        return Err(WaitError::WrongChannel(of));
    }
    for count in 0..MOST_EVENTS {
        if !take_event(of, channel)? {
            return Ok(count);
        }
    }
    Ok(MOST_EVENTS)
}

/// Takes an event of this queue. Returns whether one was pending.
fn take_event(of: CqKey, channel: &mut impl Events) -> Result<bool, WaitError> {
    match channel.take_event()? {
        Some(key) if key != of => Err(WaitError::OtherQueue(key)),
        event => Ok(event.is_some()),
    }
}
