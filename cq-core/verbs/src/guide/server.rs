//! A server of many clients in one thread. It sleeps on its completion queue, its listener and the sockets of its clients by
//! poll(2). Clients may be killed at any time, and a failure ends one connection only.
//!
//! This one returns each request. It needs Linux, and the crates of the [first program](super::first_program) with `anyhow`.
//! The same server with clients: `cargo run -p transport-rxe-loop --example kv_store`. With tokio: the guide `tasks`.
//!
//! ```
//! use std::collections::{HashMap, VecDeque};
//! use std::os::fd::AsFd;
//! use std::os::unix::net::UnixListener;
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use anyhow::bail;
//! use cq_core::cq::CompletionQueue;
//! use cq_core::wc::Wc;
//! use cq_verbs::budget::{Budget, Budgeted, BudgetedHandle, OverdrawnError};
//! use cq_verbs::device::{Device, DeviceQp, Slots};
//! use cq_verbs::handlers::{Handlers, Then};
//! use cq_verbs::setup::{Access, Port};
//! use cq_verbs::tracked::{CreateTrackedError, Done, TrackedQp};
//! use cq_verbs::wait_set::{DescriptorId, Ready, WaitSet};
//! use cq_verbs::wr::SendWr;
//!
//! # #[cfg(any())]
//! fn main() -> Result<(), Failure> {
//!     let device = transport_rxe_loop::Context::open("loop0")?;
//!     let _ = std::fs::remove_file("/tmp/echo.socket"); // of an earlier run
//!     let listener = UnixListener::bind("/tmp/echo.socket")?;
//!     Server::new(&device)?.run(&listener, &mut |request| Ok(*request))
//! }
//! # fn main() {}
//!
//! type Failure = anyhow::Error;
//! /// A request, and an answer.
//! type Message = [u8; 64];
//! type Answer<'a> = dyn FnMut(&Message) -> Result<Message, Failure> + 'a;
//! type Queue<D> = Budgeted<<D as Device>::Cq, Arc<Budget>>;
//! /// The token of each request is its slot.
//! type Qp<D> = TrackedQp<<D as Device>::Qp, usize>;
//!
//! const CLIENTS: u32 = 4;
//! /// The requests that a client may have outstanding.
//! const RECEIVES: u32 = 8;
//! /// Twice as many: an answer occupies its entry until a later completion was polled.
//! const SENDS: u32 = 2 * RECEIVES;
//! const SLOTS: usize = (RECEIVES + SENDS) as usize;
//! /// The longest that a client can block the others while it connects.
//! const LIMIT: Duration = Duration::from_secs(5);
//!
//! struct Connection<D: Device> {
//!     qp: Qp<D>, // dropped before the slots, which the device uses until then
//!     slots: Slots<D::Memory>,
//!     /// Slots that no request uses.
//!     free: Vec<usize>,
//!     /// Slots with answers that are not posted yet.
//!     answers: VecDeque<usize>,
//!     /// Readable when the client's process ends.
//!     socket: DescriptorId,
//! }
//!
//! impl<D: Device> Connection<D> {
//!     fn serve(&mut self, run: &[Wc], answer: &mut Answer<'_>) -> Result<(), Failure> {
//!         for done in self.qp.retire_all(run) {
//!             match done {
//!                 Done::Received(received) => {
//!                     let (slot, mut request) = (received.token, [0; size_of::<Message>()]);
//!                     if received.result?.byte_len() as usize != request.len() {
//!                         bail!("a request has another length");
//!                     }
//!                     self.slots.read(slot, &mut request)?;
//!                     self.slots.write(slot, &answer(&request)?)?;
//!                     self.answers.push_back(slot);
//!                 }
//!                 Done::Sent(sent) => {
//!                     sent.result?;
//!                     self.free.push(sent.token);
//!                 }
//!             }
//!         }
//!         // Receives first: an answer permits the client to send its next request.
//!         while self.qp.available_receives() > 0 {
//!             let Some(slot) = self.free.pop() else { break };
//!             self.qp.post_recv(&[self.slots.sge(slot)], slot)?;
//!         }
//!         while self.qp.available_sends() > 0 {
//!             let Some(slot) = self.answers.pop_front() else { break };
//!             self.qp.post_send(SendWr::send(0, &[self.slots.sge(slot)]).unsignaled(), slot)?;
//!         }
//!         Ok(())
//!     }
//! }
//!
//! struct Server<D: Device> {
//!     connections: HashMap<u32, Connection<D>>, // by `qp_num`
//!     set: WaitSet<Queue<D>, D::Channel>,
//!     cq: BudgetedHandle<D::CqHandle, Arc<Budget>>,
//!     pd: D::Pd,
//!     port: Port,
//! }
//!
//! impl<D: Device<Channel: AsFd>> Server<D> {
//!     fn new(device: &D) -> Result<Self, Failure> {
//!         let mut set = WaitSet::new()?;
//!         let channel = set.add_channel(device.create_channel()?).map_err(|refused| refused.why)?;
//!         let cq = device.cq(CLIENTS * (SENDS + RECEIVES)).channel(set.channel(channel)).create()?;
//!         let cq = Budgeted::new(cq);
//!         let handle = cq.handle();
//!         set.add_queue(CompletionQueue::new(cq));
//!         let (pd, port, connections) = (device.alloc_pd()?, device.port(1)?, HashMap::new());
//!         Ok(Self { connections, set, cq: handle, pd, port })
//!     }
//!
//!     fn run(&mut self, listener: &UnixListener, answer: &mut Answer<'_>) -> Result<(), Failure> {
//!         listener.set_nonblocking(true)?;
//!         let arrivals = self.set.add_descriptor(listener)?;
//!         let mut buffer = [Wc::default(); 32];
//!         loop {
//!             match self.set.wait(&mut buffer, None)? {
//!                 Ready::Completions(_, batch) => self.complete(batch, answer),
//!                 Ready::Descriptor(id) if id == arrivals => {
//!                     self.accept(listener).unwrap_or_else(|error| eprintln!("no client: {error:#}"));
//!                 }
//!                 Ready::Descriptor(id) => {
//!                     // A client has ended: it sends nothing by its socket.
//!                     self.set.remove_descriptor(id);
//!                     self.connections.retain(|_, it| it.socket != id);
//!                 }
//!                 Ready::Stopped => return Ok(()),
//!                 _ => {}
//!             }
//!         }
//!     }
//!
//!     fn accept(&mut self, listener: &UnixListener) -> Result<(), Failure> {
//!         let created = Qp::<D>::create(&self.pd, &self.cq, SENDS, RECEIVES);
//!         if let Err(CreateTrackedError::Overdrawn(OverdrawnError { pending: true, .. })) = created {
//!             // Entries of a client that has ended are free after the next poll. The listener stays readable.
//!             return Ok(());
//!         }
//!         let (socket, _) = listener.accept()?;
//!         let mut qp = created?;
//!         let slots = Slots::allocate(&self.pd, SLOTS, size_of::<Message>(), Access::LOCAL_WRITE)?;
//!         qp.connect_over_with(&socket, &self.port, LIMIT, |qp| {
//!             qp.fill_receives(RECEIVES as usize, |slot| slots.sge(slot), |slot| slot)
//!         })?;
//!         let (number, socket) = (qp.get_ref().number(), self.set.add_descriptor(&socket)?);
//!         let (free, answers) = ((RECEIVES as usize..SLOTS).collect(), VecDeque::new());
//!         self.connections.insert(number, Connection { qp, slots, free, answers, socket });
//!         Ok(())
//!     }
//!
//!     fn complete(&mut self, batch: &[Wc], answer: &mut Answer<'_>) {
//!         self.connections.dispatch(batch, |connection, run| {
//!             // Completions of a client that was removed may still be in the queue.
//!             let Some(it) = connection else { return Then::Keep };
//!             let Err(error) = it.serve(run, answer) else { return Then::Keep };
//!             eprintln!("a client has failed: {error:#}");
//!             self.set.remove_descriptor(it.socket);
//!             Then::Remove
//!         });
//!     }
//! }
//! ```
//!
//! For clients on other hosts, use TCP sockets, or connect by IP addresses with [`cm`](crate::cm).
//!
//! # Accepting
//! - `create` [reserves](crate::budget) a completion-queue entry for each request, so the queue never overruns. While entries
//!   of a gone client are `pending`, new ones wait in the backlog. If all are in use, the server accepts and closes the
//!   socket.
//! - `connect_over_with` posts receives before the client may send.
//! - A client that connects slowly blocks the others for up to `LIMIT` at each step. To avoid this, connect [step by
//!   step](crate::exchange#clients-of-an-event-loop). A client creates its queue pair before it connects the socket.
//!
//! # Requests and answers
//! - Each slot is in exactly one place: a posted receive, `answers`, a posted send, or `free`. An answer is sent from the slot
//!   of its request.
//! - The answers are unsignaled. The ledger [signals](super::sizing#send-queues-and-how-often-to-signal) one in each half
//!   queue.
//! - **An answer occupies its send-queue entry until a later completion was polled**, not until it has arrived. So the queue
//!   can be full although a client has all its answers. `answers` keeps the next ones until the queue pair's next
//!   completion. A server that does `post_send(…)?` instead loses its fastest clients.
//! - A client that posts no receives blocks itself only: its answers fill the send queue, then `answers`. Then no receive is
//!   posted, and its requests wait (RNR).
//! - Check the length and the content of each request.
//!
//! # A client that dies
//! | detected by | when |
//! |---|---|
//! | the end of its socket | immediately, when its process ends |
//! | a failed answer, flushed receives | if the server sends. After a host has lost power there is no other sign, except TCP keepalive or a [probe](super::recovery#a-peer-that-has-died) |
//!
//! - **Dropping the queue pair** destroys it, drops the tokens of outstanding requests and returns its entries, `pending`. To
//!   get the tokens, [`fail`](crate::tracked::TrackedQp::fail) it, and drop it when it [is
//!   idle](crate::tracked::TrackedQp::is_idle).
//! - **Remove the descriptor**: the set has a duplicate of the socket, which stays open until then.
//! - **Completions without a connection** are of removed clients. If a new queue pair has the same number, they retire
//!   nothing: its ledger has another [generation](crate::ledger::Generation).
//! - `run` fails only if the queue or the set has failed: see [recovery](super::recovery).
//!
//! # Stopping
//! Give [`set.stop_handle()`](crate::wait_set::WaitSet::stop_handle) to another thread or a signal handler. Answers that were
//! not sent are lost. A request that must not be executed twice [has a
//! number](super::recovery#what-is-lost-and-what-is-not).
//!
//! # Testing
//! - `kill -9` a client, then start one more client than there are entries for. `kill -STOP` a client: the others must not
//!   notice. Send more requests than `RECEIVES` without waiting: all are answered, in order.
//! - `RXE_LOOP_STRICT=1` overruns a completion queue at exactly its capacity, which finds wrong sums.
//!   `RXE_LOOP_FAULTS="seed=7,spurious=0.3,defer=50us"` injects spurious events and late completions,
//!   `fail=0.0005:RETRY_EXC_ERR` failures: see the guide to tests of `cq-testing`.
