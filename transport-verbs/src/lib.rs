//! Real RDMA hardware for `cq-core`, through libibverbs and librdmacm: InfiniBand, RoCE, iWARP, and the
//! kernel's Soft-RoCE.
//!
//! ```no_run
//! use transport_verbs::{Access, Context, RecvWr, SendWr, Wc};
//!
//! let context = Context::open_first()?;
//! let port = context.port(1)?;
//! let pd = context.alloc_pd()?;
//! let mut cq = context.cq(16).create()?;
//! let mut alice = pd.qp(&cq).create()?;
//! let mut bob = pd.qp(&cq).create()?;
//! alice.connect(&port, &bob.endpoint(&port))?;
//! bob.connect(&port, &alice.endpoint(&port))?;
//!
//! let region = pd.allocate(4096, Access::LOCAL_WRITE | Access::REMOTE_WRITE)?;
//! region.write(0, b"hello")?;
//! bob.post_recv(&[RecvWr::new(1, &[region.sge(1024..1088)?])])?;
//! alice.post_send(&[
//!     SendWr::write(2, &[region.sge(..5)?], region.remote(2048)?).unsignaled(),
//!     SendWr::send(3, &[region.sge(..5)?]),
//! ])?;
//!
//! let (mut wcs, mut done) = ([Wc::default(); 4], 0);
//! while done < 2 {
//!     for wc in cq.poll(&mut wcs)? {
//!         println!("{:?}", wc.result()?);
//!         done += 1;
//!     }
//! }
//! let mut back = [0; 5];
//! region.read(2048, &mut back)?;
//! assert_eq!(&back, b"hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Without hardware it runs on the loopback's C ABI: with `LD_PRELOAD=librxe_loop_verbs.so`, the first device is
//! `loop0`. This crate's tests run there, with `VERBS_DEVICE=loop0`, and on Soft-RoCE.
//!
//! The types, calls and errors are those of `transport-rxe-loop`, so that a program moves to hardware by another `use`
//! line and another device name. Both implement [`cq_verbs::device`] and [`cq_verbs::cm`], for programs that are generic. Only
//! this transport has [`QueuePair::psn`] and [`Cq::as_raw`]. Only the loopback has its options, limits and faults,
//! memory windows, completion queues that ignore overruns, `init_ah_from_wc`, and `batch` and `connect_to` of a queue
//! pair. The causes in [`OpenError`] differ. Peers on other hosts exchange their [`Endpoint`]s first: over TCP
//! ([`cq_verbs::exchange`]), or by any other means; or librdmacm connects them ([`cm`]).
//!
//! # Modules
//!
//! ```text
//!   device, attributes, port     Context: open, attributes, GIDs     error    opening a device
//!     |
//!     +-- pd, mr                 protection domains, memory regions
//!     +-- cq, channel            poll, arm, resize; wait
//!     +-- async_event            asynchronous events
//!     +-- qp, srq, ah            posting, states (attr), refusal of a request explained
//!           connect, cm         connecting queue pairs
//!   ................................ safe code above, except that `register` passes its caller's promise on
//!   sys    one module for each object: calls libibverbs, keeps alive what the object depends on, destroys it
//!          layout   what C and Rust agree on, asserted field by field
//!          ext      operations that an older library may lack
//!          reports  the events of a queue               polling  which function polls it
//!          memory   pages that a device may write to at any time
//! ```
//!
//! # Unsafe code
//! For users there is one unsafe function, [`ProtectionDomain::register`]: the device writes to the caller's memory, which
//! the borrow checker does not see. [`ProtectionDomain::allocate`] is safe: its memory is read and written by copies.
//! Inside, only `sys` calls C. Numbers that a device or a driver writes (states, statuses, opcodes, event types, counts)
//! are kept as numbers and validated; none becomes a Rust enum.
//!
//! # Lifetimes
//! An object keeps alive what it depends on: a queue pair its completion queues, its protection domain and its shared
//! receive queue, a completion queue its channel, all of them the context. Handles can be dropped in any order; an
//! object is destroyed with its last user. `destroy` destroys it now, and returns the handle if something still uses it
//! ([Q11](cq_core::contract#q11)). The keys of a region are invalid when dropping it returns.
//!
//! # Forks
//! A forked child inherits the handles of its parent, but not the objects, and can use none of them. What it drops stays the
//! parent's: it destroys nothing, and frees no memory of the device. Memory of [`ProtectionDomain::allocate`] is not inherited
//! (MADV_DONTFORK): to read or write it fails in the child. A child that uses RDMA opens the device itself. This holds for the
//! C library's `fork`: a child of `clone(2)` or `vfork(2)` must execute another program at once.
//!
//! Memory of the program that is [registered](ProtectionDomain::register) is the program's: where the kernel does not copy
//! pinned pages for a child, before Linux 5.12, call `ibv_fork_init(3)` first, or apply MADV_DONTFORK to it.
//!
//! # Threads
//! All handles are `Send` and `Sync`. Polling, posting and taking events take `&mut self`. Different queues need no lock between
//! them. Several threads poll one queue through [`SharedCq`](cq_core::shared_cq::SharedCq), whose lock is visible. Polling
//! and posting allocate nothing and take no lock of this crate.
//!
//! # Overrun
//! A queue is known to have overrun as soon as one of two things says so, whichever comes first. Once it is empty, every
//! poll fails with [`PollError::Overrun`](cq_core::transport::PollError::Overrun) ([O3](cq_core::contract#o3)).
//!
//! | what | said by |
//! |---|---|
//! | the device's CQ_ERR is taken from the [`Context`]'s asynchronous events, by any thread | every device, also for other faults of the queue, which are as permanent |
//! | `ibv_poll_cq` returns `-EOVERFLOW` | the provider of Chelsio's cxgb4, the loopback's C ABI |
//!
//! Any other negative number is [`PollError::Device`](cq_core::transport::PollError::Device) until the event is taken: the
//! meaning is the provider's own. [Recovery](cq_verbs::guide::recovery) replaces the queue all the same. With
//! most cards an overrun queue is only empty: a program that takes no asynchronous events does not notice the overrun.
//!
//! # Events for `tracing`
//! With the feature `tracing`, a subscriber of [`tracing`](https://docs.rs/tracing) is told what happens around messages, by
//! the thread that does it. Posting and polling have no events:
//!
//! ```no_run
//! use transport_verbs::Context;
//!
//! tracing_subscriber::fmt().with_max_level(tracing::Level::DEBUG).init();
//! let context = Context::open_first()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | level | event | fields |
//! |---|---|---|
//! | debug | device opened; an object created, destroyed | `device`, `qp_num`, `cq`, `srq`, `pd`, `rkey`, `channel` (its descriptor), and its capacities |
//! | debug | queue pair changed its state, as the program asked | `qp_num`, `from`, `state` |
//! | debug | event of the connection manager | `event`, `status` |
//! | warn | queue pair failed, as an asynchronous event says that was taken | `qp_num`, `state`, `reason` |
//! | error | completion queue overrun, as above | `cq` |
//! | error or debug | another asynchronous event that was taken | `event`, `element` |
//! | warn | object not destroyed: the driver refused | `error` |
//!
//! A device reports failed requests by their completions alone: an [observer](cq_core::observe) of the
//! queue can write those to a log, as the example `logging` of `cq-core` does.
//!
//! # Limitations
//! BIND_MW, ATOMIC_WRITE and FLUSH are refused with [`WrError::Unsupported`](cq_verbs::post::WrError::Unsupported):
//! `rdma-sys` lacks the operands of the first, and is older than the others. SEND with invalidate and LOCAL_INV are
//! supported. Completion queues that ignore overruns are not: `rdma-sys` lacks the call.
//!
//! # Pitfalls of libibverbs that are handled
//! - An event of a type that the headers do not know is read as a number.
//! - What an event points to is not read, since other code may have created it with the same context: it is compared with
//!   the queues of this crate.
//! - Some calls return an error number, others -1 with errno: each failure has the right one, also where an object is not
//!   destroyed.
//! - Every event is acknowledged, those of completion queues in batches, at the latest when their queue is destroyed. So
//!   destroying an object never hangs, even if another thread takes its events at the same time.
//! - `ibv_poll_cq` does not set errno: [`PollError::Device`](cq_core::transport::PollError::Device) has its return value.
//! - `rdma-sys` finds no extended operation, because it compares with a wrong number. They are looked up here, and used for
//!   attributes, ports and moderation.
//! - The layouts that `rdma-sys` writes by hand are asserted at compile time. A test compares them, and every constant, with
//!   a C compiler's.
//! - On RoCE the first GID is seldom the right one: [`Context::port`] chooses the one that most likely reaches peers.
//! - READ and atomics hang some devices if `max_rd_atomic` is 0: they are refused when posted
//!   ([Q7](cq_core::contract#q7)).
//! - Optional access flags that the kernel does not know are left out instead of refused
//!   ([Q10](cq_core::contract#q10)).
//! - On a kernel without RDMA, listing devices returns none instead of an error.
//! - The build script names a missing package before `rdma-sys` fails.
//!
//! The rules that the documentation cites (`C8`, `Q5`) are those of [`cq_core::contract`], which has the source of each.
//!
//! # Features
//!
//! | feature | what it adds |
//! |---|---|
//! | `tokio` | `cq_verbs::task`: what tasks of tokio await |
//! | `tracing` | events of objects, states and asynchronous events for `tracing` |
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(unsafe_code)]

mod ah;
mod async_event;
mod attr;
mod attributes;
mod channel;
pub mod cm;
mod connect;
mod cq;
mod datagram;
mod device;
mod error;
mod mr;
mod pd;
mod port;
mod psn;
mod qp;
mod refusal;
mod srq;
mod sys;
mod trace;

#[doc(no_inline)]
pub use cq_verbs as verbs;
#[doc(inline)]
pub use cq_verbs::root::*;

pub use crate::ah::AddressHandle;
pub use crate::channel::CompletionChannel;
pub use crate::cq::{Cq, CqHandle};
pub use crate::datagram::{Destination, Directed};
pub use crate::device::{Context, devices};
pub use crate::error::OpenError;
pub use crate::mr::{MemoryRegion, OwnedRegion};
pub use crate::pd::ProtectionDomain;
pub use crate::qp::QueuePair;
pub use crate::srq::SharedReceiveQueue;

cq_verbs::device_traits! {
    Context, ProtectionDomain, OwnedRegion, MemoryRegion, CompletionChannel, Cq, CqHandle, SharedReceiveQueue,
    AddressHandle, QueuePair, Directed
}
