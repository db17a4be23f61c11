//! A completion-queue engine for poll-mode data planes: RDMA applications, packet and storage loops, firmware that
//! drains a DMA engine. It is `no_std`. Without optional features it does not allocate, makes no system calls, and
//! takes no lock outside `shared_cq`.
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
//!         Err(failed) => panic!("request {} failed: {failed}", failed.wr_id()),
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Modules
//!
//! ```text
//!   application                                       device (software)
//!        |                                                  |
//!   tracked     queue pairs with ledger and budget          |
//!   ledger      requests in flight, their tokens            |
//!   wait_set    WaitSet<T, C>: several, and descriptors     |
//!   queue_set   QueueSet<T, C>: several, in turn            |
//!   shared_cq   SharedCq<T>: shared by threads              |
//!   rpma        librpma's calls                             |
//!   cq          CompletionQueue<T>: poll, arm, wait         |
//!   budget      Budgeted<T>: entries are reserved           |
//!        |                                                  |
//!   (observe    Observed<T, O>: counted, logged)            |
//!        |                                                  |
//!   transport   traits: PollCq Arm Events Block | Signal Post
//!        |                                                  |
//!   queue::Consumer: poll ---------- slots ---------- queue::Producer: push
//!        |                 head, arm word, health           |
//!        |                                                  |
//!   sync        the atomic operations and how they pair
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`wc`], [`wr`], [`setup`], [`async_event`] | completions, work requests, setup types, asynchronous events |
//! | [`transport`] | the traits that a transport implements: polling, arming, sleeping, posting |
//! | [`device`] | the traits of a device: creating and connecting, for programs that run on every transport |
//! | `exchange` | connecting queue pairs over a TCP or Unix socket (feature `poll`) |
//! | `cm` | connecting them by IP addresses, through a connection manager as librdmacm is one; the trait that it implements (feature `poll`) |
//! | [`tracked`] | queue pairs that keep the two of the next row, drain and reset |
//! | [`ledger`], [`budget`] | requests in flight with their tokens, selective signaling; reservations of completion-queue entries |
//! | `task` | channels, asynchronous events and own requests that tasks of tokio await (feature `tokio`) |
//! | [`cq`], [`shared_cq`] | a completion queue over any transport: batch poll, arm and poll again, wait |
//! | `queue_set`, `wait_set` | several completion queues served by one thread; asleep on them, on other descriptors and a stop handle (features `alloc`, `poll`) |
//! | [`handlers`] | completions handed to a handler for each queue pair |
//! | [`rpma`] | the completion-queue calls of librpma, and what its other calls are here |
//! | [`observe`], [`counters`] | a queue whose polls, arms and events are observed; an observer that counts them |
//! | `logging` | an observer that writes what fails to a log (feature `log`) |
//! | [`channel`] | event channels: a flag, one for threads, one for tasks, one with a descriptor |
//! | [`queue`] | software completion queues; [`queue::raw`] in shared memory, [`queue::mpsc`] for several producers |
//! | [`sync`] | the memory orderings and their rationale |
//! | [`causes`] | prints an error with its causes |
//! | [`guide`] | guides: a first program, from C, poll-mode loops, events, a server of many clients, one of tokio, sizing, recovery, firmware, testing, a transport of your own |
//! | [`contract`] | the rules of behaviour, cited by number in the documentation (`C4`, `N6`) |
//! | `testing` | a scripted transport, fault injection, and the rules as checks for your own transport (feature `test-util`) |
//!
//! # The protocol
//! In brackets, the file under `queue` that implements it.
//!
//! 1. The producer writes a completion into the next slot. It stores the last word last, with Release; the generation
//!    in that word marks the slot as published. (`producer`, `slot`)
//! 2. The consumer loads the generation of the next slot with Acquire. There is no producer index to load. (`consumer`)
//! 3. The consumer copies the published slots, then releases them by storing its head with Release. (`consumer`)
//! 4. The producer loads the head with Acquire only when its cached copy makes the ring look full. (`producer`)
//! 5. If the ring is full, `push` drops the completion and latches the overrun permanently; `try_push` stores nothing.
//!    (`health`)
//! 6. The consumer returns the stored completions, checks the slots once more, then reports the overrun. (`consumer`)
//! 7. Before it sleeps, the consumer writes the arm word, issues a fence, and checks the slot again. (`arm`, `consumer`)
//! 8. The producer publishes, issues a fence, and checks the arm word. At least one side sees the other's write.
//!    (`producer`)
//! 9. If the queue is armed for this completion, the producer disarms it, then raises the event. (`arm`)
//! 10. A queue without a channel uses neither the fences nor the arm word. (`channel`)
//! 11. Dropping the last producer closes the queue. Dropping the consumer abandons it, and every later push fails. A raw
//!     queue outlives its sides. (`health`, `owner`)
//!
//! Several producers ([`queue::mpsc`]) first reserve slots by a compare-and-swap on one word (`mpsc/reservation`). The
//! same word closes the ring when it is full. The rest is the same.
//!
//! # Unsafe code
//! The crate denies it, except in these files:
//!
//! | file | what its unsafe code relies on |
//! |---|---|
//! | `queue/{ring, slot, producer, consumer, raw/tags}`, `queue/mpsc/{producer, consumer}` | one producer owns a slot between the head's release and the publication, one consumer after it |
//! | `queue/{mod, heap}`, `queue/mpsc/{mod, heap}` | the sides that they make are the only ones, and keep the storage alive |
//! | `queue/raw` | what the caller of its constructor guarantees; all words are atomic |
//! | `sync/plain` | plain copies of words that nobody else accesses |
//! | `wc` | a completion is plain bytes |
//! | `shared_cq` | there is one guard at a time |
//! | `task/channel` | a descriptor that it owns is open until it is dropped |
//! | `device` | nothing: `ProtectionDomain::register` passes its caller's promise on |
//! | `testing` | a raw queue consists of atomic words, which any number of sides may share |
//!
//! # Features
//!
//! | feature | what it adds |
//! |---|---|
//! | none | everything that the rows below do not list, from `core` alone |
//! | `alloc` | `queue_set`; `BTreeMap` for [`handlers`]; on targets with compare-and-swap heap-allocated queues, sized at run time, whose sides own their storage, and counters and `waker` channels that several own |
//! | `std` | `alloc`, and `channel::thread`, which a thread sleeps on; `HashMap` for [`handlers`] |
//! | `poll` | `std`, and on Linux alone `wait_set` and `channel::descriptor`, by poll(2), epoll(7) and eventfd(2), and `exchange` and `cm` |
//! | `heapless` | the maps of `heapless` for [`handlers`] |
//! | `async` | `channel::waker`, a channel for tasks of any executor |
//! | `stream` | `async`, and `cq::CompletionStream` |
//! | `tokio` | `async` and `poll`, and on Unix `task` |
//! | `portable-atomic` | `async` on targets without compare-and-swap |
//! | `serde` | `Serialize` and `Deserialize` for the types of [`setup`], requests, events, errors and counts |
//! | `defmt` | `defmt::Format` for completions, requests, numbers, keys, events, errors and counts: [below](#logs-of-firmware) |
//! | `log` | `logging` |
//! | `test-util` | `testing` |
//!
//! # Logs of firmware
//! `Debug` puts its texts, and the code that assembles them, into the flash. With `defmt` the host has them:
//!
#![cfg_attr(feature = "defmt", doc = "```")]
#![cfg_attr(not(feature = "defmt"), doc = "```ignore")]
//! use cq_core::transport::PollError;
//! use cq_core::wc::Wc;
//!
//! fn log(polled: Result<&[Wc], PollError>) {
//!     match polled {
//!         Ok(batch) => batch.iter().filter_map(|wc| wc.result().err()).for_each(|failed| {
//!             defmt::warn!("{}", failed); // Failed { wr_id: 7, status: RETRY_EXC_ERR, qp_num: 17, vendor_err: 0x0 }
//!         }),
//!         Err(error) => defmt::error!("{}", error), // Overrun { dropped: Some(3) }
//!     }
//! }
//! ```
//!
//! | built for thumbv7em, optimized for size | bytes of flash |
//! |---|---|
//! | a firmware that polls a queue | 1480 |
//! | and logs completions and errors by `defmt` | 3042 |
//! | by `Debug` | 8152 |
#![cfg_attr(not(loom), no_std)]
#![deny(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

