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
//! static or on a stack is [split](WakerChannel::split) into sides that borrow it: in a static it is borrowed for `'static` by
//! `StaticCell`, as a `Flag` is in the [guide](crate::guide::firmware).

#[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
use alloc::sync::Arc;
use core::ops::Deref;
use core::task::Waker;

use super::flag::Flag;
use super::sides::{self, FlagChannel, Share};
pub use super::sides::{Raiser, Receiver};
use crate::sync::{self, AtomicWaker, const_unless_loom};
use crate::transport::RegisterWaker;

/// The channel of one queue.
///
/// ```
/// use cq_core::channel::waker::WakerChannel;
/// use cq_core::cq::CompletionQueue;
/// use cq_core::queue::SoftCq;
/// use cq_core::wc::{Wc, WcStatus};
///
/// let (mut channel, mut storage) = (WakerChannel::new(), SoftCq::<16>::new());
/// let (raiser, mut events) = channel.split();
/// let (mut producer, consumer) = storage.split_with(raiser);
/// producer.push(&Wc::new(7, WcStatus::SUCCESS, 5))?;
///
/// let (mut cq, mut batch) = (CompletionQueue::new(consumer), [Wc::default(); 4]);
/// assert_eq!(pollster::block_on(cq.next_batch(&mut batch, &mut events))?[0].wr_id(), 7);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// See [the module](self) for another example.
#[derive(Debug, Default)]
pub struct WakerChannel {
    flag: Flag,
    waker: AtomicWaker,
}

impl WakerChannel {
    const_unless_loom! {
        /// A channel without an event.
        #[must_use]
        pub const fn new() -> Self {
            Self { flag: Flag::new(), waker: AtomicWaker::new() }
        }
    }

    /// The two sides, which [`reunite`](Raiser::reunite). Unread events are discarded.
    pub fn split(&mut self) -> (Raiser<Share<'_, Self>>, Receiver<Share<'_, Self>>) {
        sides::split(self)
    }
}

impl FlagChannel for WakerChannel {
    fn flag(&self) -> &Flag {
        &self.flag
    }

    fn wake(&self) {
        sync::wake(&self.waker);
    }

    /// The raiser may live on, and would keep the task.
    fn forsake(&self) {
        sync::unregister(&self.waker);
    }
}

/// A channel whose two sides own it.
#[must_use]
#[cfg(all(feature = "alloc", any(target_has_atomic = "ptr")))]
// For targets with compare-and-swap. On others, split a WakerChannel in a static.
pub fn channel() -> (Raiser<Arc<WakerChannel>>, Receiver<Arc<WakerChannel>>) {
    let channel = Arc::new(WakerChannel::new());
    sides::sides(Arc::clone(&channel), channel)
}

impl<C: Deref<Target = WakerChannel>> RegisterWaker for Receiver<C> {
    fn register(&mut self, task: &Waker) {
        sync::register(&self.channel.waker, task);
    }
}
