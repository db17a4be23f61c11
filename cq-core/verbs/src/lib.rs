//! The verbs API over any transport of [`cq_core`]: requests, device traits, accounting of requests and of completion-queue
//! entries, connecting, several queues at once, tasks. `no_std`, with atomic loads and stores of 32 bits; what needs an operating
//! system has the feature `std`. Version 0.1, not on crates.io yet. A transport re-exports it: `transport_rxe_loop::verbs`.
//!
//! ```
//! use cq_core::transport::CqKey;
//! use cq_core::wc::{Wc, WcStatus};
//! use cq_testing::fake::{Call, Script};
//! use cq_verbs::ledger::{Array, Generation, Sends};
//! use cq_verbs::wr::SendWr;
//!
//! // A queue pair of any transport: here a script.
//! let qp = &mut &Script::<8>::new(CqKey { index: 0, generation: 1 });
//! // The ledger gives each request its `wr_id`, and signals as few as it can.
//! let mut sends = Sends::<&str, Array<4>>::fixed(Generation::new(1));
//! sends.post(qp, SendWr::send_inline(0, b"ping").unsignaled(), "a")?;
//! sends.post(qp, SendWr::send_inline(0, b"ping"), "b")?;
//!
//! // One completion retires both.
//! let Call::Send { wr_id, .. } = qp.calls()[1] else { unreachable!() };
//! let done: Vec<_> = sends.retire(&Wc::new(wr_id, WcStatus::SUCCESS, 5)).map(|sent| sent.token).collect();
//! assert_eq!(done, ["a", "b"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Modules
//! | module | contents |
//! |---|---|
//! | [`device`], [`setup`] | the traits of a device, for programs that run on every transport; their types and errors |
//! | [`wr`], [`post`], [`polling`], [`async_event`] | work requests, posting them; polling and arming; asynchronous events |
//! | [`tracked`], [`ledger`], [`budget`] | a token for each request in flight, selective signaling, no overrun (`tracked`, `budget`: with compare-and-swap) |
//! | [`handlers`], [`counters`], [`fault`] | a handler for each queue pair; counts of a queue; when a fault is injected |
//! | `exchange`, `cm` | connecting over a socket; by IP addresses, as librdmacm (`std`, Linux) |
//! | `queue_set`, `wait_set`, `descriptor` | serving several queues (`alloc`); sleeping on them and other descriptors (`std`, Linux) |
//! | `task` | requests, channels and events that tasks of tokio await (`tokio`, Unix) |
//! | [`rpma`] | the completion-queue calls of librpma |
//! | `guide` | guides: a first program, from C, poll-mode loops, events, sizing, servers, recovery (`std`, Linux) |
//! | [`sync`], [the contract](cq_core::contract) | the memory orderings; the rules that are cited by number (`Q4`) |
//!
//! Unsafe code is denied but in `task/channel`, for a descriptor that it owns, and in `device`, for `DevicePd::register`.
//!
//! # Features
//! | feature | what it adds |
//! |---|---|
//! | `alloc` | `queue_set`; `BTreeMap` for [`handlers`]; with compare-and-swap, shared budgets and counters |
//! | `std` | `alloc`, `HashMap` for [`handlers`], [errors as `std::io::Error`](setup#errors-and-stdio); on Linux `wait_set`, `descriptor`, `exchange`, `cm`, `guide` |
//! | `tokio` | `std`, `async` of `cq-core`, and on Unix `task` |
//! | `heapless` | the maps of `heapless` for [`handlers`] |
//! | `serde` | `Serialize` and `Deserialize` for [plain data](setup#serialization) |
//! | `defmt` | `Format` for requests and what they return, attributes, events, counts, and every error without `std` |
#![cfg_attr(docsrs, feature(doc_cfg))]
#![no_std]
#![deny(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(any(feature = "std", loom))]
extern crate std;

pub mod async_event;
#[cfg(any(target_has_atomic = "32"))]
// For targets with compare-and-swap. On others, count what is outstanding: see cq_core::guide::firmware.
pub mod budget;
#[doc(hidden)]
pub mod causes;
#[cfg(all(feature = "std", target_os = "linux"))]
#[doc(alias("librdmacm", "rdma_cm"))]
pub mod cm;
pub mod counters;
#[cfg(all(feature = "std", target_os = "linux"))]
#[doc(alias("epoll", "eventfd"))]
pub mod descriptor;
pub mod device;
#[cfg(all(feature = "std", target_os = "linux"))]
pub mod exchange;
pub mod fault;
#[cfg(all(feature = "std", target_os = "linux"))]
pub mod guide;
pub mod handlers;
#[cfg(feature = "std")]
mod io_errors;
pub mod ledger;
pub mod polling;
pub mod post;
/// The traits, for code that calls their methods: `use cq_verbs::prelude::*`. It adds no names.
pub mod prelude {
    pub use cq_core::prelude::*;

    pub use crate::async_event::{AsyncEvents as _, BlockAsync as _};
    pub use crate::device::{Destroy as _, Device as _, DeviceCq as _, DevicePd as _};
    pub use crate::device::{DeviceQp as _, DeviceSrq as _, Memory as _, Region as _};
    pub use crate::post::Post as _;
}
#[cfg(feature = "alloc")]
pub mod queue_set;
/// What the root of a transport has beside its own types.
#[doc(hidden)]
pub mod root {
    pub use cq_core::cq::CompletionQueue;
    pub use cq_core::wc::{Completed, Failed, Wc, WcFlags, WcOpcode, WcStatus};

    pub use crate::device::{CqBuilder, QpBuilder};
    pub use crate::prelude;
    pub use crate::setup::*;
    pub use crate::wr::{RecvWr, RemoteAddr, SendWr, Sge};
}
pub mod rpma;
mod sentences;
pub mod setup;
pub mod sync;
#[cfg(all(feature = "tokio", unix))]
#[doc(alias = "tokio")]
pub mod task;
mod trace_event;
#[cfg(any(target_has_atomic = "32"))]
// For targets with compare-and-swap. On others, post through the ledgers: Sends and Receives of cq_verbs::ledger.
pub mod tracked;
#[cfg(all(feature = "std", target_os = "linux"))]
pub mod wait_set;
pub mod wr;