pub mod async_event;
#[doc = include_str!("../CONTRACT.md")]
pub mod contract {}
#[cfg(target_has_atomic = "32")]
pub mod budget;
pub mod causes;
pub mod channel;
#[cfg(all(feature = "poll", target_os = "linux"))]
pub mod cm;
pub mod counters;
pub mod cq;
mod cq_key;
pub mod device;
#[cfg(all(feature = "poll", target_os = "linux"))]
pub mod exchange;
mod foreign_number;
#[cfg(feature = "defmt")]
mod formats;
pub mod guide;
pub mod handlers;
pub mod ledger;
#[cfg(feature = "log")]
pub mod logging;
pub mod observe;
mod own;
pub mod queue;
#[cfg(feature = "alloc")]
pub mod queue_set;
pub mod rpma;
mod sentences;
pub mod setup;
#[cfg(target_has_atomic = "32")]
pub mod shared_cq;
pub mod sync;
#[cfg(all(feature = "tokio", unix))]
pub mod task;
#[cfg(feature = "test-util")]
pub mod testing;
mod trace_event;
#[cfg(target_has_atomic = "32")]
pub mod tracked;
pub mod transport;
#[cfg(all(feature = "poll", target_os = "linux"))]
pub mod wait_set;
pub mod wc;
pub mod wr;
