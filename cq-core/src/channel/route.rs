//! One channel for several queues (N8), of which each is waited for as if it were its own.
//!
//! ```
//! use cq_core::channel::route::Router;
//! use cq_core::channel::thread;
//! use cq_core::cq::CompletionQueue;
//! use cq_core::queue::HeapCq;
//! use cq_core::transport::CqKey;
//! use cq_core::wc::{Wc, WcStatus};
//!
//! let key = |index| CqKey { index, generation: 1 };
//! let (raiser, events) = thread::channel(2);
//! let (mut sends, consumer) = HeapCq::new(16)?.split_with(key(0), raiser.clone());
//! let mut send_cq = CompletionQueue::new(consumer);
//! let (mut receives, consumer) = HeapCq::new(16)?.split_with(key(1), raiser);
//! let mut recv_cq = CompletionQueue::new(consumer);
//!
//! let device = std::thread::spawn(move || {
//!     receives.push(&Wc::new(2, WcStatus::SUCCESS, 5)).unwrap();
//!     sends.push(&Wc::new(1, WcStatus::SUCCESS, 5)).unwrap();
//!     (sends, receives)
//! });
//! let (mut router, mut batch) = (Router::<_, 2>::new(events), [Wc::default(); 4]);
//! assert_eq!(send_cq.wait(&mut batch, &mut router.of(key(0)), None)?[0].wr_id(), 1);
//! assert_eq!(recv_cq.wait(&mut batch, &mut router.of(key(1)), None)?[0].wr_id(), 2);
//! # device.join().unwrap();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::transport::{Block, CqKey, EventError, Events, Woken};

/// A channel, and what it has told of queues that nobody was waiting for then: of `N` at the most. An event of one more
/// comes to whoever waits, as [`WaitError::OtherQueue`](crate::cq::WaitError::OtherQueue).
#[derive(Clone, Debug)]
pub struct Router<E, const N: usize> {
    channel: E,
    /// Each queue at most once.
    waiting: [Option<CqKey>; N],
    /// What a sleep ended by, and nobody has taken yet.
    ahead: Option<CqKey>,
}

impl<E, const N: usize> Router<E, N> {
    /// Of this channel.
    pub const fn new(channel: E) -> Self {
        Self { channel, waiting: [None; N], ahead: None }
    }

    /// The events of one queue.
    pub const fn of(&mut self, key: CqKey) -> Routed<'_, E, N> {
        Routed { router: self, key }
    }

    /// Gives the channel back; events that wait here are lost.
    pub fn into_channel(self) -> E {
        self.channel
    }

    /// Remembers an event; false if there is no place for another queue.
    fn keep(&mut self, key: CqKey) -> bool {
        if self.waiting.contains(&Some(key)) {
            return true;
        }
        let place = self.waiting.iter_mut().find(|place| place.is_none());
        place.map(|place| *place = Some(key)).is_some()
    }
}

impl<E: Events, const N: usize> Router<E, N> {
    fn next_event(&mut self) -> Result<Option<CqKey>, EventError> {
        match self.ahead.take() {
            Some(key) => Ok(Some(key)),
            None => self.channel.take_event(),
        }
    }
}

/// The events of one queue of a channel that several share.
#[derive(Debug)]
pub struct Routed<'a, E, const N: usize> {
    router: &'a mut Router<E, N>,
    key: CqKey,
}

impl<E: Events, const N: usize> Events for Routed<'_, E, N> {
    /// Takes an event of this queue; those of others wait for who asks for them.
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
}

impl<E: Block, const N: usize> Block for Routed<'_, E, N> {
    type Instant = E::Instant;

    fn block(&mut self, deadline: Option<E::Instant>) -> Result<Woken, EventError> {
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
