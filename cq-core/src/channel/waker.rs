//! A channel that wakes a task of any executor. Feature `async`.
//!
//! ```
//! use cq_core::channel::waker;
//! use cq_core::cq::CompletionQueue;
//! use cq_core::queue::HeapCq;
//! use cq_core::wc::{Wc, WcStatus};
//!
//! let (raiser, mut events) = waker::channel();
//! let (mut producer, consumer) = HeapCq::new(16)?.split_with(raiser);
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
//! static or on a stack is [split](WakerChannel::split) into sides that borrow it: in a static it is lent for ever by
//! `StaticCell`, as in the [guide](crate::guide::firmware) a `Flag` is.

#[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
use alloc::sync::Arc;
use core::cell::Cell;
use core::marker::PhantomData;
use core::ops::Deref;
use core::task::Waker;

use super::flag::Flag;
use super::share::{Counted, Share};
use crate::queue::ReuniteError;
#[cfg(target_has_atomic = "32")]
use crate::queue::{SplitSignal, Token};
use crate::sync::{self, AtomicU32, AtomicWaker, const_unless_loom};
use crate::transport::{AsyncChannel, CqKey, EventError, Events, Signal};

/// The channel of one queue.
#[derive(Debug, Default)]
pub struct WakerChannel {
    flag: Flag,
    waker: AtomicWaker,
}

/// The sides of a channel that they borrow.
type Sides<'a> = (Raiser<Share<'a, WakerChannel>>, Receiver<Share<'a, WakerChannel>>);

impl WakerChannel {
    const_unless_loom! {
        /// A channel without an event.
        #[must_use]
        pub const fn new() -> Self {
            Self { flag: Flag::new(), waker: AtomicWaker::new() }
        }
    }

    /// The two sides. Unread events are discarded.
    pub fn split(&mut self) -> Sides<'_> {
        let (raiser, receiver) = Share::pair(self);
        sides(raiser, receiver)
    }

    /// The channel of these sides, which can be split again: as [`Flag::reunite`].
    ///
    /// # Errors
    /// They are the sides of two channels, or a queue has a copy of the raiser. Both are returned.
    pub fn reunite<'a>(
        raiser: Raiser<Share<'a, Self>>,
        receiver: Receiver<Share<'a, Self>>,
    ) -> Result<&'a mut Self, ReuniteError<Raiser<Share<'a, Self>>, Receiver<Share<'a, Self>>>>
    {
        if !raiser.channel.is_pair(&receiver.channel) {
            return Err(ReuniteError(raiser, receiver));
        }
        drop(receiver);
        Ok(raiser.channel.into_mut())
    }
}

impl Counted for WakerChannel {
    fn shares(&self) -> &AtomicU32 {
        self.flag.shares()
    }
}

/// A channel whose two sides own it.
#[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
#[must_use]
pub fn channel() -> (Raiser<Arc<WakerChannel>>, Receiver<Arc<WakerChannel>>) {
    let channel = Arc::new(WakerChannel::new());
    sides(Arc::clone(&channel), channel)
}

fn sides<C: Deref<Target = WakerChannel>>(raiser: C, receiver: C) -> (Raiser<C>, Receiver<C>) {
    let taken = receiver.flag.count();
    let raiser = Raiser { channel: raiser, one_thread: PhantomData };
    (raiser, Receiver { channel: receiver, taken })
}

/// The producer's side, for one queue. It can't be cloned.
#[derive(Debug)]
pub struct Raiser<C> {
    channel: C,
    one_thread: PhantomData<Cell<()>>,
}

impl<C: Deref<Target = WakerChannel>> Signal for Raiser<C> {
    fn key(&self) -> CqKey {
        self.channel.flag.key()
    }

    fn raise(&self) {
        self.channel.flag.raise();
        sync::wake(&self.channel.waker);
    }
}

#[cfg(target_has_atomic = "32")]
impl<C: Deref<Target = WakerChannel> + Clone> SplitSignal for Raiser<C> {
    fn copy(&self, _: &Token) -> Self {
        Self { channel: self.channel.clone(), one_thread: PhantomData }
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

    fn forget(&mut self, key: CqKey) {
        self.channel.flag.forget(&mut self.taken, key);
    }

    fn serves(&self, key: CqKey) -> bool {
        key == self.channel.flag.key()
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
