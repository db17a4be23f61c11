//! From nothing to a message that arrives; then requests with tokens; then a failure, and what is told of it.
//!
//! # What to put into Cargo.toml
//! ```toml
//! [dependencies] # not on crates.io yet: REPOSITORY is your clone
//! cq-core = { path = "REPOSITORY/cq-core" }
//! transport-rxe-loop = { path = "REPOSITORY/transport-rxe-loop" }
//! # for tasks of tokio: { path = "REPOSITORY/transport-rxe-loop", features = ["tokio"] }
//! ```
//!
//! `cq-core` is the engine: completions, requests, polling. `transport-rxe-loop` is a device, `loop0`, that needs no
//! hardware and no root. On hardware the second line names `transport-verbs` instead; the calls are the same. The examples
//! here are generic over the traits of [`device`](crate::device), so they are right for both.
//!
//! # A message
//! ```
//! use std::error::Error;
//! use std::time::Duration;
//!
//! use cq_core::cq::CompletionQueue;
//! use cq_core::wc::Wc;
//! use cq_verbs::device::{Device, Memory, DevicePd, DeviceQp, Region};
//! use cq_verbs::post::Post;
//! use cq_verbs::setup::Access;
//! use cq_verbs::wr::{RecvWr, SendWr};
//!
//! fn first_message<D: Device>(device: &D) -> Result<(), Box<dyn Error>> {
//!     // 1. A completion queue for each end. The receiver will sleep on a channel until it has a completion.
//!     let mut channel = device.create_channel()?;
//!     let send_cq = device.cq(16).create()?;
//!     let recv_cq = device.cq(16).channel(&channel).create()?;
//!
//!     // 2. Two queue pairs, connected: each has to know the endpoint of the other.
//!     let (pd, port) = (device.alloc_pd()?, device.port(1)?);
//!     let mut sender = pd.qp(&send_cq).create()?;
//!     let mut receiver = pd.qp(&recv_cq).create()?;
//!     sender.connect(&port, &receiver.endpoint(&port))?;
//!     receiver.connect(&port, &sender.endpoint(&port))?;
//!
//!     // 3. A buffer that the device may write to, posted before the message comes.
//!     let memory = pd.allocate(64, Access::LOCAL_WRITE)?;
//!     receiver.post_recv(&[RecvWr::new(1, &[memory.sge(..64)?])])?;
//!
//!     // 4. The message. Inline bytes are copied when they are posted, and need no registered memory.
//!     sender.post_send(&[SendWr::send_inline(2, b"hello")])?;
//!
//!     // 5. Its completion at the receiver: which request, and how many bytes.
//!     let (mut cq, mut buffer) = (CompletionQueue::new(recv_cq), [Wc::default(); 16]);
//!     for wc in cq.wait_timeout(&mut buffer, &mut channel, Duration::from_secs(1))? {
//!         let done = wc.result()?;
//!         assert_eq!((done.wr_id(), done.byte_len()), (1, 5));
//!         let mut bytes = [0; 5];
//!         memory.read(0, &mut bytes)?;
//!         assert_eq!(&bytes, b"hello");
//!     }
//!
//!     // 6. And at the sender. Posting has only queued the request: its completion says that it is done.
//!     let mut cq = CompletionQueue::new(send_cq);
//!     while cq.poll(&mut buffer)?.is_empty() {}
//!     assert_eq!(buffer[0].result()?.wr_id(), 2);
//!     Ok(())
//! }
//! ```
//!
//! A program calls it with a device:
//!
//! ```text
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     first_message(&transport_rxe_loop::Context::open("loop0")?)
//! }
//! ```
//!
//! Five things are easily missed:
//!
//! - A receive is posted before the message comes. Without one the sender waits
//!   ([Q7](cq_core::contract#q7)), for ever after [`connect`](crate::device::DeviceQp::connect).
//! - Memory that is in a request belongs to the device until the request has completed. For a send, that is step 6.
//! - Each request is one completion, for a receive at most, for a send if it is signaled
//!   ([C8](cq_core::contract#c8)). They have to be polled: a send queue's slots come back by polling
//!   ([Q5](cq_core::contract#q5)), and a completion queue that is not polled overruns ([O2](cq_core::contract#o2)).
//! - [`poll`](cq_core::cq::CompletionQueue::poll) returns what there is, which may be nothing
//!   ([P3](cq_core::contract#p3)). [`wait`](cq_core::cq::CompletionQueue::wait) sleeps, and returns nothing only when its
//!   deadline has passed; [`wait_timeout`](cq_core::cq::CompletionQueue::wait_timeout), when its time has.
//! - Neither end sends before both are connected.
//!
//! The same as a program that sends 10,000 messages and compares each byte:
//! `cargo run -p transport-rxe-loop --example echo`.
//!
//! # Two programs
//! Each has one of the queue pairs. In place of step 2's calls of `connect`, both tell each other their
//! [`Endpoint`](crate::setup::Endpoint)s by a socket, connect, and wait until both have: [`exchange`](crate::exchange).
//!
//! ```
//! use std::error::Error;
//! use std::net::{TcpListener, TcpStream};
//! use std::time::Duration;
//!
//! use cq_verbs::device::DeviceQp;
//! use cq_verbs::exchange::connect_over;
//! use cq_verbs::setup::Port;
//!
//! fn connect<Q: DeviceQp>(qp: &mut Q, port: &Port, is_receiver: bool) -> Result<TcpStream, Box<dyn Error>> {
//!     const ADDRESS: &str = "127.0.0.1:7471"; // or a Unix socket; on hardware the receiver's host
//!     let stream = match is_receiver {
//!         true => TcpListener::bind(ADDRESS)?.accept()?.0,
//!         false => TcpStream::connect(ADDRESS)?,
//!     };
//!     connect_over(&stream, qp, port, Duration::from_secs(5))?;
//!     Ok(stream) // keep it: it ends when the other program ends
//! }
//! ```
//!
//! Now the receiver may be late with step 3: the message waits for it.
//!
//! # Tokens
//! The `wr_id` of a request is a number that comes back with its completion. A program needs more of it: which buffer is
//! free again, whom a reply was for, what a failed request was. [`TrackedQp`](crate::tracked::TrackedQp) chooses the
//! `wr_id` itself, keeps a token of any type for each request, and returns it once. It also counts the requests, signals
//! where it is necessary, and never posts more than there are slots. This runs, on a scripted queue pair:
//!
//! ```
//! use cq_core::transport::CqKey;
//! use cq_core::wc::{Wc, WcStatus};
//! use cq_testing::fake::{Call, Script};
//! use cq_verbs::post::WrError;
//! use cq_verbs::tracked::{Done, TrackedQp};
//! use cq_verbs::wr::SendWr;
//!
//! let script = Script::<16>::new(CqKey { index: 0, generation: 1 });
//! // At most 4 sends, whose tokens are names, and no receives.
//! let mut qp = TrackedQp::<_, &str>::with_capacity(&script, 4, 0);
//! for name in ["one", "two", "three", "four"] {
//!     qp.post_send(SendWr::send_inline(0, b"ping").unsignaled(), name)?;
//! }
//! let refused = qp.post_send(SendWr::send_inline(0, b"ping"), "five").unwrap_err();
//! assert_eq!((refused.token, refused.why), ("five", WrError::QueueFull)); // the token comes back
//!
//! // What the device says of the second, which the ledger had signaled. It covers the first, too (C9).
//! let Call::Send { wr_id, .. } = script.calls()[1] else { unreachable!() };
//! let mut names = Vec::new();
//! for done in qp.retire(&Wc::new(wr_id, WcStatus::SUCCESS, 7)) {
//!     let Done::Sent(sent) = done else { continue };
//!     sent.result?;
//!     names.push(sent.token);
//! }
//! assert_eq!((names, qp.sends_outstanding()), (vec!["one", "two"], 2));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! With [`create`](crate::tracked::TrackedQp::create) it also reserves the entries of its completion queues, so that they
//! can't overrun: [sizing](super::sizing).
//!
//! # A failure
//! A request fails as a completion with another status than success. Then its queue pair is in ERR, and everything behind
//! it completes with WR_FLUSH ([Q2](cq_core::contract#q2)). Of a failed completion four fields are defined
//! ([C4](cq_core::contract#c4)), and [`result`](cq_core::wc::Wc::result) returns no others. The token tells what the request
//! was:
//!
//! ```
//! use cq_core::transport::CqKey;
//! use cq_core::wc::{Wc, WcStatus};
//! use cq_testing::fake::{Call, Script};
//! use cq_verbs::tracked::{Done, TrackedQp};
//! use cq_verbs::wr::SendWr;
//!
//! #[derive(Debug, PartialEq)]
//! enum Sent { Reply { client: u32 }, Note }
//!
//! let script = Script::<16>::new(CqKey { index: 0, generation: 1 });
//! let mut qp = TrackedQp::<_, Sent>::with_capacity(&script, 4, 0);
//! qp.post_send(SendWr::send_inline(0, b"answer"), Sent::Reply { client: 7 })?;
//! qp.post_send(SendWr::send_inline(0, b"by the way").unsignaled(), Sent::Note)?;
//!
//! // What a device says if the receive of the peer is too small. The note was unsignaled, and completes nevertheless (C8).
//! let [Call::Send { wr_id: reply, .. }, Call::Send { wr_id: note, .. }] = script.calls()[..] else { unreachable!() };
//! let polled = [Wc::new(reply, WcStatus::REM_INV_REQ_ERR, 7), Wc::new(note, WcStatus::WR_FLUSH_ERR, 7)];
//!
//! let mut lost = Vec::new();
//! for wc in &polled {
//!     for done in qp.retire(wc) {
//!         let Done::Sent(sent) = done else { continue };
//!         if let Err(failed) = sent.result {
//!             lost.push((sent.token, failed.status()));
//!         }
//!     }
//! }
//! assert_eq!(lost, [
//!     (Sent::Reply { client: 7 }, WcStatus::REM_INV_REQ_ERR),
//!     (Sent::Note, WcStatus::WR_FLUSH_ERR),
//! ]);
//! assert!(qp.is_idle());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The first failure is the cause, and the flushed ones follow from it. The contract says what each status means and
//! what the peer sees ([Q7](cq_core::contract#q7)):
//!
//! | status | look for |
//! |---|---|
//! | [`RETRY_EXC_ERR`](cq_core::wc::WcStatus::RETRY_EXC_ERR) | the peer has ended, was reset, or never connected |
//! | [`RNR_RETRY_EXC_ERR`](cq_core::wc::WcStatus::RNR_RETRY_EXC_ERR) | the peer posts too few receives |
//! | [`REM_INV_REQ_ERR`](cq_core::wc::WcStatus::REM_INV_REQ_ERR), [`LOC_LEN_ERR`](cq_core::wc::WcStatus::LOC_LEN_ERR) | a message longer than its receive |
//! | [`REM_ACCESS_ERR`](cq_core::wc::WcStatus::REM_ACCESS_ERR) | the key, range or rights of a WRITE or READ |
//! | [`LOC_PROT_ERR`](cq_core::wc::WcStatus::LOC_PROT_ERR) | the key, range or rights of the request's own SGEs |
//! | [`WR_FLUSH_ERR`](cq_core::wc::WcStatus::WR_FLUSH_ERR) | an earlier failure of the queue pair, or its overrun completion queue |
//!
//! Calls that are refused return an error at once, and change nothing: it prints as a sentence, and
//! its causes are its sources: `{error:#}` of anyhow prints all of them.
//!
//! # Where to go on
//! | to | read | run |
//! |---|---|---|
//! | sleep, in a thread, an event loop or tasks | [events](super::events) | `cargo run -p transport-rxe-loop --example epoll_channel`, `mio`, `tokio_server` |
//! | serve many clients, any of which may be killed | [server](super::server), [sizing](super::sizing) | `cargo run -p transport-rxe-loop --example kv_store` |
//! | do so in tasks of tokio | the guide `tasks` | `cargo run -p transport-rxe-loop --features tokio --example tokio_server` |
//! | forward messages without copying or dropping | [`retire_next`](crate::tracked::TrackedQp::retire_next) | `cargo run -p transport-rxe-loop --example forward` |
//! | WRITE to the peer's memory | [`SendWr::write`](crate::wr::SendWr::write) | `cargo run -p bench --example replicated_log` |
//! | go on after failures | [recovery](super::recovery) | `cargo run -p bench --example recovery` |
//! | test all of it | the guide to tests of `cq-testing` | `RXE_LOOP_FAULTS="seed=7,defer=50us" cargo test` |
//! | feed the queue from own software | [`queue`](cq_core::queue) | `cargo run -p cq-core --example fan_in`, `event_loop`, `nvme` |
