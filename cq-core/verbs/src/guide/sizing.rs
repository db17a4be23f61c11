//! How large completion queues, send and receive queues and memory have to be, and how often to signal.
//!
//! # Completion queues
//! A completion queue that is full when a completion comes overruns: it fails for good, and its queue pairs go to ERR
//! ([O2](cq_core::contract#o2)–[O4](cq_core::contract#o4)). It never does if it has an entry for each request that may be
//! outstanding on it ([O7](cq_core::contract#o7)). What counts:
//!
//! | of | entries |
//! |---|---|
//! | a send queue | one for each request, **signaled or not**: after a failure each completes with WR_FLUSH ([Q2](cq_core::contract#q2)) |
//! | a receive queue | one for each receive |
//! | a shared receive queue | one for each of its receives, **on each completion queue** that one of its queue pairs has: all may come in by the same |
//!
//! A request is outstanding from its posting until a completion that covers it was *polled*, not until it was executed. So
//! the sum is over `max_send_wr` and `max_recv_wr`, or what the program really keeps outstanding, if that is less and it
//! is sure of it. [`TrackedQp`](crate::tracked::TrackedQp) is: it never posts more than it has reserved.
//!
//! # How many connections share a completion queue
//! For queue pairs with `S` sends and `R` receives each, and one completion queue of capacity `C` for both:
//! `C / (S + R)` of them. With a queue for receives alone, `C / R`. With a shared receive queue of `N` receives that
//! completes on it, `(C - N) / S`.
//!
//! | completion queue | each connection | connections |
//! |---|---|---|
//! | 65,536, for receives alone | 64 receives | 1,024 |
//! | 4,096, for both | 32 sends, 16 receives | 85 |
//! | 4,096, for both, with a shared receive queue of 1,024 | 32 sends | 96 |
//! | 52,429, the most of the loopback | 128 and 128, the [usual](crate::setup::QpCaps::USUAL) | 204 |
//!
//! A program need not do this sum. [`Budgeted`](crate::budget::Budgeted) does it: each queue pair reserves its entries when
//! it is created, and one too many is refused instead of overrunning the queue later.
//!
//! ```
//! use cq_core::cq::CompletionQueue;
//! use cq_core::queue::HeapCq;
//! use cq_core::transport::CqKey;
//! use cq_core::wc::{Wc, WcStatus};
//! use cq_testing::fake::Script;
//! use cq_verbs::budget::{Budgeted, Reserved};
//!
//! // On a device: `Budgeted::new(device.cq(4096).create()?)`.
//! let (mut device, consumer) = HeapCq::new(4096)?.split();
//! let mut cq = CompletionQueue::new(Budgeted::with_capacity(consumer, 4096));
//! let budget = cq.get_ref().budget().clone();
//!
//! // 1,024 receives of a shared receive queue, then as many connections of 32 sends as fit. Each is a script here.
//! let script = Script::<1>::new(CqKey { index: 0, generation: 1 });
//! let create = |entries| Reserved::create([(&budget, entries)], || Ok::<_, ()>(&script));
//! let _shared = create(1024)?;
//! let mut connections: Vec<_> = (0..).map_while(|_| create(32).ok()).collect();
//! assert_eq!((connections.len(), budget.available()), (96, 0));
//!
//! // A connection ends. What it has completed may be in the queue still, so its entries are free only once a poll has
//! // found the queue empty.
//! device.push(&Wc::new(1, WcStatus::SUCCESS, 7))?;
//! drop(connections.pop());
//! assert_eq!(create(32).unwrap_err().missing(), 32);
//! let mut buffer = [Wc::default(); 16];
//! while !cq.poll(&mut buffer)?.is_empty() {}
//! connections.push(create(32)?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! With [`TrackedQp::create`](crate::tracked::TrackedQp::create) the queue pair and its reservations are one, as in
//! [`tracked`](crate::tracked); `cargo run -p transport-rxe-loop --example kv_store` serves four clients by a queue that has
//! entries for four, and refuses a fifth until one is gone. [Server](super::server) explains it.
//!
//! **RESET and destroying.** Completions from before are still in the queue. Their entries are free once the queue was
//! empty, as above. [`reset`](crate::tracked::TrackedQp::reset) and dropping a `TrackedQp` account for it.
//!
//! **Resizing.** [`resize`](crate::device::DeviceCq::resize) keeps every completion ([Q12](cq_core::contract#q12)). On a
//! `Budgeted` queue the new entries can be reserved at once; a capacity below what is reserved is refused with
//! [`Reserved`](crate::setup::ResizeError::Reserved). Some devices can't resize: make a new queue instead, as in
//! [recovery](super::recovery).
//!
//! **Latency.** A large queue costs memory, and nothing else: a poll does not look at what is empty. Poll up to 32
//! completions at a time.
//!
//! # Send queues, and how often to signal
//! An unsignaled request has no completion of its own on success, and its slot comes back when a later completion is
//! polled ([Q5](cq_core::contract#q5), [C9](cq_core::contract#c9)). A queue of unsignaled requests alone fills up for good. So
//! at least one in each `max_send_wr` is signaled. In practice it is one in each half queue: while the first half is being
//! completed, there are slots in the second, and the sender does not stop.
//!
//! [`Sends`](crate::ledger::Sends), which a `TrackedQp` has, signals
//!
//! - each request that is not [`unsignaled`](crate::wr::SendWr::unsignaled),
//! - the one that ends a half queue since the last signaled one,
//! - the one that takes the last slot.
//!
//! So a program posts all requests unsignaled, except the last one before it waits. What it costs to signal rarely is time:
//! the tokens, and with them the buffers, of unsignaled requests come back late. With `max_send_wr` 64, a buffer is
//! free at the latest after 31 further requests.
//!
//! `max_send_wr` itself is what is under way at once: rate times round trip. At 2 million messages per second and a
//! round trip of 10 µs that is 20; twice as many, for both halves, makes 40: ask for 64.
//!
//! # Receive queues
//! A receive is needed for each SEND, and for each WRITE with immediate data. If there is none, the sender of a reliable
//! connection waits (RNR), and fails with RNR_RETRY_EXC where `rnr_retry` is not 7 ([Q7](cq_core::contract#q7)). On hardware it
//! tries again after a time, so it is slow; on the loopback a receive that is posted has it run at once. On UC and UD the
//! message is lost.
//!
//! **Credits** avoid both: a sender keeps no more messages under way than its peer has receives. The peer posts a receive
//! again before it answers, and an answer is a credit. Without answers, a count of receives in each message, or an
//! immediate, does. For requests that are answered:
//!
//! - A client keeps at most as many requests outstanding as the server has `RECEIVES`. It posts a receive for each answer
//!   before it sends the request.
//! - `SENDS` is **twice** as many, at both ends. An answer that has arrived still holds its place in the send queue, until a
//!   later completion was polled. With `SENDS` equal to the requests of a client, the server finds its send queue full
//!   now and then, and has to keep the answer until a slot is free: [server](super::server#requests-and-answers).
//!
//! **Shared receive queues** are for many connections of which few are busy: receives for 1,000 connections of 16 each
//! would be 16,000 buffers; shared, 1,024 may do. A program that posts each receive again as it is polled needs nothing
//! more. One that keeps the buffers for a while, and refills by [`TrackedSrq::fill`](crate::tracked::TrackedSrq::fill),
//! is told when: after [`arm_limit`](crate::device::DeviceSrq::arm_limit) the event SRQ_LIMIT_REACHED comes
//! once when fewer than the limit are left, and then has to be requested again ([Q9](cq_core::contract#q9)). A limit is
//! what arrives while the program refills: a quarter of the queue is a usual choice.
//!
//! # Memory
//! A buffer for each receive and for each send that is not inline: `connections × (S + R) × size`. 85 connections of 48
//! buffers of 4 KiB are 16 MiB. Register it once, as one region, and use [`sge`](crate::device::Region::sge) of its parts:
//! a registration costs a system call and an entry of the device's table. Small messages go inline, up to
//! [`max_inline`](crate::setup::QpCaps::max_inline), and need no buffer.
//!
//! On hardware, registered memory is pinned: `ulimit -l` limits it. In the loopback it is shared memory, which containers
//! often limit to 64 MiB.
//!
//! # Page faults and huge pages
//! New memory has no pages yet. Each comes when it is first used, by a page fault: 65,536 of them for 256 MiB. So the first
//! messages of a program are slow. [`allocate_with`](crate::device::DevicePd::allocate_with) takes
//! [`MemoryOptions`](crate::setup::MemoryOptions):
//!
//! - [`prefault`](crate::setup::MemoryOptions::prefault) moves the page faults to the allocation. Nothing is saved but the
//!   way into the kernel and back; it is for latency.
//! - [`huge_pages`](crate::setup::MemoryOptions::huge_pages) asks for pages of 2 MiB: 128 page faults instead of 65,536, and
//!   one entry of the TLB where there were 512. It is for large memory that is used at random, and for large registrations.
//!   Memory that is touched here and there takes more of the system's: 2 MiB for each touch.
//!
//! ```
//! use cq_verbs::device::{Device, DevicePd};
//! use cq_verbs::setup::{Access, MemoryOptions, RegisterError};
//!
//! /// Memory for all buffers of a program, ready for the first message.
//! fn buffers<D: Device>(pd: &D::Pd, len: usize) -> Result<D::Memory, RegisterError> {
//!     pd.allocate_with(len, Access::LOCAL_WRITE, &MemoryOptions::new().huge_pages().prefault())
//! }
//! ```
//!
//! Milliseconds for 256 MiB, in a virtual machine with two cores and Linux 6.18, the least of five
//! (`cargo run --release -p bench --example first_use -- 256`):
//!
//! | memory of | options | allocation | first use | later uses |
//! |---|---|---|---|---|
//! | the loopback, `/dev/shm` as usual (`huge=never`) | none | 64 | 80 | 1.1 |
//! | | prefault | 132 | 1.2 | 0.7 |
//! | | huge pages, with prefault or without | 130 | 0.7 | 0.6 |
//! | the loopback, `/dev/shm` with `huge=within_size` | any, or none | 13 | 0.9 | 0.6 |
//! | `transport-verbs`, registered by a device that makes all pages present | none | 88 | 1.4 | 1.1 |
//! | | huge pages | 17 | 1.1 | 1.1 |
//!
//! A use writes one word in each 4 KiB. Of 10 million dependent reads at random, each took 150 ns in huge pages and 170 ns in
//! ordinary ones. Several threads did not prefault faster than one. What applies when:
//!
//! - **Loopback.** Its memory is reserved by the allocation, and then gathered into huge pages, which needs no
//!   configuration with Linux 6.1 or later. With root's rights, `mount -o remount,huge=within_size /dev/shm` makes all of it
//!   ten times faster, without any option.
//! - **Hardware.** The pages are anonymous, and huge where `/sys/kernel/mm/transparent_hugepage/enabled` says `madvise`, as it
//!   usually does, or `always`. Registering pins them, and so prefaults them in any case.
//! - **Virtual machines.** Where the host takes back memory that its guest does not use (free page reporting of a balloon),
//!   the first use waits for the host as well. Here this made 256 MiB take 0.4 to 4 seconds instead of 0.1, in
//!   pages of either size. No option avoids it; prefaulting has it happen while the program starts.
//!
//! # What the device really has
//! A device may have more than was asked for, and reports it: [`capacity`](cq_core::transport::Capacity::capacity) of a completion
//! queue ([O1](cq_core::contract#o1)), [`caps`](crate::device::DeviceQp::caps) of a queue pair. Cards round up to powers of
//! two; Soft-RoCE makes them 2ᵏ − 1. So a queue that is too small may work on one device and overrun on another.
//!
//! The loopback reports what was asked for, and stores up to two and a half times as many before it overruns, unless
//! `RXE_LOOP_STRICT=1` is in the environment: then it overruns with the first completion that exceeds the capacity. Tests
//! should run so: the guide to tests of `cq-testing`.
//!
//! # Limits
//! [`DeviceAttr`](crate::setup::DeviceAttr) has those of a device, and an error names the one that was exceeded
//! ([`LimitKind`](crate::setup::LimitKind)). Of the loopback:
//!
//! | | |
//! |---|---|
//! | [`max_cqe`](crate::setup::DeviceAttr::max_cqe) | 52,429 |
//! | [`max_qp_wr`](crate::setup::DeviceAttr::max_qp_wr), [`max_srq_wr`](crate::setup::DeviceAttr::max_srq_wr) | 16,384 |
//! | [`max_sge`](crate::setup::DeviceAttr::max_sge), inline bytes | 16, 256 |
//! | queue pairs, completion queues | 2,048, and 1,024 |
//! | bytes for all tables and queues of the fabric | 53 MiB; a queue pair of usual capacities with a completion queue for it takes 47 KiB |
//!
//! `RXE_LOOP_LIMITS="queue_pairs=4096,completion_queues=64,bytes=256M"`, or `OpenOptions::limits` with `Limits`, changes
//! the last two lines for a new fabric: 4,096 queue pairs that share 64 completion queues. `cqtop` shows how full a live
//! fabric is, and the high water mark of each completion queue.
//!
//! On hardware, a queue pair and its queues are memory of the card's driver; `max_qp` and `max_cq` are seldom the limit,
//! caches of the card are: hundreds of busy connections are usual, many thousands are slow.
