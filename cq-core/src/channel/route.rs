//! One channel shared by several queues ([N8](crate::contract#n8)): a wait for one queue keeps the events of the
//! others.
//!
//! ```
//! use cq_core::channel::route::Router;
//! use cq_core::channel::thread;
//! use cq_core::cq::CompletionQueue;
//! use cq_core::queue::HeapCq;
//! use cq_core::transport::Signal;
//! use cq_core::wc::{Wc, WcStatus};
//!
//! let (of_sends, events) = thread::channel(2);
//! let of_receives = events.raiser();
//! let (send_key, recv_key) = (of_sends.key(), of_receives.key());
//! let (mut sends, consumer) = HeapCq::new(16)?.split_with(of_sends);
//! let mut send_cq = CompletionQueue::new(consumer);
//! let (mut receives, consumer) = HeapCq::new(16)?.split_with(of_receives);
//! let mut recv_cq = CompletionQueue::new(consumer);
//!
//! let device = std::thread::spawn(move || {
//!     receives.push(&Wc::new(2, WcStatus::SUCCESS, 5)).unwrap();
//!     sends.push(&Wc::new(1, WcStatus::SUCCESS, 5)).unwrap();
//!     (sends, receives)
//! });
//! let (mut router, mut batch) = (Router::<_, 2>::new(events), [Wc::default(); 4]);
//! assert_eq!(send_cq.wait(&mut batch, &mut router.route(send_key), None)?[0].wr_id(), 1);
//! assert_eq!(recv_cq.wait(&mut batch, &mut router.route(recv_key), None)?[0].wr_id(), 2);
//! # device.join().unwrap();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::transport::{Block, CqKey, EventError, Events, Woken};

/// A channel, and up to `N` queues whose events were read during waits for other queues. The event of one more queue is
/// returned to the caller, as [`WaitError::OtherQueue`](crate::cq::WaitError::OtherQueue).
///
/// ```
/// use cq_core::channel::route::Router;
/// use cq_core::channel::thread;
/// use cq_core::transport::{Events, Signal};
///
/// let (of_sends, events) = thread::channel(2);
/// let of_receives = events.raiser();
/// let mut router = Router::<_, 2>::new(events);
///
/// of_receives.raise();
/// assert_eq!(router.route(of_sends.key()).take_event()?, None); // kept for the other queue
/// assert_eq!(router.route(of_receives.key()).take_event()?, Some(of_receives.key()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// See [the module](self) for another example.
#[derive(Clone, Debug)]
pub struct Router<E, const N: usize> {
    channel: E,
    /// Queues with an unread event, each once.
    waiting: [Option<CqKey>; N],
    /// The event that ended a sleep, until it is taken.
    ahead: Option<CqKey>,
}

impl<E, const N: usize> Router<E, N> {
    /// A router for this channel.
    pub const fn new(channel: E) -> Self {
        Self { channel, waiting: [None; N], ahead: None }
    }

    /// The channel as one queue sees it.
    pub const fn route(&mut self, key: CqKey) -> Routed<'_, E, N> {
        Routed { router: self, key }
    }

    /// Returns the channel. Events that were kept for other queues are lost.
    pub fn into_inner(self) -> E {
        self.channel
    }

    /// Keeps an event for its queue. Returns false if `N` queues have one already.
    fn keep(&mut self, key: CqKey) -> bool {
        if self.waiting.contains(&Some(key)) {
            return true;
        }
        let place = self.waiting.iter_mut().find(|place| place.is_none());
        place.map(|place| *place = Some(key)).is_some()
    }
}

impl<E: Events, const N: usize> Router<E, N> {
    /// Drops the events of a queue that is destroyed, if there are any ([N7](crate::contract#n7)).
    pub fn forget(&mut self, key: CqKey) {
        let kept = self.waiting.iter_mut().chain([&mut self.ahead]);
        kept.filter(|place| **place == Some(key)).for_each(|place| *place = None);
        self.channel.forget(key);
    }

    fn next_event(&mut self) -> Result<Option<CqKey>, EventError> {
        match self.ahead.take() {
            Some(key) => Ok(Some(key)),
            None => self.channel.take_event(),
        }
    }
}

/// A shared channel as one queue sees it.
#[derive(Debug)]
pub struct Routed<'a, E, const N: usize> {
    router: &'a mut Router<E, N>,
    key: CqKey,
}

impl<E: Events, const N: usize> Events for Routed<'_, E, N> {
    /// Takes an event of this queue, and keeps those of others.
    fn take_event(&mut self) -> Result<Option<CqKey>, EventError> {
        let Self { router, key } = self;
        if let Some(place) = router.waiting.iter_mut().find(|place| **place == Some(*key)) {
            return Ok(place.take());
        }
        while let Some(other) = router.next_event()? {
            if other == *key || !router.keep(other) {
                return Ok(Some(other));
            }
        }
        Ok(None)
    }

    fn forget(&mut self, key: CqKey) {
        self.router.forget(key);
    }

    fn serves(&self, key: CqKey) -> bool {
        key == self.key && self.router.channel.serves(key)
    }
}

impl<E: Block, const N: usize> Block for Routed<'_, E, N> {
    type Instant = E::Instant;

    fn block(&mut self, deadline: Option<E::Instant>) -> Result<Woken, EventError> {
        // Before anything is read: an event that is `ahead` stays there.
        if self.router.waiting.contains(&Some(self.key)) {
            return Ok(Woken::Event);
        }
        loop {
            if let Some(key) = self.take_event()? {
                self.router.ahead = Some(key);
                return Ok(Woken::Event);
            }
            match self.router.channel.block(deadline)? {
                Woken::Event => {}
                other => return Ok(other),
            }
        }
    }
}
