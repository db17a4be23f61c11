//! A channel that wakes a task of any executor. Feature `async`.
//!
//! ```
//! use cq_core::channel::waker;
//! use cq_core::cq::CompletionQueue;
//! use cq_core::queue::HeapCq;
//! use cq_core::transport::CqKey;
//! use cq_core::wc::{Wc, WcStatus};
//!
//! const KEY: CqKey = CqKey { index: 0, generation: 1 };
//! let (raiser, mut events) = waker::channel();
//! let (mut producer, consumer) = HeapCq::new(16)?.split_with(KEY, raiser);
//! let device = std::thread::spawn(move || producer.push(&Wc::new(7, WcStatus::SUCCESS, 5)));
//!
//! // In a task of tokio or embassy.
//! let task = async move {
//!     let (mut cq, mut batch) = (CompletionQueue::new(consumer), [Wc::default(); 4]);
//!     cq.next_batch(&mut batch, &mut events).await.map(|batch| batch[0].wr_id())
//! };
//! assert_eq!(pollster::block_on(task)?, 7);
//! device.join().unwrap()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `channel` needs the feature `alloc`, and its sides own the channel. Without an allocator, a [`WakerChannel`] in a
//! static or on a stack is [split](WakerChannel::split) into sides that borrow it.

#[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
use alloc::sync::Arc;
use core::cell::Cell;
use core::marker::PhantomData;
use core::ops::Deref;
use core::task::Waker;

use super::flag::Flag;
use crate::sync::{self, AtomicWaker};
use crate::transport::{AsyncChannel, CqKey, EventError, Events, Signal};

/// The channel of one queue.
#[derive(Debug, Default)]
pub struct WakerChannel {
    flag: Flag,
    waker: AtomicWaker,
}

impl WakerChannel {
    /// A channel without an event.
    #[must_use]
    pub fn new() -> Self {
        Self { flag: Flag::new(), waker: AtomicWaker::new() }
    }

    /// The two sides. Unread events are discarded.
    pub fn split(&mut self) -> (Raiser<&Self>, Receiver<&Self>) {
        sides(&*self)
    }
}

/// A channel whose two sides own it.
#[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
#[must_use]
pub fn channel() -> (Raiser<Arc<WakerChannel>>, Receiver<Arc<WakerChannel>>) {
    sides(Arc::new(WakerChannel::new()))
}

fn sides<C: Deref<Target = WakerChannel> + Clone>(channel: C) -> (Raiser<C>, Receiver<C>) {
    let taken = channel.flag.count();
    (Raiser { channel: channel.clone(), one_thread: PhantomData }, Receiver { channel, taken })
}

/// The producer's side.
#[derive(Debug)]
#[cfg_attr(target_has_atomic = "32", derive(Clone))]
pub struct Raiser<C> {
    channel: C,
    one_thread: PhantomData<Cell<()>>,
}

impl<C: Deref<Target = WakerChannel>> Signal for Raiser<C> {
    fn raise(&self, cq: CqKey) {
        self.channel.flag.raise(cq);
        sync::wake(&self.channel.waker);
    }
}

/// The consumer's side, for one task.
#[derive(Debug)]
pub struct Receiver<C: Deref<Target = WakerChannel>> {
    channel: C,
    /// The count when an event was last taken.
    taken: u32,
}

impl<C: Deref<Target = WakerChannel>> Events for Receiver<C> {
    fn take_event(&mut self) -> Result<Option<CqKey>, EventError> {
        Ok(self.channel.flag.take(&mut self.taken))
    }
}

impl<C: Deref<Target = WakerChannel>> AsyncChannel for Receiver<C> {
    fn register(&mut self, task: &Waker) {
        sync::register(&self.channel.waker, task);
    }
}

impl<C: Deref<Target = WakerChannel>> Drop for Receiver<C> {
    /// The raiser may live on, and would keep the task.
    fn drop(&mut self) {
        sync::unregister(&self.channel.waker);
    }
}
