//! A server of many clients, some of which die: a wait set, reservations, ledgers, handlers, slots and the exchange of
//! endpoints in one program.
//!
//! The whole of it, with clients, one of which is killed: `cargo run -p transport-rxe-loop --example kv_store`. This page
//! has its server, which runs on every device. Left out is only `Store`: it is `Default`, and has
//! `fn answer(&mut self, request: &[u8; MESSAGE]) -> Result<[u8; MESSAGE], Failure>`.
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
//! use cq_core::observe::Observed;
//! use cq_core::wc::Wc;
//! use cq_verbs::budget::{Budget, Budgeted, BudgetedHandle, OverdrawnError};
//! use cq_verbs::counters::{Counters, Recorder};
//! use cq_verbs::device::{Device, DeviceQp, Slots};
//! use cq_verbs::handlers::{Handlers, Then};
//! use cq_verbs::setup::{Access, Port};
//! use cq_verbs::tracked::{CreateTrackedError, Done, TrackedQp};
//! use cq_verbs::wait_set::{DescriptorId, Ready, WaitSet};
//! use cq_verbs::wr::SendWr;
//!
//! type Failure = anyhow::Error;
//!
//! const CLIENTS: u32 = 4;
//! /// The requests that a client may have outstanding.
//! const RECEIVES: u32 = 8;
//! /// Twice as many: an unsignaled answer holds its place until a later one has completed.
//! const SENDS: u32 = 2 * RECEIVES;
//! const SLOTS: usize = (RECEIVES + SENDS) as usize;
//! /// The length of a request, and of an answer.
//! const MESSAGE: usize = 64;
//! /// How long a step of connecting may take: a client that is silent holds up the server for no longer.
//! const LIMIT: Duration = Duration::from_secs(5);
//!
//! type Queue<D> = Budgeted<Observed<<D as Device>::Cq, Recorder<Arc<Counters>>>, Arc<Budget>>;
//! /// The token of each request is its slot.
//! type Qp<D> = TrackedQp<<D as Device>::Qp, usize>;
//!
//! /// A client, as the server has it.
//! struct Connection<D: Device> {
//!     qp: Qp<D>, // dropped first: then nothing uses the slots any more
//!     slots: Slots<D::Memory>,
//!     /// Slots that no request uses.
//!     free: Vec<usize>,
//!     /// Slots with answers that are not posted yet.
//!     answers: VecDeque<usize>,
//!     /// Readable when the client ends, however it does.
//!     socket: DescriptorId,
//! }
//!
//! impl<D: Device> Connection<D> {
//!     fn serve(&mut self, run: &[Wc], store: &mut Store) -> Result<(), Failure> {
//!         for done in self.qp.retire_all(run) {
//!             match done {
//!                 Done::Received(received) => {
//!                     let (slot, mut request) = (received.token, [0; MESSAGE]);
//!                     if received.result?.byte_len() as usize != MESSAGE {
//!                         bail!("a request has another length");
//!                     }
//!                     self.slots.read(slot, &mut request)?;
//!                     self.slots.write(slot, &store.answer(&request)?)?;
//!                     self.answers.push_back(slot);
//!                 }
//!                 Done::Sent(sent) => {
//!                     sent.result?;
//!                     self.free.push(sent.token);
//!                 }
//!             }
//!         }
//!         self.post()
//!     }
//!
//!     /// Posts receives, then answers, as many as there are slots for: an answer lets the client send its next request.
//!     fn post(&mut self) -> Result<(), Failure> {
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
//!     connections: HashMap<u32, Connection<D>>,
//!     set: WaitSet<Queue<D>, D::Channel>,
//!     cq: BudgetedHandle<D::CqHandle, Arc<Budget>>,
//!     counters: Arc<Counters>,
//!     pd: D::Pd,
//!     port: Port,
//!     store: Store,
//! }
//!
//! impl<D: Device<Channel: AsFd>> Server<D> {
//!     fn new(device: &D) -> Result<Self, Failure> {
//!         let mut set = WaitSet::new()?;
//!         let channel = set.add_channel(device.create_channel()?).map_err(|refused| refused.why)?;
//!         let cq = device.cq(CLIENTS * (SENDS + RECEIVES)).channel(set.channel(channel)).create()?;
//!         let (recorder, counters) = Counters::shared();
//!         let cq = Budgeted::new(Observed::new(cq, recorder));
//!         let (handle, store) = (cq.handle(), Store::default());
//!         set.add_queue(CompletionQueue::new(cq));
//!         let (pd, port, connections) = (device.alloc_pd()?, device.port(1)?, HashMap::new());
//!         Ok(Self { connections, set, cq: handle, counters, pd, port, store })
//!     }
//!
//!     fn run(&mut self, listener: &UnixListener) -> Result<(), Failure> {
//!         let arrivals = self.set.add_descriptor(listener)?;
//!         let mut buffer = [Wc::default(); 32];
//!         loop {
//!             match self.set.wait(&mut buffer, None)? {
//!                 Ready::Completions(_, batch) => self.complete(batch),
//!                 Ready::Descriptor(id) if id == arrivals => {
//!                     self.accept(listener).unwrap_or_else(|error| report("no client", &error));
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
//!             // A client is gone, whose entries are free once a poll has found the queue empty: the listener stays readable.
//!             return Ok(());
//!         }
//!         let (socket, _) = listener.accept()?;
//!         let mut qp = created?;
//!         let slots = Slots::allocate(&self.pd, SLOTS, MESSAGE, Access::LOCAL_WRITE)?;
//!         qp.connect_over_with(&socket, &self.port, LIMIT, |qp| {
//!             qp.fill_receives(RECEIVES as usize, |slot| slots.sge(slot), |slot| slot)
//!         })?;
//!         let (number, socket) = (qp.get_ref().number(), self.set.add_descriptor(&socket)?);
//!         let (free, answers) = ((RECEIVES as usize..SLOTS).collect(), VecDeque::new());
//!         self.connections.insert(number, Connection { qp, slots, free, answers, socket });
//!         Ok(())
//!     }
//!
//!     fn complete(&mut self, batch: &[Wc]) {
//!         self.connections.dispatch(batch, |connection, run| {
//!             // Of a client that is gone, there may be completions in the queue still.
//!             let Some(it) = connection else { return Then::Keep };
//!             let Err(error) = it.serve(run, &mut self.store) else { return Then::Keep };
//!             report("a client has failed", &error);
//!             self.set.remove_descriptor(it.socket);
//!             Then::Remove
//!         });
//!     }
//! }
//!
//! fn report(what: &str, error: &Failure) {
//!     eprintln!("{what}: {error:#}");
//! }
//! # #[derive(Default)]
//! # struct Store;
//! # impl Store {
//! #     fn answer(&mut self, request: &[u8; MESSAGE]) -> Result<[u8; MESSAGE], Failure> { Ok(*request) }
//! # }
//! ```
//!
//! # What the server keeps
//! - **One completion queue for all clients**, with as many entries as they reserve:
//!   [`SENDS + RECEIVES`](crate::tracked::TrackedQp::create) each. So it never overruns ([sizing](super::sizing)). The set owns
//!   it; its [`handle`](crate::budget::Budgeted::handle) creates queue pairs.
//! - **Counters** around the device's queue. `Observed` inside `Budgeted`, as here, or outside: both work. Another
//!   thread may hold the `Arc` and take [snapshots](crate::counters::Counters::snapshot). An unsignaled answer has no
//!   completion, so there are fewer completions than messages.
//! - **A wait that sleeps at once.** [`set_spin`](crate::wait_set::WaitSet::set_spin) has it poll for some microseconds
//!   first. It has no deadline here; a test gives one, so that a mistake is an error and no hang.
//! - **Connections by `qp_num`**, which each completion has, also a failed one.
//! - **The queue pair before the slots**: fields are dropped in this order, and the device uses the memory until the
//!   queue pair is destroyed.
//!
//! # A client arrives
//! `create` reserves entries and creates the queue pair. It refuses with [`OverdrawnError`](crate::budget::OverdrawnError) if
//! there are too few. Those of a client that is gone are `pending`: a completion of it may be in the queue still, so
//! they are free once a poll has found fewer completions than its buffer holds. So the server accepts later: the listener
//! stays readable, and the set polls before it returns it again. If nothing is pending, the server is full: it accepts,
//! the socket is dropped, the client sees its end, and may come again.
//!
//! Receives are posted before the client is told that it may send, so they precede its first request.
//! All others wait while a client connects, at most `LIMIT` for one that is silent: choose what they can spare,
//! or call each step when the socket is readable ([clients of an event
//! loop](crate::exchange#clients-of-an-event-loop)). A client creates its queue pair before it opens the socket.
//!
//! # Requests and answers
//! [`dispatch`](crate::handlers::Handlers::dispatch) hands each connection its completions,
//! [`retire_all`](crate::tracked::TrackedQp::retire_all) returns the slots that they are about. A program that posts
//! between two of them takes [`retire_next`](crate::tracked::TrackedQp::retire_next). `dispatch` goes on with the other
//! connections when one has failed; [`try_dispatch`](crate::handlers::Handlers::try_dispatch) would skip them.
//!
//! - A slot is in one place: a receive, `answers`, a send, or `free`. So an answer is sent from where its request came
//!   in, and however many requests a client sends, it has `SLOTS` of memory.
//! - The answers are unsignaled. The ledger [signals](super::sizing#send-queues-and-how-often-to-signal) one in each
//!   half queue.
//! - **An answer holds its place in the send queue until a later completion was polled**, not until the client has it.
//!   So clients that keep up to `SENDS / 2` requests outstanding find a place; those that keep `SENDS` do not,
//!   though each answer has arrived: 20 to 270 times among 65,000 requests here, and never with half as many. Then the
//!   answer waits in `answers` for the next completion of its queue pair. A server that does `post_send(…)?` there
//!   loses its best clients.
//! - A client that does not post receives, or is stopped, gets its answers no more: they fill the send queue, then
//!   `answers`, then there is no receive, and the client waits (RNR). The server keeps no more than its slots, and
//!   serves the others.
//! - The length of a request is checked, and what is in it: an error ends this connection alone.
//!
//! # A client dies
//! | noticed by | when |
//! |---|---|
//! | its socket, which ends | at once, however its process ended. A client that only keeps silent lives |
//! | an answer that fails, and flushed receives | while there is traffic; a host that lost power has no other sign |
//!
//! Whichever comes first: the connection is dropped, and its descriptor removed.
//!
//! - **Dropping destroys the queue pair**, discards what is outstanding, and gives the entries back, `pending`. To keep
//!   tokens that are worth something, [`fail`](crate::tracked::TrackedQp::fail), and drop once it [is
//!   idle](crate::tracked::TrackedQp::is_idle).
//! - **`remove_descriptor`**: the set holds a duplicate of the socket. Until it is removed, a client that lives, and
//!   whose queue pair has failed, does not see that the server has given up.
//! - **`None`** is what `dispatch` passes for completions that were in the queue before. If a new queue pair has the
//!   same number, they retire nothing: its ledger is of another [generation](crate::ledger::Generation).
//! - Nothing here ends the server. `run` returns an error only if the queue or the set has failed:
//!   [recovery](super::recovery).
//!
//! # Shutting down
//! `server.set.stop_handle()` goes to another thread or a signal handler, whose
//! [`stop`](crate::wait_set::StopHandle::stop) makes `run` return. Dropping the server destroys the queue pairs and
//! closes the sockets. Answers that are not sent yet are lost; a client asks the next server again, so a request that
//! must not be executed twice has a number ([recovery](super::recovery#what-is-lost-and-what-is-not)).
//!
//! # What to test
//! - **`kill -9`** of a client at work, then one more client than there are entries for: it is served once the server has
//!   noticed. Of a stopped one (`kill -STOP`), the others must not notice anything.
//! - **Clients with more requests outstanding than they may have**: their answers come, in order.
//! - **`RXE_LOOP_STRICT=1`**: the completion queue overruns at exactly its capacity, so a wrong sum is found.
//! - **`RXE_LOOP_FAULTS="seed=7,spurious=0.3,defer=50us"`**: events without completions, completions that come late.
//!   `fail=0.0005:RETRY_EXC_ERR` fails connections; clients have to connect again then. The guide to tests of `cq-testing` has
//!   the others.
