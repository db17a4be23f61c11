//! A completion-queue engine for poll-mode data planes: RDMA applications, packet and storage loops, firmware that drains a
//! DMA engine. It is `no_std`. Without optional features it does not allocate, makes no system call, and takes no lock outside
//! [`shared_cq`].
//!
//! ```
//! use cq_core::cq::CompletionQueue;
//! use cq_core::queue::SoftCq;
//! use cq_core::wc::{Wc, WcOpcode, WcStatus};
//!
//! let mut storage = SoftCq::<64>::new();
//! let (mut device, consumer) = storage.split();
//! let mut cq = CompletionQueue::new(consumer);
//!
//! // Device side: a request has completed.
//! device.push(&Wc::new(7, WcStatus::SUCCESS, 1).with_opcode(WcOpcode::RECV).with_byte_len(64))?;
//!
//! // Application side: poll up to 16 completions at a time.
//! let mut batch = [Wc::default(); 16];
//! for wc in cq.poll(&mut batch)? {
//!     match wc.result() {
//!         Ok(done) => assert_eq!((done.wr_id(), done.byte_len()), (7, 64)),
//!         Err(failed) => panic!("{failed}"),
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! In firmware the same queue is a static, and an interrupt handler has the producer ([guide](guide::firmware)):
//!
//! ```
//! use cq_core::queue::{Producer, SoftCq};
//! use static_cell::ConstStaticCell;
//!
//! static QUEUE: ConstStaticCell<SoftCq<16, u32>> = ConstStaticCell::new(SoftCq::of_entries());
//!
//! fn on_interrupt(queue: &mut Producer<'static, u32>, transfer: u32) {
//!     let _ = queue.push_or_overrun(&transfer); // an overrun is latched: the main loop gets it
//! }
//!
//! let (mut producer, mut consumer) = QUEUE.take().split();
//! on_interrupt(&mut producer, 7);
//! assert_eq!(consumer.pop(), Ok(Some(7)));
//! ```
//!
//! # Modules
//!
//! ```text
//!   application: cq::CompletionQueue<T>: poll, arm, wait       device (software)
//!        |       (shared_cq::SharedCq: shared by threads)           |
//!        |       (observe::Observed: seen by an observer)           |
//!   transport    traits: PollCq Arm Events Block | Signal           |
//!        |                                                          |
//!   queue::Consumer: poll ------------ slots ------------ queue::Producer: push
//!                         head, arm word, end  
//!   sync         the atomic operations and how they pair
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`wc`], [`entry`] | completions with the layout of `ibv_wc`; any entry |
//! | [`cq`], [`shared_cq`], [`observe`] | a completion queue over any transport: batch poll, arm and poll again, wait; shared by threads; observed |
//! | [`transport`] | the traits that a transport implements, and their errors |
//! | [`queue`] | software completion queues; [`queue::raw`] in shared memory, [`queue::mpsc`] for several producers |
//! | [`channel`] | event channels: a flag, one for threads, one for tasks |
//! | [`sync`] | the memory orderings and their rationale |
//! | [`contract`], [`guide`] | the rules of behaviour, cited by number (`C4`, `N6`); a guide to firmware |
//!
//! # The protocol
//! 1. The producer writes an entry into the next slot. It stores one word last, or a byte beside the slot, with Release; the
//!    generation in it marks the slot as published. The consumer loads it with Acquire: there is no producer index.
//! 2. The consumer copies published entries, or reads them in place, then releases their slots: it stores its head with Release.
//!    The producer loads the head with Acquire only when its cached copy makes the ring look full.
//! 3. If the ring is full, `push` stores nothing; `push_or_overrun` drops the completion and latches the overrun for good. The
//!    consumer returns what is stored, checks the slots once more, then reports the overrun.
//! 4. Before it sleeps, the consumer stores the arm word, issues a fence, and checks the slot again; the producer publishes, issues
//!    a fence, and checks the arm word. At least one sees the other's store. It is disarmed first, then the event is raised.
//! 5. Dropping the last producer closes the queue; dropping the consumer abandons it, and every later push fails.
//!
//! # Features
//! | feature | what it adds |
//! |---|---|
//! | `alloc` | on targets with compare-and-swap heap-allocated queues, sized at run time, whose sides own their storage; the traits of [`transport`] for `Box<T>` |
//! | `std` | `alloc`, and `channel::thread`, which a thread sleeps on; `Instant` as a [`Deadline`](transport::Deadline), the errors of a transport and of waiting as `std::io::Error` |
//! | `async` | `channel::waker`, a channel for tasks of any executor, and `cq::CompletionStream` |
//! | `portable-atomic` | `async` with the atomics of [`portable-atomic`](https://docs.rs/portable-atomic) on every target. Without compare-and-swap it has them always, and the program enables that crate's `critical-section` or, on one core, `unsafe-assume-single-core` |
//! | `serde` | `Serialize` and `Deserialize` for numbers, flags, keys, and the errors of a transport; not for completions, whose undefined fields have no values, nor for the errors of a queue |
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
pub mod entry;
#[cfg(feature = "defmt")]
mod formats;
pub mod guide;
#[doc(hidden)]
pub mod macros;
pub mod observe;
/// The traits, for code that calls their methods: `use cq_core::prelude::*`. It names nothing.
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
pub mod queue;
#[cfg(any(target_has_atomic = "32"))]
// For targets with compare-and-swap. On others, share a CompletionQueue in a critical section.
pub mod shared_cq;
pub mod sync;
pub mod transport;
pub mod wc;
