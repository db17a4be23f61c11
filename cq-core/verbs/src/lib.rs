//! The verbs API of [`cq_core`], for every transport: requests, device traits, accounting of requests and of completion-queue
//! entries, connecting, several queues at once, tasks. `no_std`; what needs an operating system has the feature `std`. It needs
//! atomic loads and stores of 32 bits; [`budget`] and [`tracked`] also need compare-and-swap.
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
//!
//! | module | contents |
//! |---|---|
//! | [`wr`], [`post`] | work requests, and the trait of what posts them |
//! | [`polling`] | what is polled and armed for completions |
//! | [`setup`], [`device`] | setup types; the traits of a device: creating and connecting, for programs that run on every transport |
//! | [`async_event`] | asynchronous events of a device |
//! | [`ledger`], [`budget`], [`tracked`] | requests in flight with their tokens, selective signaling; reservations of completion-queue entries; queue pairs that keep both |
//! | [`handlers`], [`counters`] | a handler for each queue pair; an observer that counts |
//! | [`fault`] | when a fault is injected, and the random numbers for it |
//! | [`rpma`] | the completion-queue calls of librpma, and what its other calls are here |
//! | `queue_set`, `wait_set`, `descriptor` | several completion queues served by one thread; asleep on them, on other descriptors and a stop handle; a channel with a descriptor (feature `alloc`; the others `std`, Linux) |
//! | `exchange`, `cm` | connecting over a socket; by IP addresses, through a connection manager as librdmacm is one (feature `std`, Linux) |
//! | `task` | channels, asynchronous events and own requests that tasks of tokio await (feature `tokio`, Unix) |
//! | [`sync`] | the memory orderings and their rationale |
//! | `guide` | guides (feature `std`, Linux): a first program, from C, poll-mode loops, events, sizing, a server of many clients, one of tokio, recovery |
//!
//! The rules that are cited by number (`Q4`) are those of [the contract](cq_core::contract).
//!
//! Unsafe code is denied but in `task/channel`, where a descriptor that it owns is open until it is dropped, and in `device`,
//! where `DevicePd::register` passes its caller's promise on.
//!
//! # Features
//! | feature | what it adds |
//! |---|---|
//! | `alloc` | `queue_set`; `BTreeMap` for [`handlers`]; with compare-and-swap, budgets and counters that several own |
//! | `std` | `alloc`, `HashMap` for [`handlers`], errors as `std::io::Error`; on Linux `wait_set`, `descriptor`, `exchange`, `cm` and the guides |
//! | `tokio` | `std`, `async` of `cq-core`, and on Unix `task` |
//! | `heapless` | the maps of `heapless` for [`handlers`] |
//! | `serde` | `Serialize` and `Deserialize` for plain data: numbers, flags, attributes, capacities, endpoints and addresses of [`setup`], operations, SGEs, events, refused requests, and counts; not for requests, which borrow memory, and errors that hold texts of the program |
//! | `defmt` | `defmt::Format` for what firmware logs: requests and what they return, attributes, events, every error without `std`, counts |
//!
//! # Errors and `std::io`
//! With `std` each error converts to a `std::io::Error`, so that `?` returns it from a function of `io::Result`. The error is
//! inside, with its sentence and its causes (`get_ref`, `downcast`); the kind is that of its error number. `raw_os_error` has
//! a number only of an [`Errno`](setup::Errno). What an error carries back, as the token of a refused post, is dropped.
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
pub mod cm;
pub mod counters;
#[cfg(all(feature = "std", target_os = "linux"))]
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
/// The traits, for code that calls their methods: `use cq_verbs::prelude::*`. It names nothing.
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
pub mod task;
mod trace_event;
#[cfg(any(target_has_atomic = "32"))]
// For targets with compare-and-swap. On others, post through the ledgers: Sends and Receives of cq_verbs::ledger.
pub mod tracked;
#[cfg(all(feature = "std", target_os = "linux"))]
pub mod wait_set;
pub mod wr;
