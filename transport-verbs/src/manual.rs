//! What concerns several types: devices in software, differences from the loopback, lifetimes, forks, threads, overrun, events for `tracing`,
//! limitations, pitfalls of libibverbs, unsafe code.
//!
//! # Without a device
//! The program runs on the loopback's C ABI: with `LD_PRELOAD=librxe_loop_verbs.so`, built by
//! `cargo build --release -p rxe-loop-verbs` in the repository, the first device is `loop0`. On any Linux host with a network
//! interface, the kernel's Soft-RoCE is one: `rdma link add rxe0 type rxe netdev eth0`, as root.
//!
//! # Differences from the loopback
//! A program moves by another `use` line and another device name. Generic ones use [`cq_verbs::device`] and
//! [`cq_verbs::cm`], which both transports implement.
//!
//! | only in | |
//! |---|---|
//! | `transport-verbs` | [`QueuePair::psn`](crate::QueuePair::psn), [`Cq::as_raw`](crate::Cq::as_raw) |
//! | `transport-rxe-loop` | its options, limits and faults; memory windows; completion queues that ignore overruns; `init_ah_from_wc`; `batch` and `connect_to` of a queue pair |
//! | each | the causes in its `OpenError` |
//!
//! # Lifetimes
//! An object keeps alive what it depends on: a queue pair its completion queues, its protection domain and its shared
//! receive queue, a completion queue its channel, all of them the context. Handles can be dropped in any order; an
//! object is destroyed with its last user. `destroy` destroys it now, and returns the handle if something still uses it
//! ([Q11](cq_core::contract#q11)). The keys of a region are invalid when dropping it returns.
//!
//! # Forks
//! A forked child inherits the handles of its parent, but not the objects, and can use none of them. What it drops stays the
//! parent's: it destroys nothing, and frees no memory of the device. Memory of
//! [`allocate`](crate::ProtectionDomain::allocate) is not inherited (MADV_DONTFORK): reading or writing it fails in the child.
//! A child that uses RDMA opens the device itself. This holds for the C library's `fork`: a child of `clone(2)` or `vfork(2)`
//! must execute another program at once.
//!
//! Memory that the program [registered](crate::ProtectionDomain::register) is not protected: where the kernel does not copy
//! pinned pages for a child, before Linux 5.12, call `ibv_fork_init(3)` first, or apply MADV_DONTFORK to it.
//!
//! # Threads
//! All handles are `Send` and `Sync`. Polling, posting and taking events take `&mut self`. Different queues need no lock between
//! them. Several threads poll one queue through [`SharedCq`](cq_core::shared_cq::SharedCq), whose lock is visible. Polling
//! and posting allocate nothing and take no lock of this crate.
//!
//! # Overrun
//! An overrun is known as soon as one of these reports it. Once the queue is empty, every poll fails with
//! [`PollError::Overrun`](cq_core::transport::PollError::Overrun) ([O3](cq_core::contract#o3)).
//!
//! | report | devices |
//! |---|---|
//! | CQ_ERR, once any thread has taken it from the [`Context`](crate::Context#asynchronous-events)'s asynchronous events | all, also for other faults of the queue, which are as permanent |
//! | `ibv_poll_cq` returns `-EOVERFLOW` | those of Chelsio's cxgb4, the loopback's C ABI |
//!
//! Any other negative number is [`PollError::Device`](cq_core::transport::PollError::Device) until the event is taken: its
//! meaning is the provider's. [Recovery](cq_verbs::guide::recovery) replaces the queue all the same. With most cards an
//! overrun queue seems empty: a program that takes no asynchronous events does not notice the overrun.
//!
//! # Events for `tracing`
//! With the feature `tracing`, a subscriber of [`tracing`](https://docs.rs/tracing) receives these events, in the thread that
//! causes them. Posting and polling have none.
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
//! | warn | queue pair failed, by an asynchronous event that was taken | `qp_num`, `state`, `reason` |
//! | error | completion queue [overrun](#overrun) | `cq` |
//! | error or debug | another asynchronous event that was taken | `event`, `element` |
//! | warn | object not destroyed: the driver refused | `error` |
//!
//! A device reports failed requests by their completions alone: an [observer](cq_core::observe) of the
//! queue can write those to a log, as the example `logging` of `cq-core` does.
//!
//! # Limitations
//! - It was tested on Linux' Soft-RoCE driver, not yet on a network card.
//! - iWARP is not supported: there the kernel's connection manager itself brings queue pairs to RTS, and connecting by
//!   [`cm`](crate::cm) fails with [`CmError::Unexpected`](crate::cm::CmError::Unexpected).
//! - BIND_MW, ATOMIC_WRITE and FLUSH are refused with [`WrError::Unsupported`](cq_verbs::post::WrError::Unsupported):
//!   `rdma-sys` lacks the operands of the first, and is older than the others.
//! - Completion queues that ignore overruns are not supported: `rdma-sys` lacks the call.
//!
//! # Pitfalls of libibverbs that are handled
//! - An event of a type that the headers do not know is read as a number.
//! - The object of an event is not dereferenced, since other code may have created it with the same context: its address is
//!   compared with the queues of this crate.
//! - Some calls return an error number, others -1 with errno: each failure has the right one, also where an object is not
//!   destroyed.
//! - Every event is acknowledged, those of completion queues in batches, at the latest when their queue is destroyed. So
//!   destroying an object never hangs, even if another thread takes its events at the same time.
//! - `ibv_poll_cq` does not set errno: [`PollError::Device`](cq_core::transport::PollError::Device) has its return value.
//! - `rdma-sys` finds no extended operation, because it compares with a wrong number. They are looked up here, and used for
//!   attributes, ports and moderation.
//! - The layouts that `rdma-sys` writes by hand are asserted at compile time. A test compares them, and every constant, with
//!   a C compiler's.
//! - On RoCE the first GID is seldom the right one: [`Context::port`](crate::Context::port) chooses the one that most likely
//!   reaches peers.
//! - READ and atomics hang some devices if `max_rd_atomic` is 0: they are refused when posted
//!   ([Q7](cq_core::contract#q7)).
//! - Optional access flags that the kernel does not know are left out instead of refused
//!   ([Q10](cq_core::contract#q10)).
//! - On a kernel without RDMA, listing devices returns none instead of an error.
//!
//! # Unsafe code
//! For users there is one unsafe function, [`ProtectionDomain::register`](crate::ProtectionDomain::register): the device writes
//! to the caller's memory, which the borrow checker does not see. [`allocate`](crate::ProtectionDomain::allocate) is safe: its
//! memory is read and written by copies. Inside, only the private module `sys` calls C. Numbers that a device or a driver writes
//! (states, statuses, opcodes, event types, counts) are kept as numbers and validated; none becomes a Rust enum.
