//! Poll-mode loops: threads that never sleep, and the buffers that they pass to each other.
//!
//! As in DPDK, a thread polls a device, passes each message through a ring to a worker, and posts the buffer again when it
//! comes back through another ring. Examples: `cargo run -p cq-core --example fan_in`; over a device,
//! `cargo run -p transport-rxe-loop --example forward`.
//!
//! | DPDK | here |
//! |---|---|
//! | `rte_ring` of one producer and one consumer | [`HeapCq`](cq_core::queue::HeapCq); of several producers, [`mpsc`](cq_core::queue::mpsc) |
//! | `rte_ring_enqueue_burst`, also `_mp_` | `push_batch`: stores a prefix |
//! | `rte_ring_enqueue_bulk` | none; one producer can check `available` |
//! | rings of several processes | [`raw`](cq_core::queue::raw): one producer, `Wc` only |
//! | `rte_eth_rx_burst` | [`poll`](cq_core::cq::CompletionQueue::poll), as `ibv_poll_cq` |
//! | mbuf, mempool | a slot of [`Slots`](crate::device::Slots); a shared receive queue (SRQ), [`TrackedSrq`](crate::tracked::TrackedSrq) |
//!
//! # Rings between threads
//! `cq-core` alone, with its feature `std`:
//!
//! ```
//! use std::error::Error;
//! use std::thread;
//!
//! use cq_core::cq::CompletionQueue;
//! use cq_core::queue::HeapCq;
//! use cq_core::transport::PollError;
//!
//! type Failure = Box<dyn Error + Send + Sync>;
//! const BUFFERS: usize = 256;
//!
//! fn main() -> Result<(), Failure> {
//!     // To the worker: the slot of a buffer, and its message's length. Back: the slot.
//!     let (mut to_worker, ring) = HeapCq::<[u32; 2]>::of_entries(BUFFERS)?.split();
//!     let (mut back, from_worker) = HeapCq::<u32>::of_entries(BUFFERS)?.split();
//!     let worker = thread::spawn(move || -> Result<u32, Failure> {
//!         let (mut ring, mut batch, mut bytes) = (CompletionQueue::new(ring), [[0; 2]; 32], 0);
//!         loop {
//!             match ring.poll(&mut batch) {
//!                 Ok([]) => thread::yield_now(),
//!                 Ok(messages) => {
//!                     for [slot, len] in messages {
//!                         bytes += len;
//!                         back.push(slot)?;
//!                     }
//!                 }
//!                 Err(PollError::Closed) => return Ok(bytes),
//!                 Err(error) => return Err(error.into()),
//!             }
//!         }
//!     });
//!
//!     let (mut from_worker, mut batch) = (CompletionQueue::new(from_worker), [0; 32]);
//!     let (mut free, mut sent) = (Vec::from_iter(0..BUFFERS as u32), 0);
//!     while sent < 10_000 {
//!         for slot in free.drain(..) {
//!             to_worker.push(&[slot, 64])?;
//!             sent += 1;
//!         }
//!         free.extend(from_worker.poll(&mut batch)?);
//!     }
//!
//!     drop(to_worker);
//!     while let Ok(slots) = from_worker.poll(&mut batch) {
//!         free.extend(slots);
//!     }
//!     assert_eq!(free.len(), BUFFERS);
//!     assert_eq!(worker.join().map_err(|_| "the worker panicked")??, 64 * sent);
//!     Ok(())
//! }
//! ```
//!
//! - **Entries** are numbers, arrays, or plain old data of the program's own ([`entry`](cq_core::entry)). A packet
//!   travels as its slot or its address (`Box::into_raw(packet) as u64`, `Box::from_raw` in `unsafe`). Pushes are
//!   Release, polls Acquire: the receiver may access it. A dropped ring frees no packets.
//! - **A ring with as many entries as there are buffers is never full**: [`push`](cq_core::queue::Producer::push) fails only
//!   if the other thread is gone, or a buffer was pushed twice. A smaller one needs
//!   [`push_batch_or_wait`](cq_core::queue::Producer::push_batch_or_wait), or
//!   [`push_batch`](cq_core::queue::Producer::push_batch) and other work meanwhile. At most one ring of a circle may be
//!   smaller: two threads that wait for each other's rings deadlock.
//! - **A ring has one consumer.** Several workers have two rings each.
//! - **`mpsc`** has its own `HeapCq` and `PushError`. A producer that is preempted while it stores an entry stalls the
//!   consumer.
//! - **Batches:** poll up to 32. Larger buffers save little, and delay the first message. Pushing batches saves time only in
//!   a ring with a channel or several producers. What did not fit stays:
//!
//! ```
//! # use cq_core::queue::*;
//! # fn push(ring: &mut Producer<'_, u32>, burst: &mut Vec<u32>) -> Result<(), BatchError> {
//! let stored = match ring.push_batch(burst) {
//!     Ok(()) => burst.len(),
//!     Err(BatchError { stored, why: PushError::Full }) => stored,
//!     Err(error) => return Err(error),
//! };
//! burst.drain(..stored);
//! # Ok(()) }
//! ```
//!
//! # The consumer
//! `fan_in` serves many producers, processes or threads, by queue pairs with a shared receive queue. Its worker is as
//! above, with entries `[slot, queue pair, length]`.
//!
//! ```
//! use std::collections::HashMap;
//! use std::error::Error;
//! use std::os::unix::net::UnixStream;
//! use std::time::Duration;
//! use std::{mem, thread};
//!
//! use cq_core::cq::CompletionQueue;
//! use cq_core::queue::{Consumer, Producer};
//! use cq_core::wc::Wc;
//! use cq_verbs::budget::Budgeted;
//! use cq_verbs::device::{Device, DeviceQp, Slots};
//! use cq_verbs::exchange::has_ended;
//! use cq_verbs::tracked::{TrackedQp, TrackedSrq};
//!
//! /// Runs until the producers of all sockets have ended. The worker reads `slots`, too.
//! fn fan_in<D: Device>(
//!     device: &D,
//!     pd: &D::Pd,
//!     slots: &Slots<D::Memory>,
//!     sockets: Vec<UnixStream>,
//!     to_worker: &mut Producer<'_, [u32; 3]>,
//!     from_worker: &mut CompletionQueue<Consumer<'_, u32>>,
//! ) -> Result<(), Box<dyn Error + Send + Sync>> {
//!     let (port, count) = (device.port(1)?, slots.count());
//!     let mut cq = CompletionQueue::new(Budgeted::new(device.cq(count as u32).create()?));
//!     let handle = cq.get_ref().handle();
//!     let mut srq = TrackedSrq::create(pd, &[&handle], count as u32)?;
//!     srq.fill(count, |slot| slots.sge(slot), |slot| slot)?;
//!     let mut peers = HashMap::new();
//!     for socket in sockets {
//!         let mut qp = TrackedQp::<D::Qp, ()>::create_with(pd, [&handle; 2], |init| {
//!             init.srq(srq.get_ref()).caps(init.caps.max_send_wr(0))
//!         })?;
//!         qp.connect_over(&socket, &port, Duration::from_secs(5))?;
//!         peers.insert(qp.get_ref().number(), (qp, socket, false));
//!     }
//!
//!     let (mut back, mut wcs, mut empty) = ([0; 32], [Wc::default(); 32], 0_u64);
//!     while !peers.is_empty() {
//!         // Free buffers, posted as one list.
//!         let free = from_worker.poll(&mut back)?;
//!         let slot = |nth: usize| free[nth] as usize;
//!         srq.fill(free.len(), |nth| slots.sge(slot(nth)), slot)?;
//!
//!         let batch = cq.poll(&mut wcs)?;
//!         for wc in batch {
//!             let Some(received) = srq.retire(wc) else { continue };
//!             let slot = received.token;
//!             match received.result {
//!                 Ok(message) => to_worker.push(&[slot as u32, wc.qp_num(), message.byte_len()])?,
//!                 Err(_) => {
//!                     srq.post_recv(&[slots.sge(slot)], slot)?;
//!                     peers.entry(wc.qp_num()).and_modify(|peer| peer.2 = true);
//!                 }
//!             }
//!         }
//!
//!         empty = if free.is_empty() && batch.is_empty() { empty + 1 } else { 0 };
//!         if empty > 100 {
//!             thread::yield_now();
//!         }
//!         if empty % 1024 == 1023 {
//!             // One that had ended before the last empty polls has nothing left in the queue.
//!             peers.retain(|_, (_, socket, gone)| !mem::replace(gone, has_ended(socket)));
//!         }
//!     }
//!     Ok(())
//! }
//! ```
//!
//! - **A completion of a receive belongs to the shared queue**, even if the queue pair that it names is gone. Offer
//!   each [`Wc`](cq_core::wc::Wc) to [`TrackedSrq::retire`](crate::tracked::TrackedSrq::retire) first, and the others
//!   to their queue pair; here the queue pairs send nothing. [`handlers`](crate::handlers) looks a queue pair up once
//!   for each run of its completions.
//! - **Dropped in this order:** queue pairs, shared receive queue, completion queue, memory.
//! - **How full a queue was:** [`counters`](crate::counters); of a ring,
//!   [`measure_high_water`](cq_core::queue::Producer::measure_high_water).
//!
//! # Empty polls
//! | threads | after an empty poll |
//! |---|---|
//! | a core for each | [`spin_loop`](core::hint::spin_loop) |
//! | more than cores, producers on this host included | `yield_now`: one that spins keeps its core for a time slice, and the sender waits |
//! | idle for milliseconds, or on battery | arm and sleep ([events](super::events)); a channel adds a fence to pushes |
//!
//! A consumer that sleeps is woken by its device, not by its worker: if all buffers are with the worker, no message
//! arrives. Give the ring back a channel ([`split_with`](cq_core::queue::HeapCq::split_with)), too, or sleep with a deadline of
//! a millisecond.
//!
//! # Backpressure
//! Nothing is dropped: a slow worker keeps buffers, receives are missing, and reliable (RC) senders wait.
//!
//! - **A producer** posts by [`post_send_or_reap`](crate::tracked::TrackedQp::post_send_or_reap), which polls while its
//!   send queue is full; `post_send` returns the token with [`QueueFull`](crate::post::WrError::QueueFull).
//! - **Without a receive** an RC sender retries slowly (RNR), and fails where `rnr_retry` is not 7
//!   ([Q7](cq_core::contract#q7)). Which sender gets the next receive of an empty shared queue is unspecified.
//! - **[Credits](super::sizing#receive-queues)** avoid both: at most `BUFFERS / PRODUCERS` messages of each producer are
//!   under way, and the consumer, which needs sends for it, returns a credit when it has posted the buffer.
//!
//! # The end
//! - **Of a thread:** dropping its `Producer` closes the ring ([S2](cq_core::contract#s2)): the other thread polls what is
//!   stored, then gets [`Closed`](cq_core::transport::PollError::Closed). After `fan_in`, drop `to_worker`, join the worker,
//!   and drop `from_worker` last. A thread that fails drops its ends, and the others' polls and pushes fail
//!   ([S3](cq_core::contract#s3)).
//! - **Of a producer:** its socket ends, even if it is killed. A message under way never arrives in part, and its
//!   receive stays for others ([Q9](cq_core::contract#q9)).
//! - **Of its host,** or without a socket, nothing is reported: RC has no keepalive. Give the queue pair one send for a
//!   [probe](super::recovery#a-peer-that-has-died), which fails with RETRY_EXC.
//! - **Of a queue pair:** after its end, poll until a poll finds nothing, which retires the receives that it consumed.
//!   Then drop it. On hardware, wait for its [last receive](#the-last-receive) before that poll. To use it again,
//!   [drain and reset](super::recovery#draining) it.
//!
//! # The last receive
//! A queue pair in ERR may have consumed receives of the shared queue that have not completed yet. The asynchronous event
//! QP_LAST_WQE_REACHED says that it consumes no more ([Q9](cq_core::contract#q9)). Take it by
//! [`wait_async`](crate::async_event::BlockAsync::wait_async), with a deadline of a second: Soft-RoCE of Linux 6.1 never
//! raises it.
//!
//! Then poll the completion queue empty, and drop the queue pair. Without the event, a receive that has not completed by then
//! never does: its token stays in the ledger, as [outstanding](crate::tracked::TrackedSrq::outstanding). If too many are
//! missing, replace the shared receive queue, once its queue pairs are gone.
