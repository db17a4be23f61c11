//! A server of tokio: one task polls for all connections, and each connection is a task that awaits its own requests.
//!
//! The client asks for bytes by a SEND, and says where they are to be written. The server WRITEs them there, and SENDs
//! the answer behind them: on a connection, what is posted later arrives later. Cargo.toml: the feature `tokio` of your
//! transport, and of tokio itself `macros`, `net`, `rt-multi-thread` and `time`. Only `find`, what the server is for,
//! is left out. It runs on every device.
//!
//! ```
//! use std::collections::HashMap;
//! use std::future::Future;
//! use std::os::fd::AsFd;
//! use std::pin::pin;
//! use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
//! use std::time::Duration;
//!
//! use anyhow::{Context as _, bail};
//! use cq_verbs::budget::{Budget, BudgetedHandle};
//! use cq_verbs::device::{Device, Slots};
//! use cq_verbs::setup::{Access, Port};
//! use cq_verbs::task::{DeviceEvents, Driver, Finished, Handle, Inbox, Pool, PoolSlot, Posted, TaskQp};
//! use cq_verbs::wr::{RemoteAddr, SendWr};
//! use tokio::io::AsyncReadExt;
//! use tokio::net::{TcpListener, TcpStream};
//! use tokio::{select, time::timeout};
//! use tokio::sync::{oneshot, watch};
//! use tokio::task::JoinSet;
//!
//! type Failure = anyhow::Error;
//!
//! const CLIENTS: u32 = 64;
//! /// The requests that a client may have outstanding.
//! const WINDOW: u32 = 8;
//! /// Twice the two that each may take: a send holds its place until its completion was polled.
//! const SENDS: u32 = 2 * 2 * WINDOW;
//! /// A number, a length, an address and a key. The answer: the number, once the bytes are there.
//! const REQUEST: usize = 4 * size_of::<u64>();
//! const BULK: usize = 16 << 10;
//! /// How long connecting and stopping may take.
//! const LIMIT: Duration = Duration::from_secs(5);
//!
//! type Memory<D> = PoolSlot<<D as Device>::Memory>;
//! type Qp<D> = TaskQp<<D as Device>::Qp, Memory<D>>;
//! type Messages<D> = Inbox<<D as Device>::Qp, <D as Device>::Memory>;
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
//!     let (mut polling, mut clients) = (JoinSet::from_iter([driver.run()]), JoinSet::new());
//!     let (stopping, mut stop) = (watch::Sender::new(false), pin!(stop));
//!     loop {
//!         select! {
//!             // The next one waits for entries.
//!             accepted = listener.accept(), if clients.len() < CLIENTS as usize => {
//!                 clients.spawn(serve_client(shared.clone(), accepted?.0, stopping.subscribe()));
//!             }
//!             Some(ended) = clients.join_next() => report(ended?),
//!             event = events.next() => eprintln!("{}", event?),
//!             Some(ended) = polling.join_next() => {
//!                 let ended = ended?; // has the queue, so its event is not lost
//!                 if let Ok(event) = timeout(LIMIT, events.next()).await {
//!                     eprintln!("{}", event?);
//!                 }
//!                 return Err(ended.why.into());
//!             }
//!             () = &mut stop => break,
//!         }
//!     }
//!     drop(listener);
//!     stopping.send_replace(true);
//!     let all = async {
//!         while let Some(ended) = clients.join_next().await {
//!             report(ended?);
//!         }
//!         Ok(())
//!     };
//!     timeout(LIMIT, all).await?
//! }
//!
//! /// Answers a client until its socket ends, or the server stops.
//! async fn serve_client<D: Device>(
//!     shared: Arc<Shared<D>>,
//!     mut socket: TcpStream,
//!     mut stop: watch::Receiver<bool>,
//! ) -> Result<(), Failure> {
//!     let qp = Qp::<D>::create(&shared.pd, &shared.queue, &shared.handle, SENDS, WINDOW).await?;
//!     timeout(LIMIT, qp.connect_over(&mut socket, &shared.port)).await??;
//!     let slots = |count: u32, size| Slots::allocate(&shared.pd, count as usize, size, Access::LOCAL_WRITE);
//!     let messages = Pool::new(slots(WINDOW + SENDS, REQUEST)?);
//!     let bulk = Pool::new(slots(WINDOW, BULK)?);
//!     let (mut inbox, mut last) = (Inbox::new(&qp, &messages, WINDOW as usize), None);
//!     loop {
//!         select! {
//!             message = inbox.next() => match message {
//!                 Ok(message) => last = Some(answer::<D>(&qp, &bulk, message).await?),
//!                 // A flush is only a consequence.
//!                 Err(end) => return Err(qp.failure().map_or(end.into(), Failure::from)),
//!             },
//!             // It sends nothing there: the client has ended, however it did.
//!             _ = socket.read_u8() => return Ok(()),
//!             _ = stop.changed() => break,
//!         }
//!     }
//!     // Those before it have completed, too.
//!     if let Some(last) = last {
//!         last.await?;
//!     }
//!     Ok(qp.drain().await?)
//! }
//!
//! /// WRITEs what is asked for, and sends the answer behind it, from the slot that the request came in.
//! async fn answer<D: Device>(
//!     qp: &Qp<D>,
//!     bulk: &Pool<D::Memory>,
//!     message: Finished<Memory<D>>,
//! ) -> Result<Posted<Memory<D>>, Failure> {
//!     if message.completed().byte_len() as usize != REQUEST {
//!         bail!("a request has another length");
//!     }
//!     let (mut request, slot) = ([[0; 8]; 4], message.buffer);
//!     slot.read(request.as_flattened_mut())?;
//!     let [number, len, addr, rkey] = request.map(u64::from_be_bytes);
//!     if len > 0 {
//!         let (data, to) = (bulk.take().await, RemoteAddr { addr, rkey: rkey.try_into()? });
//!         let sges = [data.part(len.try_into()?)?];
//!         data.write(&find(number, len as usize))?;
//!         drop(qp.post_send(SendWr::write(0, &sges, to), data).await?);
//!     }
//!     let sges = [slot.part(size_of_val(&number))?];
//!     Ok(qp.post_send(SendWr::send(0, &sges), slot).await?)
//! }
//!
//! fn report(ended: Result<(), Failure>) {
//!     if let Err(error) = ended {
//!         eprintln!("a client: {error:#}");
//!     }
//! }
//!
//! /// By the number of a request: where its bytes are written to, and who waits for them.
//! type Pending<D> = HashMap<u64, (Memory<D>, oneshot::Sender<Memory<D>>)>;
//!
//! struct Client<D: Device> {
//!     qp: Qp<D>,
//!     /// For requests, and for the inbox.
//!     messages: Pool<D::Memory>,
//!     /// `WINDOW` slots, so there are no more requests at a time. With LOCAL_WRITE and REMOTE_WRITE.
//!     bulk: Pool<D::Memory>,
//!     pending: Mutex<Pending<D>>,
//! }
//!
//! impl<D: Device> Client<D> {
//!     fn pending(&self) -> MutexGuard<'_, Pending<D>> {
//!         self.pending.lock().unwrap_or_else(PoisonError::into_inner)
//!     }
//!
//!     async fn ask(&self, number: u64, len: usize) -> Result<Vec<u8>, Failure> {
//!         let (to, message) = (self.bulk.take().await, self.messages.take().await);
//!         let RemoteAddr { addr, rkey } = to.remote();
//!         let request = [number, len as u64, addr, rkey.into()].map(u64::to_be_bytes);
//!         message.write(request.as_flattened())?;
//!         let (sges, (task, answer)) = ([message.part(REQUEST)?], oneshot::channel());
//!         // The answer may come before the next line. Nothing is awaited between the two.
//!         self.pending().insert(number, (to, task));
//!         if let Err(end) = self.qp.try_post_send(SendWr::send(0, &sges), message) {
//!             self.pending().remove(&number);
//!             return Err(end.into());
//!         }
//!         let (to, mut data) = (answer.await?, vec![0; len]);
//!         to.read(&mut data)?;
//!         Ok(data)
//!     }
//!
//!     /// Passes answers on, until the connection fails.
//!     async fn dispatch(&self, mut inbox: Messages<D>) -> Result<(), Failure> {
//!         loop {
//!             let (message, mut number) = (inbox.next().await?, [0; 8]);
//!             message.buffer.read(&mut number)?;
//!             let asked = self.pending().remove(&u64::from_be_bytes(number));
//!             let (to, task) = asked.context("nobody has asked")?;
//!             drop(task.send(to)); // returns to the pool if nobody waits: the peer is done with it
//!         }
//!     }
//! }
//! # fn find(_number: u64, len: usize) -> Vec<u8> { vec![0; len] }
//! ```
//!
//! `serve(Context::open("loop0")?, listener, async { drop(ctrl_c().await) })` starts the server. A smaller one, with
//! its clients: `cargo run -p transport-rxe-loop --features tokio --example tokio_server`.
//!
//! # The server
//! - **One [`Driver`](crate::task::Driver) for the process**, in a task of its own, with entries for all clients. It
//!   ends if its queue fails, and then nothing goes on.
//! - **A queue pair, an [`Inbox`](crate::task::Inbox) and memory for each client**, so one that takes no answers holds
//!   up itself alone. `create` waits for the entries of a client that is just gone; the server accepts no more than it
//!   has entries for.
//! - **A connection ends with its socket**, which ends with the client's process. A wrong length or key fails that
//!   connection alone.
//! - **Stopping**: each task ends the answer that it is at, awaits its last send, which completes after all others, and
//!   [drains](crate::task::TaskQp::drain) its queue pair; `serve` joins them. Requests that were not taken yet are
//!   lost: the client sees the end of its socket, and asks the next server, by the same number
//!   ([recovery](super::recovery#what-is-lost-and-what-is-not)).
//!
//! | capacity | here | why |
//! |---|---|---|
//! | receives | `WINDOW` | one for each request that a client may have outstanding |
//! | sends | twice those of `WINDOW` answers | a place is free again once the driver has polled its completion; the client may have asked again by then. With half of what a window takes, one post in 17 to 38 [waited](crate::task::TaskQp::post_send) on the loopback; with all of it, or this, none of 780,000 |
//! | messages | receives and sends | an answer is sent from the slot of its request. With fewer, the inbox has fewer receives posted |
//! | bulk | `WINDOW` | a WRITE owns a slot until it has completed. With fewer, answers wait for one another |
//!
//! # A client with many requests
//! Its tasks share a queue pair and one inbox. So a request has a number, the answer repeats it, and a map says who
//! waits. `dispatch` runs beside those who ask, and never waits for them. When it ends,
//! [`fail`](crate::task::TaskQp::fail) the queue pair, so that nothing is written any more, and clear `pending`: its
//! senders are dropped, which tells those who wait.
//!
//! # Futures that are dropped
//! By `select!`, a timeout, the end of a task. [The table](super::events#tasks) has what each leaves behind. Here:
//!
//! | future | afterwards |
//! |---|---|
//! | `inbox.next()`, when the socket or the stop comes first | it has taken nothing |
//! | the request of an answer, which nobody awaits | it owns its slot until it has completed. So `drop(qp.post_send(…).await?)` is right |
//! | `answer`, when stopping takes longer than `LIMIT` | a WRITE may be posted without the SEND behind it: its connection ends, too |
//! | `ask`, while it waits for the answer | `pending` owns the slot, since the peer still writes there, and no request of this side keeps it ([`PoolSlot::remote`](crate::task::PoolSlot::remote)). The answer returns it to the pool |
//! | `ask`, between the map and the queue | nothing is awaited there: that is why it is `try_post_send` |
//! | [`TaskQp::receive`](crate::task::TaskQp::receive), under a timeout for an answer | the receive takes the next message, which is lost. So all receives are the inbox's |
//!
//! # What to test
//! - **Dropped futures**: `timeout(Duration::from_micros(n % 1000), client.ask(n, len))` for many `n`, and each answer
//!   compared. At the end all slots of `bulk` are [available](crate::task::Pool::available) again.
//! - **A client that is killed** at work, and then one more than there are entries for. With one that is stopped (`kill
//!   -STOP`), the others go on, and `serve` returns after `LIMIT`.
//! - **A wrong length, a wrong key**: the connection ends, and `report` says why.
//! - **`RXE_LOOP_STRICT=1`**, and `RXE_LOOP_FAULTS="seed=7,spurious=0.3,defer=50us"`: the guide to tests of `cq-testing`.
