//! A server in tasks of tokio. One task polls the completion queue for all connections. Each connection is a task that
//! awaits its own requests.
//!
//! This one returns each request. It needs the crates of the [first program](super::first_program) (`cq-verbs` with its feature
//! `tokio`), `anyhow`, and tokio with `macros`, `net`, `rt-multi-thread`, `signal` and `time`. With clients:
//! `cargo run -p transport-rxe-loop --features tokio --example tokio_server`.
//!
//! ```
//! use std::future::Future;
//! use std::os::fd::AsFd;
//! use std::pin::pin;
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use cq_verbs::budget::{Budget, BudgetedHandle};
//! use cq_verbs::device::{Device, Slots};
//! use cq_verbs::setup::{Access, Port};
//! use cq_verbs::task::{DeviceEvents, Driver, Handle, Inbox, Pool, PoolSlot, TaskQp};
//! use cq_verbs::wr::SendWr;
//! use tokio::io::AsyncReadExt;
//! use tokio::net::{TcpListener, TcpStream};
//! use tokio::{select, task::JoinSet, time::timeout};
//!
//! type Failure = anyhow::Error;
//! type Qp<D> = TaskQp<<D as Device>::Qp, PoolSlot<<D as Device>::Memory>>;
//!
//! const CLIENTS: u32 = 64;
//! /// The requests that a client may have outstanding.
//! const WINDOW: u32 = 8;
//! /// Twice as many: an answer occupies its entry until its completion was polled.
//! const SENDS: u32 = 2 * WINDOW;
//! /// The longest message.
//! const SIZE: usize = 4096;
//!
//! # #[cfg(any())]
//! #[tokio::main]
//! async fn main() -> Result<(), Failure> {
//!     let device = transport_rxe_loop::Context::open("loop0")?;
//!     let listener = TcpListener::bind("0.0.0.0:7471").await?;
//!     serve(device, listener, async { drop(tokio::signal::ctrl_c().await) }).await
//! }
//! # fn main() {}
//!
//! /// What all connections share.
//! struct Shared<D: Device> {
//!     pd: D::Pd,
//!     port: Port,
//!     queue: BudgetedHandle<D::CqHandle, Arc<Budget>>,
//!     handle: Handle,
//! }
//!
//! async fn serve<D: Device<Channel: AsFd> + AsFd>(
//!     device: D,
//!     listener: TcpListener,
//!     stop: impl Future<Output = ()>,
//! ) -> Result<(), Failure> {
//!     let driver = Driver::open(&device, CLIENTS * (SENDS + WINDOW))?;
//!     let (queue, handle) = (driver.queue(), driver.handle());
//!     let (pd, port) = (device.alloc_pd()?, device.port(1)?);
//!     let shared = Arc::new(Shared::<D> { pd, port, queue, handle });
//!     let mut events = DeviceEvents::new(device)?;
//!     // Dropping the sets aborts their tasks.
//!     let (mut polling, mut clients) = (JoinSet::from_iter([driver.run()]), JoinSet::new());
//!     let mut stop = pin!(stop);
//!     loop {
//!         select! {
//!             accepted = listener.accept(), if clients.len() < CLIENTS as usize => {
//!                 clients.spawn(serve_client(shared.clone(), accepted?.0));
//!             }
//!             Some(ended) = clients.join_next() => {
//!                 ended?.unwrap_or_else(|error| eprintln!("a client has failed: {error:#}"));
//!             }
//!             event = events.next() => eprintln!("{}", event?),
//!             Some(ended) = polling.join_next() => return Err(ended?.why.into()),
//!             () = &mut stop => return Ok(()),
//!         }
//!     }
//! }
//!
//! /// Returns each message to its client, until the client closes the socket or dies.
//! async fn serve_client<D: Device>(
//!     shared: Arc<Shared<D>>,
//!     mut socket: TcpStream,
//! ) -> Result<(), Failure> {
//!     let qp = Qp::<D>::create(&shared.pd, &shared.queue, &shared.handle, SENDS, WINDOW).await?;
//!     timeout(Duration::from_secs(5), qp.connect_over(&mut socket, &shared.port)).await??;
//!     let slots = (SENDS + WINDOW) as usize;
//!     let pool = Pool::new(Slots::allocate(&shared.pd, slots, SIZE, Access::LOCAL_WRITE)?);
//!     let mut inbox = Inbox::new(&qp, &pool, WINDOW as usize);
//!     loop {
//!         let message = select! {
//!             message = inbox.next() => message,
//!             _ = socket.read_u8() => return Ok(()),
//!         };
//!         // A flushed receive is a consequence; the queue pair has the cause.
//!         let message = message.map_err(|end| qp.failure().map_or(end.into(), Failure::from))?;
//!         let (len, slot) = (message.completed().byte_len() as usize, message.buffer);
//!         let sges = [slot.part(len)?]; // process the request in the slot here
//!         drop(qp.post_send(SendWr::send(0, &sges), slot).await?);
//!     }
//! }
//! ```
//!
//! # The server
//! - **One [`Driver`](crate::task::Driver) for the process**, in a task of its own, with entries for all clients. If the
//!   queue fails, the driver ends, and every request ends with
//!   [`NotPolled`](crate::task::RequestError::NotPolled).
//! - **A queue pair, an [`Inbox`](crate::task::Inbox) and memory for each client**: a client that posts no receives (RNR)
//!   blocks its own task only. `create` waits for the entries of a client that has just ended.
//! - **The socket** ends with the client's process. If its host loses power, an answer fails, or TCP keepalive ends it.
//! - **The pool** has a slot for each receive and each send, so all receives stay posted.
//! - **Long answers**: the request contains a [`RemoteAddr`](crate::wr::RemoteAddr) of the client. The server posts an RDMA
//!   WRITE to it, then the SEND, which arrives later. This takes two send entries for each request. Check the length
//!   against your own buffer; a wrong key fails that connection only.
//! - **Stopping** here aborts the tasks, and answers may be lost. To finish them, notify the tasks by a `watch` channel; each
//!   awaits the [`Posted`](crate::task::Posted) of its last answer, then [`drain`](crate::task::TaskQp::drain)s, with a time
//!   limit. Clients [ask again](super::recovery#what-is-lost-and-what-is-not).
//!
//! # A client with many requests
//! Tasks that share a queue pair share one inbox. Each request has a number, and the answer begins with it:
//!
//! ```
//! use std::collections::HashMap;
//! use std::sync::{Arc, Mutex};
//!
//! use anyhow::Context as _;
//! use cq_verbs::device::{DeviceQp, Memory};
//! use cq_verbs::task::{Inbox, Pool, PoolSlot, TaskQp};
//! use cq_verbs::wr::SendWr;
//! use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
//!
//! /// By the number of a request: its place in the window, and the task that waits.
//! type Pending = HashMap<u64, (OwnedSemaphorePermit, oneshot::Sender<Vec<u8>>)>;
//!
//! struct Client<Q: DeviceQp, M: Memory> {
//!     qp: TaskQp<Q, PoolSlot<M>>,
//!     pool: Pool<M>,
//!     /// A permit for each request that may be outstanding.
//!     window: Arc<Semaphore>,
//!     pending: Mutex<Pending>,
//! }
//!
//! impl<Q: DeviceQp, M: Memory> Client<Q, M> {
//!     async fn ask(&self, number: u64, request: &[u8]) -> anyhow::Result<Vec<u8>> {
//!         let (permit, slot) = (self.window.clone().acquire_owned().await?, self.pool.take().await);
//!         let message = [&number.to_be_bytes(), request].concat();
//!         slot.write(&message)?;
//!         let (sges, (task, answer)) = ([slot.part(message.len())?], oneshot::channel());
//!         // The answer may arrive before the next line. There is no await between the two.
//!         self.pending.lock().unwrap().insert(number, (permit, task));
//!         if let Err(refused) = self.qp.try_post_send(SendWr::send(0, &sges), slot) {
//!             self.pending.lock().unwrap().remove(&number);
//!             return Err(refused.into());
//!         }
//!         Ok(answer.await?)
//!     }
//!
//!     /// Passes answers to the tasks that wait, until the connection fails.
//!     async fn dispatch(&self, mut inbox: Inbox<Q, M>) -> anyhow::Result<()> {
//!         loop {
//!             let message = inbox.next().await?;
//!             let mut answer = vec![0; message.completed().byte_len() as usize];
//!             message.buffer.read(&mut answer)?;
//!             let number = answer.first_chunk().context("a short answer")?;
//!             let asked = self.pending.lock().unwrap().remove(&u64::from_be_bytes(*number));
//!             drop(asked.context("an unknown number")?.1.send(answer.split_off(8)));
//!         }
//!     }
//! }
//! ```
//!
//! `window` has `WINDOW` permits, and the inbox `WINDOW + 1` receives: a permit is free before the receive is posted again.
//! The queue pair has `2 * WINDOW` sends, since a send occupies its entry until its completion was polled, and the pool a
//! slot for each receive and each send: with fewer, `ask` may wait for ever, or fail with QueueFull.
//!
//! `dispatch` runs in a task of its own, and another one reads the socket to its end: a queue pair that only receives does
//! not notice that the server has died. When either ends, [`fail`](crate::task::TaskQp::fail) the queue pair and clear
//! `pending`, which ends the waiting tasks.
//!
//! # Futures that are dropped
//! `select!`, a timeout and an aborted task drop futures. Each method documents its cancel safety. Here:
//!
//! | future | effect |
//! |---|---|
//! | the `Posted` of an answer | the slot returns to the pool once the send has completed |
//! | `ask` | `pending` keeps the permit until the answer has arrived. If the peer [writes to a slot](crate::task::PoolSlot::remote), keep the slot there, too |
//! | [`TaskQp::receive`](crate::task::TaskQp::receive) | the receive takes the next message, which is lost: use the inbox for all receives |
//!
//! # Testing
//! - Drop futures: `timeout(Duration::from_micros(n % 1000), client.ask(n, …))` for many `n`. At the end all permits and
//!   [slots](crate::task::Pool::available) are available again.
//! - Kill a client, then start more clients than there are entries for. `kill -STOP` a client: the others continue.
//! - Test strictly and with faults, as the [server](super::server#testing).
