//! A channel that a thread sleeps on. Feature `std`.
//!
//! ```
//! use std::time::Duration;
//! use cq_core::channel::thread;
//! use cq_core::cq::{CompletionQueue, WaitError};
//! use cq_core::queue::HeapCq;
//! use cq_core::transport::PollError;
//! use cq_core::wc::{Wc, WcStatus};
//!
//! let (raiser, mut events) = thread::channel(1);
//! let (mut producer, consumer) = HeapCq::new(16)?.split_with(raiser);
//! let device = std::thread::spawn(move || producer.push(&Wc::new(7, WcStatus::SUCCESS, 5)));
//!
//! let (mut cq, mut batch) = (CompletionQueue::new(consumer), [Wc::default(); 4]);
//! assert_eq!(cq.wait_timeout(&mut batch, &mut events, Duration::from_secs(10))?.len(), 1);
//! device.join().unwrap()?;
//! let end = WaitError::Poll(PollError::Closed); // the device is gone
//! assert_eq!(cq.wait(&mut batch, &mut events, None), Err(end));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Several queues may share a channel, each with a raiser of its own ([`Receiver::raiser`]): each event names its queue
//! ([N8](crate::contract#n8)). A queue has at most one unread event, however often its event is raised ([N9](crate::contract#n9)). A [`StopHandle`] ends a sleep from
//! another thread.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::queue::{SplitSignal, Token};
use crate::transport::{Block, CqKey, EventError, Events, Signal, Woken};

#[derive(Debug, Default)]
struct Shared {
    /// The generation in the keys of this channel's queues, which no other channel of the process has.
    number: u32,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The queues that have an unread event, each once.
    waiting: VecDeque<CqKey>,
    is_to_stop: bool,
    /// The number of raisers that were made.
    raisers: u32,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic leaves the state consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_one();
    }
}

/// A channel with space for the events of `queues` queues, if there is memory for that, and the raiser of the first one.
/// It works for more; raising an event may allocate then.
#[must_use]
pub fn channel(queues: usize) -> (Raiser, Receiver) {
    // Far from the numbers that programs give keys of their own.
    static CHANNELS: Mutex<u32> = Mutex::new(1 << 31);
    let mut number = CHANNELS.lock().unwrap_or_else(PoisonError::into_inner);
    *number = number.wrapping_add(1);
    let shared = Shared { number: *number, ..Shared::default() };
    // Without the space, raising an event allocates.
    let _ = shared.lock().waiting.try_reserve_exact(queues);
    let receiver = Receiver(Arc::new(shared));
    (receiver.raiser(), receiver)
}

/// The side of one queue's producers. It can't be cloned: [`Receiver::raiser`] makes another queue's.
#[derive(Debug)]
pub struct Raiser {
    channel: Arc<Shared>,
    key: CqKey,
}

impl Raiser {
    /// Raises an event, and does something before anybody can take it, under the channel's lock.
    #[doc(hidden)]
    pub fn raise_and(&self, then: impl FnOnce()) {
        self.channel.change(|state| {
            if !state.waiting.contains(&self.key) {
                state.waiting.push_back(self.key);
            }
            then();
        });
    }
}

impl Signal for Raiser {
    fn key(&self) -> CqKey {
        self.key
    }

    fn raise(&self) {
        self.raise_and(|| {});
    }
}

impl SplitSignal for Raiser {
    fn copy(&self, _: &Token) -> Self {
        Self { channel: Arc::clone(&self.channel), key: self.key }
    }
}

/// The consumer's side.
#[derive(Debug)]
pub struct Receiver(Arc<Shared>);

impl Receiver {
    /// The raiser of one more queue.
    #[must_use]
    pub fn raiser(&self) -> Raiser {
        let index = &mut self.0.lock().raisers;
        *index = index.wrapping_add(1);
        let key = CqKey { index: *index, generation: self.0.number };
        Raiser { channel: Arc::clone(&self.0), key }
    }

    /// A handle by which other threads end a sleep on this channel.
    #[must_use]
    pub fn stop_handle(&self) -> StopHandle {
        StopHandle(Arc::clone(&self.0))
    }

    /// Changes the events, and if none is left, does something before the next one is raised.
    fn change<R>(
        &self,
        change: impl FnOnce(&mut VecDeque<CqKey>) -> R,
        if_empty: impl FnOnce(),
    ) -> R {
        let mut state = self.0.lock();
        let changed = change(&mut state.waiting);
        if state.waiting.is_empty() {
            if_empty();
        }
        changed
    }

    /// [`take_event`](Events::take_event), and something if that was the last one, under the channel's lock.
    #[doc(hidden)]
    pub fn take_and(&self, if_empty: impl FnOnce()) -> Option<CqKey> {
        self.change(VecDeque::pop_front, if_empty)
    }

    /// [`forget`](Events::forget), and something if no event is left, under the channel's lock.
    #[doc(hidden)]
    pub fn forget_and(&self, key: CqKey, if_empty: impl FnOnce()) {
        self.change(|waiting| waiting.retain(|other| *other != key), if_empty);
    }
}

impl Events for Receiver {
    fn take_event(&mut self) -> Result<Option<CqKey>, EventError> {
        Ok(self.take_and(|| {}))
    }

    fn forget(&mut self, key: CqKey) {
        self.forget_and(key, || {});
    }

    fn serves(&self, key: CqKey) -> bool {
        key.generation == self.0.number
    }
}

impl Block for Receiver {
    type Instant = Instant;

    fn block(&mut self, deadline: Option<Instant>) -> Result<Woken, EventError> {
        let mut state = self.0.lock();
        loop {
            if core::mem::take(&mut state.is_to_stop) {
                return Ok(Woken::Interrupted);
            }
            if !state.waiting.is_empty() {
                return Ok(Woken::Event);
            }
            let changed = &self.0.changed;
            state = match deadline.map(|deadline| deadline.checked_duration_since(Instant::now())) {
                None => changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(None) => return Ok(Woken::DeadlinePassed),
                Some(Some(left)) => {
                    changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}

/// Ends a sleep on the channel from another thread.
#[derive(Clone, Debug)]
pub struct StopHandle(Arc<Shared>);

impl StopHandle {
    /// Ends the present sleep, or else the next one. It returns [`Woken::Interrupted`].
    pub fn stop(&self) {
        self.0.change(|state| state.is_to_stop = true);
    }
}
