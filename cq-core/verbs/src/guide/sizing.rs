//! Capacities of completion, send and receive queues, how often to signal, and memory.
//!
//! | queue | capacity |
//! |---|---|
//! | completion | the sum of `max_send_wr` and `max_recv_wr` of its queue pairs, signaled or not |
//! | send | twice rate × round trip; signal one request in each half |
//! | receive | the requests that the peer may have outstanding |
//!
//! # Completion queues
//! A completion queue that is full when a completion comes overruns: it fails permanently, and its queue pairs go to ERR
//! ([O2](cq_core::contract#o2)–[O4](cq_core::contract#o4)). It never overruns if it has an entry for each request that may be
//! outstanding ([O7](cq_core::contract#o7)):
//!
//! | of | entries |
//! |---|---|
//! | a send queue | one for each request, **signaled or not**: after a failure each completes with WR_FLUSH ([Q2](cq_core::contract#q2)) |
//! | a receive queue | one for each receive |
//! | a shared receive queue (SRQ) | one for each of its receives, **on each completion queue** of its queue pairs |
//!
//! A request is outstanding until a completion that covers it was *polled*, not until it was executed. A program may count less
//! than `max_send_wr` and `max_recv_wr` if it never posts more. [`TrackedQp`](crate::tracked::TrackedQp) never posts more than
//! it has reserved.
//!
//! # How many connections share a completion queue
//! With capacity `C`, and `S` sends and `R` receives for each queue pair:
//!
//! | queue | connections | example |
//! |---|---|---|
//! | for both | `C / (S + R)` | 4,096 / (32 + 16) = 85 |
//! | for receives only | `C / R` | 32,768 / 64 = 512 |
//! | for both, with a shared receive queue of `N` | `(C - N) / S` | (4,096 - 1,024) / 32 = 96 |
//!
//! [`Budgeted`](crate::budget) does this sum: creating a queue pair reserves its entries, and one too many is refused. The
//! [server](super::server) uses it.
//!
//! - [`resize`](crate::device::DeviceCq::resize) loses no completion ([Q12](cq_core::contract#q12)). On a `Budgeted` queue the
//!   new entries can be reserved at once; a capacity below what is reserved is refused
//!   ([`Reserved`](crate::setup::ResizeError::Reserved)). Some devices can't resize:
//!   [replace](super::recovery#a-completion-queue-that-has-overrun) the queue.
//! - A large queue costs memory, not time. Poll up to 32 completions at a time.
//!
//! # Send queues, and how often to signal
//! An unsignaled request has no completion of its own on success. Its entry is free when a later completion is polled
//! ([Q5](cq_core::contract#q5), [C9](cq_core::contract#c9)), so a queue of unsignaled requests alone stays full forever. Signal
//! one in each half queue: while the first half completes, the second has free entries.
//!
//! [`Sends`](crate::ledger::Sends), which a `TrackedQp` has, signals each request
//!
//! - that is not [`unsignaled`](crate::wr::SendWr::unsignaled),
//! - that ends a half queue since the last signaled one,
//! - that takes the last entry.
//!
//! So post all requests unsignaled, except the last one before you wait. Tokens and buffers of unsignaled requests are
//! returned late: with `max_send_wr` 64, after up to 31 further requests.
//!
//! `max_send_wr` is twice rate × round trip, for both halves. At 2 million messages per second and 10 µs that is 40: use 64.
//!
//! # Receive queues
//! Each SEND, and each WRITE with immediate data, takes a receive. Without one, the sender of a reliable connection waits (RNR,
//! receiver not ready). It fails with RNR_RETRY_EXC if `rnr_retry` is not 7 ([Q7](cq_core::contract#q7)); `connect` sets 7. On
//! hardware the sender waits for the RNR timer, on the loopback until a receive is posted. On UC and UD the message is lost.
//!
//! **Credits** avoid RNR: a sender has no more messages outstanding than its peer has receives. The peer posts a receive before
//! it answers, and the answer is a credit. Without answers, send a count of receives in a message or as immediate data. With
//! answers:
//!
//! - A client has at most as many requests outstanding as the server has receives. It posts a receive for the answer before
//!   each request.
//! - Both ends have **twice** as many send entries. An answer that has arrived still [occupies its
//!   entry](super::server#requests-and-answers) until a later completion was polled.
//!
//! **Shared receive queues (SRQ)** are for many connections of which few are busy: 1,000 connections of 16 receives need 16,000
//! buffers; shared, 1,024 may do. Post each receive again as it is polled, or refill in batches
//! ([`TrackedSrq::fill`](crate::tracked::TrackedSrq::fill)) after [`arm_limit`](crate::device::DeviceSrq::arm_limit):
//! SRQ_LIMIT_REACHED comes once when fewer receives than the limit are left ([Q9](cq_core::contract#q9)). A quarter of the
//! queue is a usual limit.
//!
//! # Memory
//! `connections × (S + R) × size` bytes: 85 connections of 48 buffers of 4 KiB are 16 MiB. Allocate one region, and take the
//! [`sge`](crate::device::Region::sge) of its parts; each registration costs a system call and an entry of the device. Sends of
//! up to [`max_inline`](crate::setup::QpCaps::max_inline) bytes can be inline, and need no buffer.
//!
//! On hardware, registered memory is pinned, and limited by `ulimit -l`. The loopback's is shared memory, which containers
//! often limit to 64 MiB.
//!
//! # Page faults and huge pages
//! New memory has a page fault at the first use of each page: 65,536 for 256 MiB.
//! [`allocate_with`](crate::device::DevicePd::allocate_with) avoids them later:
//!
//! ```
//! use cq_verbs::device::{Device, DevicePd};
//! use cq_verbs::setup::{Access, MemoryOptions, RegisterError};
//!
//! fn buffers<D: Device>(pd: &D::Pd, len: usize) -> Result<D::Memory, RegisterError> {
//!     pd.allocate_with(len, Access::LOCAL_WRITE, &MemoryOptions::new().huge_pages().prefault())
//! }
//! ```
//!
//! - [`prefault`](crate::setup::MemoryOptions::prefault) moves the page faults to the allocation, for latency.
//! - [`huge_pages`](crate::setup::MemoryOptions::huge_pages) asks for pages of 2 MiB, for large regions and random access. Each
//!   that is touched takes 2 MiB of the system's memory.
//!
//! Milliseconds for 256 MiB, in a virtual machine with two cores and Linux 6.18
//! (`cargo run --release -p bench --example first_use -- 256`):
//!
//! | memory of | options | allocation | first use |
//! |---|---|---|---|
//! | the loopback, `/dev/shm` with `huge=never`, the usual | none | 64 | 80 |
//! | | prefault | 132 | 1.2 |
//! | | huge pages | 130 | 0.7 |
//! | the loopback, `/dev/shm` with `huge=within_size` | any, or none | 13 | 0.9 |
//! | `transport-verbs` | none | 88 | 1.4 |
//! | | huge pages | 17 | 1.1 |
//!
//! - **Loopback**: huge pages need Linux 6.1. As root, without option: `mount -o remount,huge=within_size /dev/shm`.
//! - **Hardware**: huge pages need `madvise` or `always` in `/sys/kernel/mm/transparent_hugepage/enabled`. Registering prefaults.
//! - **Virtual machines** whose host takes back unused memory (free page reporting): the first use takes seconds. Prefault at
//!   start.
//!
//! # Limits of the device
//! A device may have more than was requested, and reports it: [`capacity`](cq_core::transport::Capacity::capacity) of a
//! completion queue ([O1](cq_core::contract#o1)), [`caps`](crate::device::DeviceQp::caps) of a queue pair. So a queue that is too
//! small may work on one device and overrun on another. The loopback stores up to 2.5 times as many completions as requested;
//! test with `RXE_LOOP_STRICT=1`.
//!
//! [`DeviceAttr`](crate::setup::DeviceAttr) has the limits; an error names the one that was exceeded
//! ([`LimitKind`](crate::setup::LimitKind)). Of the loopback:
//!
//! | | |
//! |---|---|
//! | [`max_cqe`](crate::setup::DeviceAttr::max_cqe) | 52,429 |
//! | [`max_qp_wr`](crate::setup::DeviceAttr::max_qp_wr), [`max_srq_wr`](crate::setup::DeviceAttr::max_srq_wr) | 16,384 |
//! | [`max_sge`](crate::setup::DeviceAttr::max_sge), inline bytes | 16, 256 |
//! | queue pairs, completion queues | 2,048, 1,024 |
//! | bytes for all tables and queues | 53 MiB; 47 KiB for a queue pair of usual capacities with its completion queue |
//!
//! `RXE_LOOP_LIMITS="queue_pairs=4096,completion_queues=64,bytes=256M"`, or `OpenOptions::limits`, changes the last two rows
//! for a new fabric. `cqtop` shows how full a fabric is. On hardware, the card's caches are the limit: hundreds of busy
//! connections are usual, many thousands are slow.
