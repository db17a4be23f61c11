//! A completion-queue engine for poll-mode data planes: RDMA applications, packet and storage loops, firmware that drains
//! a DMA engine. `no_std`, no allocation, no system call, and no lock but the one that threads take which share a queue.
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
//! // The device's side: a request is done.
//! device.push(&Wc::new(7, WcStatus::SUCCESS, 1).with_opcode(WcOpcode::RECV).with_byte_len(64))?;
//!
//! // The application's side: take what is done, up to a batch at a time.
//! let mut batch = [Wc::default(); 16];
//! for wc in cq.poll(&mut batch)? {
//!     match wc.result() {
//!         Ok(done) => assert_eq!((done.wr_id(), done.byte_len()), (7, 64)),
//!         Err(failed) => panic!("request {} failed: {failed}", failed.wr_id()),
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Where things are
//!
//! ```text
//!   application                                       device (software)
//!        |                                                  |
//!   shared_cq   SharedCq<T>: threads take turns             |
//!   cq          CompletionQueue<T>: poll, arm, wait         |
//!        |                                                  |
//!   transport   the seams: PollCq Arm Events Block | Signal Post
//!        |                                                  |
//!   queue::Consumer: poll ---------- slots ---------- queue::Producer: push
//!        |                 head, arm word, health           |
//!        |                                                  |
//!   sync        the atomic operations, which pairs with which
//! ```
//!
//! | module | what it is |
//! |---|---|
//! | [`wc`], [`wr`], [`setup`], [`async_event`] | the vocabulary: what is completed, what is posted, rights and capacities, what no completion tells |
//! | [`transport`] | the seams: what a transport implements |
//! | [`cq`], [`shared_cq`] | a completion queue over any transport: batch poll, arm and poll again, wait |
//! | [`channel`] | event channels that come with it: a flag, a thread's, a task's |
//! | [`queue`] | the software completion queue; [`queue::raw`] in memory of others, [`queue::mpsc`] for several producers |
//! | [`sync`] | which memory orderings it uses, and why |
//! | [`contract`] | the rules of behaviour that the documentation cites by number (`C4`, `N6`) |
//! | `testing` | a scripted transport and faults for any, for the tests of code that uses this crate (feature `test-util`) |
//!
//! # The protocol in ten lines
//! 1. The producer writes a completion into the next slot, the last word last, with Release; the slot's generation in
//!    that word says that it is published.
//! 2. The consumer looks at the generation of the next slot with Acquire; there is no index to fetch.
//! 3. It copies what is published, then gives the slots back by storing its head with Release.
//! 4. The producer loads that head, with Acquire, only when what it saw of it makes the ring look full.
//! 5. If the ring is full, `push` drops the completion and latches the overrun, for ever; `try_push` does nothing.
//! 6. The consumer hands out what was stored, looks once more, then reports the overrun.
//! 7. To sleep, the consumer writes the arm word, fences, and looks at the slot again.
//! 8. The producer publishes, fences, and looks at the arm word: one of the two sees the other.
//! 9. If it is armed for this completion, the producer disarms, then raises the event.
//! 10. Without a channel, there is neither fence nor arm word on the way.
//!
//! Several producers ([`queue::mpsc`]) reserve slots first, by a compare-and-swap on one word, which also closes the ring
//! when it is full; the rest is the same.
//!
//! # Features
//!
//! | feature | what it adds |
//! |---|---|
//! | none | all of the above, from `core` alone |
//! | `alloc` | queues of a size that is known at run time, whose sides own their storage |
//! | `std` | `alloc`, and `channel::thread`, which a thread sleeps on |
//! | `async` | `channel::waker`, and [`CompletionQueue`](cq::CompletionQueue)`::next_batch`, for tasks of any executor |
//! | `stream` | `async`, and `cq::CompletionStream` |
//! | `test-util` | `testing` |
#![cfg_attr(not(loom), no_std)]
#![deny(unsafe_code)]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

pub mod async_event;
#[doc = include_str!("../CONTRACT.md")]
pub mod contract {}
pub mod causes;
pub mod channel;
pub mod cq;
mod foreign_number;
pub mod queue;
pub mod setup;
#[cfg(target_has_atomic = "32")]
pub mod shared_cq;
pub mod sync;
#[cfg(feature = "test-util")]
pub mod testing;
pub mod transport;
pub mod wc;
pub mod wr;
