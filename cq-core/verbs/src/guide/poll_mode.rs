//! Poll-mode loops: threads that never sleep, the buffers that travel between them, and their end.
//!
//! The program of this page is a fan-in. Producers, processes or threads, send to one consumer thread, by queue pairs
//! that share a receive queue and a completion queue. The consumer passes each message through a software ring to a
//! worker thread, which gives the buffer back through another ring; then it receives again. Whole programs: `cargo run
//! -p cq-core --example fan_in`, and over a device `cargo run -p transport-rxe-loop --example forward`.
//!
//! # Rings between threads
//! A ring is a [`HeapCq`](cq_core::queue::HeapCq), with a [`Producer`](cq_core::queue::Producer) for one thread and a
//! [`Consumer`](cq_core::queue::Consumer) for another. It carries an [entry](cq_core::entry) of the program's own: here the slot
//! of the buffer, the producer, and the length.
//!
//! ```
//! use std::error::Error;
//! use std::thread;
//!
//! use bytemuck::{Pod, Zeroable};
//! use cq_core::cq::CompletionQueue;
//! use cq_core::entry::{Entry, InArray};
//! use cq_core::queue::{Consumer, HeapCq, Producer};
//! use cq_core::transport::PollError;
//!
//! #[derive(Clone, Copy, Pod, Zeroable)]
//! #[repr(C)]
//! struct Message {
//!     slot: u32,
//!     producer: u32,
//!     len: u32,
//! }
//!
//! impl Entry for Message {
//!     type Generation = InArray;
//! }
//!
//! /// The worker: serves what the ring brings, and gives the buffers back. It ends when the other thread does.
//! fn work(
//!     ring: Consumer<'_, Message>,
//!     mut back: Producer<'_, u32>,
//!     mut serve: impl FnMut(&Message),
//! ) -> Result<(), Box<dyn Error + Send + Sync>> {
//!     let (mut ring, mut buffer) = (CompletionQueue::new(ring), [Message::zeroed(); 32]);
//!     loop {
//!         match ring.poll(&mut buffer) {
//!             Ok([]) => thread::yield_now(),
//!             Ok(batch) => {
//!                 for message in batch {
//!                     serve(message);
//!                     back.push(&message.slot)?;
//!                 }
//!             }
//!             Err(PollError::Closed) => return Ok(()),
//!             Err(error) => return Err(error.into()),
//!         }
//!     }
//! }
//!
//! const BUFFERS: usize = 8;
//! let (mut to_worker, ring) = HeapCq::of_entries(BUFFERS)?.split();
//! let (back, from_worker) = HeapCq::of_entries(BUFFERS)?.split();
//! let worker = thread::spawn(move || {
//!     let mut bytes = 0;
//!     work(ring, back, |message| bytes += message.len).map(|()| bytes)
//! });
//!
//! // Ten thousand messages in eight buffers.
//! let (mut from_worker, mut buffer) = (CompletionQueue::new(from_worker), [0; 32]);
//! let (mut free, mut sent) = (Vec::from_iter(0..BUFFERS as u32), 0);
//! while sent < 10_000 {
//!     for slot in free.drain(..) {
//!         to_worker.push(&Message { slot, producer: 17, len: 64 })?;
//!         sent += 1;
//!     }
//!     free.extend(from_worker.poll(&mut buffer)?);
//! }
//!
//! // The end: the worker serves what is stored, then its poll fails with `Closed`, and it drops its producer.
//! drop(to_worker);
//! while let Ok(batch) = from_worker.poll(&mut buffer) {
//!     free.extend(batch);
//! }
//! free.sort();
//! assert!(free.into_iter().eq(0..8), "every buffer has come back once");
//! assert_eq!(worker.join().map_err(|_| "the worker panicked")?.map_err(|why| why.to_string())?, 64 * sent);
//! # Ok::<(), Box<dyn Error>>(())
//! ```
//!
//! - **A ring as large as the number of buffers can't overflow.** A buffer is posted, or in one ring, or with the
//!   thread that serves it. So [`push`](cq_core::queue::Producer::push) is right here: it never waits. It fails only if the
//!   other thread is gone, or a buffer was pushed twice; the error tells which.
//! - **A smaller ring** needs [`push_batch_or_wait`](cq_core::queue::Producer::push_batch_or_wait), or
//!   [`push_batch`](cq_core::queue::Producer::push_batch) if there is something else to do meanwhile. Let only
//!   one ring of a circle be smaller: two threads that wait for each other's rings wait for ever.
//! - **Batches.** Poll up to 32: a smaller buffer costs more for each completion, a larger one saves little, and delays
//!   the first message. Pushing one by one or many at once takes the same time, unless the ring has a channel or
//!   several producers ([`mpsc`](cq_core::queue::mpsc)).
//! - **Several workers:** two rings for each. One ring has one consumer.
//!
//! # The consumer
//! ```
//! use std::collections::HashMap;
//! use std::error::Error;
//! use std::os::unix::net::UnixStream;
//! use std::sync::Arc;
//! use std::thread::{self, JoinHandle};
//! use std::time::Duration;
//! use std::{hint, mem};
//!
//! use cq_core::cq::CompletionQueue;
//! use cq_core::queue::{Consumer, Producer};
//! use cq_core::wc::Wc;
//! use cq_verbs::budget::{Budget, Budgeted};
//! use cq_verbs::device::{Device, DeviceQp, Slots};
//! use cq_verbs::exchange::has_ended;
//! use cq_verbs::handlers::{Handlers, Then};
//! use cq_verbs::setup::Access;
//! use cq_verbs::tracked::{Done, TrackedQp, TrackedSrq};
//! use cq_verbs::wr::SendWr;
//!
//! type Failure = Box<dyn Error + Send + Sync>;
//! const BUFFERS: usize = 256;
//! const LIMIT: Duration = Duration::from_secs(5);
//!
//! # #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
//! # #[repr(C)]
//! # struct Message { slot: u32, producer: u32, len: u32 }
//! # impl cq_core::entry::Entry for Message { type Generation = cq_core::entry::InArray; }
//! struct Peer<D: Device> {
//!     _qp: TrackedQp<D::Qp, ()>, // it sends nothing, and has no receives of its own
//!     socket: UnixStream, // its end is the producer's
//!     has_ended: bool,
//! }
//!
//! struct FanIn<D: Device> {
//!     peers: HashMap<u32, Peer<D>>,
//!     srq: TrackedSrq<D::Srq, usize>, // a token is a slot
//!     cq: CompletionQueue<Budgeted<D::Cq, Arc<Budget>>>,
//!     slots: Arc<Slots<D::Memory>>, // the worker has it, too
//!     to_worker: Producer<'static, Message>,
//!     from_worker: CompletionQueue<Consumer<'static, u32>>,
//! }
//!
//! impl<D: Device> FanIn<D> {
//!     /// `sockets` lead to the producers, the rings to the worker.
//!     fn new(
//!         device: &D,
//!         sockets: Vec<UnixStream>,
//!         (to_worker, from_worker): (Producer<'static, Message>, Consumer<'static, u32>),
//!     ) -> Result<Self, Failure> {
//!         let (pd, port) = (device.alloc_pd()?, device.port(1)?);
//!         let cq = CompletionQueue::new(Budgeted::new(device.cq(BUFFERS as u32).create()?));
//!         let handle = cq.get_ref().handle();
//!         let mut srq = TrackedSrq::create(&pd, &[&handle], BUFFERS as u32)?;
//!         let slots = Arc::new(Slots::allocate(&pd, BUFFERS, 256, Access::LOCAL_WRITE)?);
//!         srq.fill(BUFFERS, |slot| slots.sge(slot), |slot| slot)?;
//!         let mut peers = HashMap::new();
//!         for socket in sockets {
//!             let mut qp = TrackedQp::create_with(&pd, [&handle; 2], |init| {
//!                 init.srq(srq.get_ref()).caps(init.caps.max_send_wr(0))
//!             })?;
//!             qp.connect_over(&socket, &port, LIMIT)?;
//!             peers.insert(qp.get_ref().number(), Peer { _qp: qp, socket, has_ended: false });
//!         }
//!         Ok(Self { peers, srq, cq, slots, to_worker, from_worker: CompletionQueue::new(from_worker) })
//!     }
//!
//!     /// Runs until all producers have ended.
//!     fn run(&mut self) -> Result<(), Failure> {
//!         let mut empty = 0_u64;
//!         while !self.peers.is_empty() {
//!             empty = if self.turn()? == 0 { empty + 1 } else { 0 };
//!             match empty {
//!                 0 => {}
//!                 1..100 => hint::spin_loop(),
//!                 _ => thread::yield_now(),
//!             }
//!             if empty % 1024 == 1023 {
//!                 // One that had ended before the last empty turns has nothing left in the queue.
//!                 self.peers.retain(|_, peer| !mem::replace(&mut peer.has_ended, has_ended(&peer.socket)));
//!             }
//!         }
//!         Ok(())
//!     }
//!
//!     /// Posts buffers that have come back, and passes on what has arrived. Returns how many there were of both.
//!     fn turn(&mut self) -> Result<usize, Failure> {
//!         let Self { peers, srq, cq, slots, to_worker, from_worker } = self;
//!         let mut back = [0; 32];
//!         let back = from_worker.poll(&mut back)?;
//!         let (count, slot) = (back.len(), |nth: usize| back[nth] as usize);
//!         srq.fill(count, |nth| slots.sge(slot(nth)), slot)?;
//!
//!         let mut buffer = [Wc::default(); 32];
//!         let batch = cq.poll(&mut buffer)?;
//!         peers.try_dispatch(batch, |mut peer, run| {
//!             for wc in run {
//!                 let Some(received) = srq.retire(wc) else { continue };
//!                 let slot = received.token;
//!                 match received.result {
//!                     Ok(message) => {
//!                         let (slot, producer, len) = (slot as u32, wc.qp_num(), message.byte_len());
//!                         to_worker.push(&Message { slot, producer, len })?;
//!                     }
//!                     Err(_) => {
//!                         srq.post_recv(&[slots.sge(slot)], slot)?;
//!                         peer.iter_mut().for_each(|peer| peer.has_ended = true);
//!                     }
//!                 }
//!             }
//!             Ok::<_, Failure>(Then::Keep)
//!         })?;
//!         Ok(count + batch.len())
//!     }
//! }
//!
//! /// Runs both threads to their end. If both fail, the worker's failure is the cause of the other.
//! fn finish<D: Device>(mut fan_in: FanIn<D>, worker: JoinHandle<Result<(), Failure>>) -> Result<(), Failure> {
//!     let ended = fan_in.run();
//!     let FanIn { to_worker, from_worker: _has_room_for_all_buffers, .. } = fan_in;
//!     drop(to_worker);
//!     worker.join().map_err(|_| "the worker panicked")??;
//!     ended
//! }
//!
//! /// A producer: sends as fast as messages are taken. When it returns, all have arrived.
//! fn produce<D: Device>(device: &D, socket: &UnixStream, messages: u64) -> Result<(), Failure> {
//!     let (pd, port) = (device.alloc_pd()?, device.port(1)?);
//!     let mut cq = CompletionQueue::new(Budgeted::new(device.cq(64).create()?));
//!     let mut qp = TrackedQp::<D::Qp, ()>::create(&pd, &cq.get_ref().handle(), 64, 0)?;
//!     qp.connect_over(socket, &port, LIMIT)?;
//!     let (mut posted, mut buffer) = (0, [Wc::default(); 32]);
//!     while posted < messages || !qp.is_idle() {
//!         while posted < messages && qp.available_sends() > 0 {
//!             let bytes = u64::to_ne_bytes(posted);
//!             let send = SendWr::send_inline(0, &bytes);
//!             posted += 1;
//!             // The ledger signals where it must, and the program the last one, for which it waits.
//!             qp.post_send(if posted < messages { send.unsignaled() } else { send }, ())?;
//!         }
//!         let batch = cq.poll(&mut buffer)?;
//!         if batch.is_empty() {
//!             thread::yield_now();
//!         }
//!         for done in qp.retire_all(batch) {
//!             if let Done::Sent(sent) = done {
//!                 sent.result?;
//!             }
//!         }
//!     }
//!     Ok(())
//! }
//! ```
//!
//! - **Who retires what.** A completion of a receive is the shared queue's, whichever queue pair it names; all others
//!   are that queue pair's own. So each [`Wc`](cq_core::wc::Wc) is offered to
//!   [`TrackedSrq::retire`](crate::tracked::TrackedSrq::retire) first, also if its queue pair is gone, and what that
//!   leaves to the queue pair. A ledger knows its own, and what is of another it does not touch. Without a shared
//!   queue, [`retire_all`](crate::tracked::TrackedQp::retire_all) takes a whole batch. Here the queue pairs send nothing.
//! - [`fill`](crate::tracked::TrackedSrq::fill) posts what came back as one list, and all buffers at the start.
//!   [`try_dispatch`](crate::handlers::Handlers::try_dispatch) looks a queue pair up once for each run of its
//!   completions.
//! - **Nothing allocates** after the start: the buffer is on the stack, ledgers and rings have their slots.
//! - **Counters:** `Budgeted::new(Observed::new(cq, recorder))`, by [`Observed`](cq_core::observe::Observed) and
//!   [`Counters::shared`](crate::counters::Counters::shared), costs [some nanoseconds](crate::counters#cost) for each
//!   poll. The high-water mark tells how far the consumer was behind; that of a ring is
//!   [`Producer::measure_high_water`](cq_core::queue::Producer::measure_high_water).
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
//! ([`split_with`](cq_core::queue::HeapCq::split_with)), or sleep with a deadline of a millisecond.
//!
//! # Backpressure
//! Nothing needs to be dropped. A worker that is slow keeps buffers; then receives are missing, and the producers wait.
//!
//! - **A producer** posts by [`post_send_or_reap`](crate::tracked::TrackedQp::post_send_or_reap), which polls while its
//!   send queue is full, or by [`post_send`](crate::tracked::TrackedQp::post_send), which returns the token with
//!   [`QueueFull`](crate::post::WrError::QueueFull): keep the message, and poll.
//! - **Without a receive** a reliable sender tries again (RNR), which is slow, and fails where `rnr_retry` is not 7
//!   ([Q7](cq_core::contract#q7)). Who gets the next receive of a shared queue that was empty is no promise of the
//!   device: one producer may get most of them. The loopback runs those that wait in turn; see
//!   `transport_rxe_loop::SharedReceiveQueue`.
//! - **Credits** avoid both: each producer keeps at most `BUFFERS / PRODUCERS` messages under way, and the consumer
//!   returns a credit when it has posted the buffer again ([sizing](super::sizing#receive-queues)). Then it needs more
//!   sends than one.
//!
//! # The end
//! - **Of a thread:** dropping its `Producer` closes the ring ([S2](cq_core::contract#s2)). The other thread polls what
//!   is stored, then gets [`Closed`](cq_core::transport::PollError::Closed), once nothing can come any more. Threads end
//!   in the order in which messages flow, and the buffers are home when the last ring is closed. A thread that fails or
//!   panics drops its sides, too: then the others' polls and pushes fail ([S3](cq_core::contract#s3)), and none waits for
//!   ever.
//! - **Of a producer:** its socket ends, whether it returns or is killed, and a look costs one system call. A message that
//!   was under way never arrives in part, and its receive stays for others ([Q9](cq_core::contract#q9)).
//! - **Of a producer whose host is gone**, or one without a socket, a consumer that only receives learns nothing: nothing
//!   completes. It has a send entry for a [probe](super::recovery#a-peer-that-has-died) of those that are silent: a probe
//!   fails with RETRY_EXC_ERR, and the queue pair goes to ERR.
//! - **Under load** this consumer does not look: it removes a dead producer once it is idle.
//! - **Of the queue pair:** drop it after a poll that found nothing and began after the end, as above: a receive that it has consumed is then
//!   retired. On hardware, wait for its [last receive](#the-last-receive) before that poll. What it had reserved is free
//!   for the next one; [drain and reset](super::recovery#draining) are for a queue pair that is used again.
//! - **Of all:** queue pairs, then the shared receive queue, then the completion queue, then the memory. Fields of a
//!   structure are dropped in their order, so `FanIn` has them so.
//!
//! # The last receive
//! A queue pair in ERR may have consumed receives of the shared queue that have not completed yet. QP_LAST_WQE_REACHED says
//! that it consumes no more ([Q9](cq_core::contract#q9)). Soft-RoCE of Linux 6.1 never raises it, so wait with a deadline:
//!
//! ```
//! use cq_core::transport::WaitError;
//! use cq_verbs::async_event::{AsyncEvent, AsyncEventType, Element};
//! use cq_verbs::async_event::BlockAsync;
//!
//! /// Waits until the queue pair with this number, which is in ERR, consumes no more receives. False if the device has
//! /// not said so by the deadline. Other events are passed on.
//! fn last_receive<D: BlockAsync>(
//!     device: &mut D,
//!     number: u32,
//!     deadline: D::Instant,
//!     mut other: impl FnMut(AsyncEvent),
//! ) -> Result<bool, WaitError> {
//!     while let Some(event) = device.wait_async(Some(deadline))? {
//!         match (event.event_type, event.element) {
//!             (AsyncEventType::QP_LAST_WQE_REACHED, Element::Qp(of)) if of == number => return Ok(true),
//!             _ => other(event),
//!         }
//!     }
//!     Ok(false)
//! }
//! ```
//!
//! - **It comes:** poll the completion queue empty, and drop the queue pair. All that it has consumed is retired.
//! - **It does not come** within a second, say: do the same. A receive that was under way at the failure and has not
//!   completed by then never does: its token stays in the ledger, and counts as
//!   [outstanding](crate::tracked::TrackedSrq::outstanding). If too many are missing in the end, replace the shared receive
//!   queue, once its queue pairs are gone.
