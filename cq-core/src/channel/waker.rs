//! A channel that wakes a task, of whatever executor. Feature `async`.
//!
//! ```
//! use cq_core::channel::waker::WakerChannel;
//! use cq_core::cq::CompletionQueue;
//! use cq_core::queue::SoftCq;
//! use cq_core::transport::CqKey;
//! use cq_core::wc::{Wc, WcStatus};
//!
//! const KEY: CqKey = CqKey { index: 0, generation: 1 };
//! let (mut storage, mut channel) = (SoftCq::<16>::new(), WakerChannel::new(KEY));
//! let (raiser, mut events) = channel.split();
//! let (mut producer, consumer) = storage.split_with(KEY, raiser);
//! let (mut cq, mut batch) = (CompletionQueue::new(consumer), [Wc::default(); 4]);
//!
//! std::thread::scope(|threads| {
//!     threads.spawn(move || producer.push(&Wc::new(7, WcStatus::SUCCESS, 5)).unwrap());
//!     // As in a task of embassy or tokio.
//!     let came = pollster::block_on(cq.next_batch(&mut batch, &mut events)).unwrap();
//!     assert_eq!(came[0].wr_id(), 7);
//! });
//! ```

use core::task::Waker;

use super::flag::{self, Flag};
use crate::sync::{self, AtomicWaker};
use crate::transport::{CqKey, EventError, Events, Signal};

/// The channel of one queue.
#[derive(Debug)]
pub struct WakerChannel {
    flag: Flag,
    waker: AtomicWaker,
}

impl WakerChannel {
    /// No event waits; those that come are called `key`.
    #[must_use]
    pub fn new(key: CqKey) -> Self {
        Self { flag: Flag::new(key), waker: AtomicWaker::new() }
    }

    /// The two sides. Events of earlier sides are gone.
    pub fn split(&mut self) -> (Raiser<'_>, Receiver<'_>) {
        let (raiser, events) = self.flag.split();
        let waker = &self.waker;
        (Raiser { flag: raiser, waker }, Receiver { events, waker })
    }
}

/// The producer's side.
#[derive(Debug)]
#[cfg_attr(target_has_atomic = "32", derive(Clone))]
pub struct Raiser<'a> {
    flag: flag::Raiser<'a>,
    waker: &'a AtomicWaker,
}

impl Signal for Raiser<'_> {
    fn raise(&self, cq: CqKey) {
        self.flag.raise(cq);
        self.waker.wake();
    }
}

/// The consumer's side: one task's.
#[derive(Debug)]
pub struct Receiver<'a> {
    events: flag::Receiver<'a>,
    waker: &'a AtomicWaker,
}

impl Receiver<'_> {
    /// Has this task woken by each event from here on, and no other one.
    pub fn register(&mut self, task: &Waker) {
        sync::register(self.waker, task);
    }
}

impl Events for Receiver<'_> {
    fn take_event(&mut self) -> Result<Option<CqKey>, EventError> {
        self.events.take_event()
    }
}
