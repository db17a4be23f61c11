//! A completion-queue engine for poll-mode data planes: RDMA applications, packet and storage loops, firmware that drains a
//! DMA engine. `no_std`. Without optional features it does not allocate, makes no system call, and takes no lock outside
//! [`shared_cq`]. Version 0.1, not on crates.io yet.
//!
//! ```
//! use cq_core::cq::CompletionQueue;
//! use cq_core::queue::SoftCq;
//! use cq_core::wc::{Wc, WcStatus};
//!
//! let mut storage = SoftCq::<64>::new();
//! let (mut device, consumer) = storage.split();
//! device.push(&Wc::new(7, WcStatus::SUCCESS, 1))?;
//!
//! let (mut cq, mut batch) = (CompletionQueue::new(consumer), [Wc::default(); 16]);
//! for wc in cq.poll(&mut batch)? {
//!     assert_eq!(wc.result()?.wr_id(), 7); // a failed completion is an error, which has only the defined fields
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! In [firmware](guide::firmware) the queue is a static, and an interrupt handler pushes entries of any type:
//!
//! ```
//! use cq_core::queue::{Producer, SoftCq};
//!
//! static QUEUE: static_cell::ConstStaticCell<SoftCq<16, u32>> = static_cell::ConstStaticCell::new(SoftCq::of_entries());
//!
//! fn on_interrupt(queue: &mut Producer<'static, u32>, transfer: u32) {
//!     let _ = queue.push_or_overrun(&transfer); // the consumer's polls report an overrun
//! }
//! let (mut producer, mut consumer) = QUEUE.take().split();
//! on_interrupt(&mut producer, 7);
//! assert_eq!(consumer.pop(), Ok(Some(7)));
//! ```
//!
//! ```text
//! software device: queue::Producer --> slots --> queue::Consumer --+
//! hardware, or a device of your own --> transport: PollCq, Arm ----+--> cq::CompletionQueue: poll, arm, wait
//!                                       channel: event of an armed queue --^
//! ```
//!
//! # Modules
//! | module | contents |
//! |---|---|
//! | [`wc`], [`entry`] | completions with the layout of `ibv_wc`; any other entry |
//! | [`queue`] | software completion queues, and their protocol; [in shared memory](queue::raw); with [several producers](queue::mpsc) |
//! | [`cq`], [`shared_cq`], [`observe`] | a completion queue over any transport: batch poll, arm, wait, await; shared by threads; observed |
//! | [`transport`], [`channel`] | the traits that a transport implements; event channels: a flag, for threads, for tasks |
//! | [`sync`], [`contract`], [`guide`] | the memory orderings; the rules of behaviour, cited by number (`C4`); the guide to firmware |
//!
//! # Features
//! | feature | what it adds |
//! |---|---|
//! | `alloc` | queues on the heap, sized at run time (with compare-and-swap); the traits of [`transport`] for `Box<T>` |
//! | `std` | `alloc`, `channel::thread`, `Instant` as a [`Deadline`](transport::Deadline), errors as `std::io::Error` |
//! | `async` | `channel::waker`, for tasks of any executor, and `cq::CompletionStream` |
//! | `portable-atomic` | `async` with that crate's atomics also on targets with compare-and-swap; [others](guide::firmware) always use them |
//! | `serde` | `Serialize`, `Deserialize`: numbers, flags, keys, a transport's errors; not completions, nor a queue's errors |
//! | `defmt` | `Format` for completions, numbers, keys, positions, and every error |
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(loom), no_std)]
#![deny(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

pub mod channel;
#[doc = include_str!("../CONTRACT.md")]
pub mod contract {}
pub mod cq;
#[doc(alias = "NVMe")]
pub mod entry;
#[cfg(feature = "defmt")]
mod formats;
pub mod guide;
#[doc(hidden)]
pub mod macros;
pub mod observe;
/// The traits, for code that calls their methods: `use cq_core::prelude::*`. It adds no names.
///
/// ```
/// use cq_core::channel::thread;
/// use cq_core::prelude::*;
/// use cq_core::queue::HeapCq;
/// use cq_core::transport::{Armed, Notify, Woken};
/// use cq_core::wc::{Wc, WcStatus};
///
/// let (raiser, mut events) = thread::channel(1);
/// let (mut producer, mut consumer) = HeapCq::new(16)?.split_with(raiser);
/// assert_eq!(consumer.arm(Notify::Next)?, Armed::Armed); // the queue is empty: it is safe to sleep
/// producer.push(&Wc::new(7, WcStatus::SUCCESS, 5))?;
/// assert_eq!(events.block(None)?, Woken::Event);
/// assert_eq!(events.take_event()?, Some(consumer.key()));
/// assert_eq!(consumer.pop()?.map(|wc| wc.wr_id()), Some(7));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub mod prelude {
    pub use crate::transport::{Arm as _, Block as _, Capacity as _, Events as _, PollCq as _};
    pub use crate::transport::{RegisterWaker as _, Signal as _};
}
#[doc(alias("ring", "rte_ring"))]
pub mod queue;
#[cfg(any(target_has_atomic = "32"))]
// For targets with compare-and-swap. On others, share a CompletionQueue in a critical section.
pub mod shared_cq;
pub mod sync;
pub mod transport;
pub mod wc;
