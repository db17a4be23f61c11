//! A completion-queue engine for poll-mode data planes: RDMA applications, packet and storage loops,
//! firmware that drains a DMA engine. `no_std`, no allocation, no system call, no lock but the one that
//! threads take which share a queue.
//!
//! ```
//! use cq_core::cq::CompletionQueue;
//! use cq_core::soft::SoftCq;
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
//! let mut room = [Wc::default(); 16];
//! for wc in cq.poll(&mut room)? {
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
//!   application                                      device (software)
//!        |                                                 |
//!   shared_cq   SharedCq<T>: threads take turns            |
//!   cq      CompletionQueue<T>: poll, arm, wait       soft::Producer: push
//!        |                                                 |
//!   transport   Poll Arm Events Block | Signal Post        |
//!        |                                                 |
//!   soft::Consumer ------------- soft ---------------------+
//!        |         \               |           (several producers: soft::shared)
//!   ring: entries   notify: arm   health: overrun      wc, wr: what is completed, what is posted
//!        |                                             async_event: what no completion tells
//!        |
//!   sync: atomics, fences, which pairs with which
//! ```
//!
//! Behind the feature `test-util`, for tests of the code above: `fake` is a transport that plays a script, `fault`
//! lets go wrong what could go wrong with any.
//!
//! # The protocol in ten lines
//! 1. The producer writes a completion into the next slot, the last word last, with Release; the slot's
//!    generation in that word says that it is published.
//! 2. The consumer looks at the generation of the next slot with Acquire; there is no index to fetch.
//! 3. It copies what is published, then gives the slots back by storing its head with Release.
//! 4. The producer loads that head, with Acquire, only when its last copy of it makes the ring look full.
//! 5. If the ring is full, the completion is dropped and the overrun latched, for ever.
//! 6. The consumer hands out what was stored, looks once more, then reports the overrun.
//! 7. To sleep, the consumer writes the arm word, fences, and looks at the slot again.
//! 8. The producer publishes, fences, and looks at the arm word: one of the two sees the other.
//! 9. If it is armed for this completion, the producer disarms, then raises the event.
//! 10. Without a channel, there is neither fence nor arm word on the way.
//!
//! Several producers ([`soft::shared`]) reserve slots first, by a compare-and-swap on one word, which also
//! closes the ring when it is full; the rest is the same.
//!
//! The rules of behaviour that the documentation cites (`C4`, `N6`) are the contract's:
//! [`verify/CONTRACT.md`](../../../verify/CONTRACT.md) in the repository says each, with its source.
#![cfg_attr(not(loom), no_std)]
#![deny(unsafe_code)]

pub mod async_event;
pub mod cq;
#[cfg(feature = "test-util")]
pub mod fake;
#[cfg(feature = "test-util")]
pub mod fault;
#[doc(hidden)]
pub mod foreign_number;
pub mod health;
pub mod notify;
pub mod ring;
pub mod setup;
#[cfg(target_has_atomic = "32")]
pub mod shared_cq;
pub mod soft;
#[doc(hidden)]
pub mod sync;
pub mod transport;
pub mod wc;
pub mod wr;
