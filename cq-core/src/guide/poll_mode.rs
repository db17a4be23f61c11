//! Poll-mode loops: threads that never sleep, the buffers that travel between them, and their end.
//!
//! The program of this page is a fan-in. Producers, processes or threads, send to one consumer thread, by queue pairs
//! that share a receive queue and a completion queue. The consumer passes each message through a software ring to a
//! worker thread, which gives the buffer back through another ring; then it receives again. Whole programs: `cargo run
//! -p cq-core --example fan_in`, and over a device `cargo run -p transport-rxe-loop --example forward`.
//!
//! # Rings between threads
//! A ring is a [`HeapCq`](crate::queue::HeapCq), with a [`Producer`](crate::queue::Producer) for one thread and a
//! [`Consumer`](crate::queue::Consumer) for another. It carries [`Wc`](crate::wc::Wc)s, in which a program puts [what
//! it likes](crate::queue#a-ring-between-threads): here the slot of the buffer in `wr_id`, the producer in `qp_num`,
//! the length in `byte_len`. What does not fit stays in a table of the buffer's slot.
//!
//! ```
//! use std::error::Error;
//! use std::thread;
//!
//! use cq_core::cq::CompletionQueue;
//! use cq_core::queue::{Consumer, HeapCq, Producer};
//! use cq_core::transport::PollError;
//! use cq_core::wc::{Wc, WcStatus};
//!
//! /// The worker: serves what the ring brings, and gives the buffers back. It ends when the other thread does.
//! fn work(
//!     ring: Consumer<'_>,
//!     mut back: Producer<'_>,
//!     mut serve: impl FnMut(&Wc),
//! ) -> Result<(), Box<dyn Error + Send + Sync>> {
//!     let (mut ring, mut buffer) = (CompletionQueue::new(ring), [Wc::default(); 32]);
//!     loop {
//!         match ring.poll(&mut buffer) {
//!             Ok([]) => thread::yield_now(),
//!             Ok(batch) => {
//!                 batch.iter().for_each(&mut serve);
//!                 back.push_batch(batch)?;
//!             }
//!             Err(PollError::Closed) => return Ok(()),
//!             Err(error) => return Err(error.into()),
//!         }
//!     }
//! }
//!
//! const BUFFERS: u32 = 8;
//! let (mut to_worker, ring) = HeapCq::new(BUFFERS)?.split();
//! let (back, from_worker) = HeapCq::new(BUFFERS)?.split();
//! let worker = thread::spawn(move || {
//!     let mut bytes = 0;
//!     work(ring, back, |wc| bytes += wc.result().unwrap().byte_len()).map(|()| bytes)
//! });
//!
//! // Ten thousand messages in eight buffers.
//! let (mut from_worker, mut buffer) = (CompletionQueue::new(from_worker), [Wc::default(); 32]);
//! let (mut free, mut sent) = (Vec::from_iter(0..u64::from(BUFFERS)), 0);
//! while sent < 10_000 {
//!     for slot in free.drain(..) {
//!         to_worker.push(&Wc::new(slot, WcStatus::SUCCESS, 17).with_byte_len(64))?;
//!         sent += 1;
//!     }
//!     free.extend(from_worker.poll(&mut buffer)?.iter().map(Wc::wr_id));
//! }
//!
//! // The end: the worker serves what is stored, then its poll fails with `Closed`, and it drops its producer.
//! drop(to_worker);
//! while let Ok(batch) = from_worker.poll(&mut buffer) {
//!     free.extend(batch.iter().map(Wc::wr_id));
//! }
//! free.sort();
//! assert!(free.into_iter().eq(0..8), "every buffer has come back once");
//! assert_eq!(worker.join().unwrap().unwrap(), 64 * sent);
//! # Ok::<(), Box<dyn Error>>(())
//! ```
//!
//! - **A ring as large as the number of buffers can't overflow.** A buffer is posted, or in one ring, or with the
//!   thread that serves it. So [`push`](crate::queue::Producer::push) is right here: it never waits, and if it fails
//!   with an overrun, a buffer was pushed twice.
//! - **A smaller ring** needs [`push_batch_or_wait`](crate::queue::Producer::push_batch_or_wait), or
//!   [`try_push_batch`](crate::queue::Producer::try_push_batch) if there is something else to do meanwhile. Let only
//!   one ring of a circle be smaller: two threads that wait for each other's rings wait for ever.
//! - **Batches.** Poll up to 32: a smaller buffer costs more for each completion, a larger one saves little, and delays
//!   the first message. Pushing one by one or many at once takes the same time, unless the ring has a channel or
//!   several producers ([`mpsc`](crate::queue::mpsc)).
//! - **Several workers:** two rings for each. One ring has one consumer.
//!
//! # The consumer
//! Made as in the example of [`TrackedSrq`](crate::tracked::TrackedSrq), with a completion queue of `BUFFERS` entries
//! and one for each producer, it runs until all producers are gone:
//!
//! ```
//! use std::collections::HashMap;
//! use std::error::Error;
//! use std::sync::Arc;
//! use std::time::{Duration, Instant};
//! use std::{hint, mem, thread};
//!
//! use cq_core::budget::{Budget, Budgeted, Entries};
//! use cq_core::cq::CompletionQueue;
//! use cq_core::device::{Device, Slots};
//! use cq_core::handlers::{Handlers, Then};
//! use cq_core::queue::{Consumer, Producer};
//! use cq_core::tracked::{TrackedQp, TrackedSrq};
//! use cq_core::wc::{Wc, WcStatus};
//! use cq_core::wr::SendWr;
//!
//! const BUFFERS: usize = 256;
//!
//! struct Peer<D: Device> {
//!     /// One send, for probes, and no receives of its own.
//!     qp: TrackedQp<D::Qp, (), (), 1, 0, Entries>,
//!     was_heard: bool,
//!     has_failed: bool,
//! }
//!
//! struct FanIn<D: Device> {
//!     peers: HashMap<u32, Peer<D>>,
//!     srq: TrackedSrq<D::Srq, usize, Entries, BUFFERS, 1>, // a token is a slot
//!     cq: CompletionQueue<Budgeted<D::Cq, Arc<Budget>>>,
//!     slots: Arc<Slots<D::Memory>>, // the worker has it, too
//!     to_worker: Producer<'static>,
//!     from_worker: CompletionQueue<Consumer<'static>>,
//! }
//!
//! impl<D: Device> FanIn<D> {
//!     fn run(mut self) -> Result<(), Box<dyn Error>> {
//!         let (mut probed, mut empty) = (Instant::now(), 0_u64);
//!         while !self.peers.is_empty() {
//!             empty = if self.turn()? == 0 { empty + 1 } else { 0 };
//!             match empty {
//!                 0 => {}
//!                 1..100 => hint::spin_loop(),
//!                 _ => thread::yield_now(),
//!             }
//!             if empty % 1024 == 0 && probed.elapsed() > Duration::from_secs(1) {
//!                 self.probe()?;
//!                 probed = Instant::now();
//!             }
//!         }
//!         drop(self.to_worker);
//!         while self.from_worker.poll(&mut [Wc::default(); 32]).is_ok() {} // the worker's last buffers
//!         Ok(())
//!     }
//!
//!     /// Posts buffers that have come back, and passes on what has arrived. Returns how many there were of both.
//!     fn turn(&mut self) -> Result<usize, Box<dyn Error>> {
//!         let Self { peers, srq, cq, slots, to_worker, from_worker } = self;
//!         let mut buffer = [Wc::default(); 32];
//!         let back = from_worker.poll(&mut buffer)?;
//!         let (count, slot) = (back.len(), |nth: usize| back[nth].wr_id() as usize);
//!         srq.fill(count, |nth| slots.sge(slot(nth)), slot)?;
//!
//!         let batch = cq.poll(&mut buffer)?;
//!         if batch.is_empty() {
//!             peers.retain(|_, peer| !peer.has_failed);
//!         }
//!         peers.try_dispatch(batch, |mut peer, run| {
//!             if let Some(peer) = &mut peer {
//!                 peer.was_heard = true;
//!                 peer.has_failed |= run.iter().any(|wc| wc.result().is_err());
//!             }
//!             for wc in run {
//!                 let Some(received) = srq.retire(wc) else {
//!                     peer.iter_mut().for_each(|peer| peer.qp.retire(wc).for_each(drop)); // a probe
//!                     continue;
//!                 };
//!                 let (slot, out) = (received.token, Wc::new(received.token as u64, WcStatus::SUCCESS, wc.qp_num()));
//!                 match received.result {
//!                     Ok(message) => to_worker.push(&out.with_byte_len(message.byte_len()))?,
//!                     Err(_) => srq.post_recv(&[slots.sge(slot)], slot)?,
//!                 }
//!             }
//!             Ok::<_, Box<dyn Error>>(Then::Keep)
//!         })?;
//!         Ok(count + batch.len())
//!     }
//!
//!     /// Probes the peers that have been silent since the last call.
//!     fn probe(&mut self) -> Result<(), Box<dyn Error>> {
//!         for peer in self.peers.values_mut() {
//!             if !mem::take(&mut peer.was_heard) && peer.qp.free_sends() > 0 {
//!                 peer.qp.post_send(SendWr::probe(0), ())?;
//!             }
//!         }
//!         Ok(())
//!     }
//! }
//! ```
//!
//! - **Who retires what.** A completion of a receive is the shared queue's, whichever queue pair it names; all others
//!   are that queue pair's own. So each [`Wc`](crate::wc::Wc) is offered to
//!   [`TrackedSrq::retire`](crate::tracked::TrackedSrq::retire) first, also if its queue pair is gone, and what that
//!   leaves to the queue pair. A ledger knows its own, and what is of another it does not touch. Without a shared
//!   queue, [`retire_all`](crate::tracked::TrackedQp::retire_all) takes a whole batch.
//! - [`fill`](crate::tracked::TrackedSrq::fill) posts what came back as one list, and all buffers at the start.
//!   [`try_dispatch`](crate::handlers::Handlers::try_dispatch) looks a queue pair up once for each run of its
//!   completions.
//! - **Nothing allocates** after the start: the buffer is on the stack, ledgers are arrays in the `TrackedSrq` and the
//!   `TrackedQp`, rings have their slots. Ledgers of thousands of receives are large: box what has them.
//! - **Counters:** `Budgeted::new(Observed::new(cq, recorder))`, by [`Observed`](crate::observe::Observed) and
//!   [`Counters::shared`](crate::counters::Counters::shared), costs [some nanoseconds](crate::counters#cost) for each
//!   poll. The high-water mark tells how far the consumer was behind; that of a ring is
//!   [`Producer::high_water`](crate::queue::Producer::high_water).
//!
//! # Empty turns
//! | threads | in an empty turn |
//! |---|---|
//! | each has a core of its own | [`spin_loop`](core::hint::spin_loop): the next message is seen at once |
//! | more threads than cores, producers on the same host counted | `yield_now`, at once or after a few spins: a thread that spins keeps its core for a whole time slice, and the one that has the message waits for it |
//! | idle for milliseconds, or on battery | arm and sleep: the [events](super::events) guide. [`WaitSet::set_spin`](crate::wait_set::WaitSet::set_spin) polls for a time first |
//!
//! `std::thread::available_parallelism` tells how many cores there are. A queue that is never armed needs no channel,
//! and without one a push has no fence. A consumer that sleeps is woken by its device, and not by its worker: if all
//! buffers are with the worker, no message comes. Give the ring back a channel, too
//! ([`split_with`](crate::queue::HeapCq::split_with)), or sleep with a deadline of a millisecond.
//!
//! # Backpressure
//! Nothing needs to be dropped. A worker that is slow keeps buffers; then receives are missing, and the producers wait.
//!
//! - **A producer** posts by [`post_send_or_reap`](crate::tracked::TrackedQp::post_send_or_reap), which polls while its
//!   send queue is full, or by [`post_send`](crate::tracked::TrackedQp::post_send), which returns the token with
//!   [`QueueFull`](crate::transport::Refused::QueueFull): keep the message, and poll.
//! - **Without a receive** a reliable sender tries again (RNR), which is slow, and fails where `rnr_retry` is not 7
//!   ([Q7](crate::contract#q7)). Who gets the next receive of a shared queue that was empty is no promise of the
//!   device: one producer may get most of them. The loopback runs those that wait in turn; see
//!   `transport_rxe_loop::SharedReceiveQueue`.
//! - **Credits** avoid both: each producer keeps at most `BUFFERS / PRODUCERS` messages under way, and the consumer
//!   returns a credit when it has posted the buffer again ([sizing](super::sizing#receive-queues)). Then it needs more
//!   sends than one.
//!
//! # The end
//! - **Of a thread:** dropping its `Producer` closes the ring ([S2](crate::contract#s2)). The other thread polls what
//!   is stored, then gets [`Closed`](crate::transport::PollError::Closed), once nothing can come any more. Threads end
//!   in the order in which messages flow, and the buffers are home when the last ring is closed. A thread that fails or
//!   panics drops its sides, too: then the others' polls and pushes fail ([S3](crate::contract#s3)), and none waits for
//!   ever.
//! - **Of a producer:** let it say so, by a last message, or by the end of its socket. A queue pair that was closed
//!   without a word is as silent as one whose process was killed.
//! - **Of a producer that was killed** a consumer that only receives learns nothing: nothing completes. It
//!   [probes](crate::wr::SendWr::probe) those that are silent, as above: the probe fails with RETRY_EXC_ERR, and the
//!   queue pair goes to ERR. Or it keeps the socket of [`exchange`](crate::exchange), and looks for its end. A message
//!   that was under way never arrives in part, and its receive stays for others ([Q9](crate::contract#q9)).
//! - **Of the queue pair:** drop it after a poll that found nothing, as above: a receive that it has consumed is then
//!   retired. On hardware, wait for its QP_LAST_WQE_REACHED before that poll
//!   ([`AsyncEvents`](crate::transport::AsyncEvents)). What it had reserved is free for the next one; [drain and
//!   reset](super::recovery#draining) are for a queue pair that is used again.
//! - **Of all:** queue pairs, then the shared receive queue, then the completion queue, then the memory. Fields of a
//!   structure are dropped in their order, so `FanIn` has them so.
