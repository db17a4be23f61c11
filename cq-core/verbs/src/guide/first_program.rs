//! A first program: two queue pairs, one message, two completions. Then a token for each request, and a failure.
//!
//! ```
//! use std::error::Error;
//! use std::time::Duration;
//!
//! use cq_core::cq::CompletionQueue;
//! use cq_core::wc::Wc;
//! use cq_verbs::device::{Device, DevicePd, DeviceQp, Memory, Region};
//! use cq_verbs::post::Post;
//! use cq_verbs::setup::Access;
//! use cq_verbs::wr::{RecvWr, SendWr};
//!
//! # #[cfg(any())]
//! fn main() -> Result<(), Box<dyn Error>> {
//!     first_message(&transport_rxe_loop::Context::open("loop0")?)
//! }
//! # fn main() {}
//!
//! fn first_message<D: Device>(device: &D) -> Result<(), Box<dyn Error>> {
//!     // 1. A completion queue for each end. The receiver sleeps on a channel.
//!     let mut channel = device.create_channel()?;
//!     let send_cq = device.cq(16).create()?;
//!     let recv_cq = device.cq(16).channel(&channel).create()?;
//!
//!     // 2. Two RC queue pairs. An endpoint has the QPN, PSN, LID and GID.
//!     let (pd, port) = (device.alloc_pd()?, device.port(1)?);
//!     let mut sender = pd.qp(&send_cq).create()?;
//!     let mut receiver = pd.qp(&recv_cq).create()?;
//!     sender.connect(&port, &receiver.endpoint(&port))?;
//!     receiver.connect(&port, &sender.endpoint(&port))?;
//!
//!     // 3. A receive, posted before the message arrives.
//!     let memory = pd.allocate(64, Access::LOCAL_WRITE)?;
//!     receiver.post_recv(&[RecvWr::new(1, &[memory.sge(..64)?])])?;
//!
//!     // 4. The message. Inline bytes are copied by the call, and need no registered memory.
//!     sender.post_send(&[SendWr::send_inline(2, b"hello")])?;
//!
//!     // 5. The receiver sleeps until there is a completion.
//!     let (mut cq, mut wcs) = (CompletionQueue::new(recv_cq), [Wc::default(); 16]);
//!     for wc in cq.wait_timeout(&mut wcs, &mut channel, Duration::from_secs(1))? {
//!         let done = wc.result()?;
//!         let mut bytes = vec![0; done.byte_len() as usize];
//!         memory.read(0, &mut bytes)?;
//!         println!("request {}: {}", done.wr_id(), String::from_utf8(bytes)?);
//!     }
//!
//!     // 6. The sender polls. Posting only queues a request: its completion says that it is done.
//!     let mut cq = CompletionQueue::new(send_cq);
//!     while cq.poll(&mut wcs)?.is_empty() {}
//!     println!("request {} is done", wcs[0].result()?.wr_id());
//!     Ok(())
//! }
//! ```
//!
//! `loop0` needs no hardware and no root. On hardware, `main` names
//! `transport_verbs` and its device; `first_message` stays, since it uses the traits of [`device`](crate::device).
//!
//! ```toml
//! [dependencies] # not on crates.io yet: REPOSITORY is your clone
//! cq-core = { path = "REPOSITORY/cq-core" }
//! cq-verbs = { path = "REPOSITORY/cq-core/verbs" }
//! transport-rxe-loop = { path = "REPOSITORY/transport-rxe-loop" }
//! ```
//!
//! # What to know
//! - **Post receives before messages arrive.** Without a receive the sender waits (RNR, receiver not ready), without a
//!   limit after [`connect`](crate::device::DeviceQp::connect) ([Q7](cq_core::contract#q7)).
//! - **Memory in a request belongs to the device** until the request has completed.
//! - **Poll every completion.** Each receive has one, and each signaled or failed send ([C8](cq_core::contract#c8)). Polling
//!   frees the slots of the send queue ([Q5](cq_core::contract#q5)), and a completion queue that is not polled
//!   overruns, permanently ([O2](cq_core::contract#o2), [O3](cq_core::contract#o3)).
//! - [`poll`](cq_core::cq::CompletionQueue::poll), as `ibv_poll_cq`, returns at once, perhaps nothing.
//!   [`wait`](cq_core::cq::CompletionQueue::wait) sleeps, and returns nothing only at its deadline.
//! - **Neither end sends before both are connected.**
//!
//! # Two programs
//! Each has one queue pair. In place of `connect` both call [`connect_over`](crate::exchange::connect_over) with a connected
//! TCP or Unix socket: it exchanges the endpoints, connects, and returns when both ends have connected. Keep the socket: it
//! ends when the other program does. RC has no keepalive, so a queue pair that only receives never notices
//! ([recovery](super::recovery#a-peer-that-has-died)). To connect by IP address, as librdmacm does: [`cm`](crate::cm).
//!
//! # Tokens and failures
//! A `wr_id` is only a number. [`TrackedQp`](crate::tracked::TrackedQp) chooses it, keeps a token of any type for each
//! request, and returns it once: a buffer, a client, a connection. It posts no more than there are slots, and signals
//! where it is necessary. This runs without a device, with `cq-testing` from `REPOSITORY/cq-core/testing`:
//!
//! ```
//! use cq_core::transport::CqKey;
//! use cq_core::wc::{Wc, WcStatus};
//! use cq_testing::fake::{Call, Script};
//! use cq_verbs::post::WrError;
//! use cq_verbs::tracked::{Done, TrackedQp};
//! use cq_verbs::wr::SendWr;
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let script = Script::<16>::new(CqKey { index: 0, generation: 1 });
//!     // At most 4 sends, whose tokens are names, and no receives.
//!     let mut qp = TrackedQp::<_, &str>::with_capacity(&script, 4, 0);
//!     for name in ["one", "two", "three", "four"] {
//!         qp.post_send(SendWr::send_inline(0, b"ping").unsignaled(), name)?;
//!     }
//!     let refused = qp.post_send(SendWr::send_inline(0, b"ping"), "five").unwrap_err();
//!     assert_eq!((refused.token, refused.why), ("five", WrError::QueueFull)); // the token comes back
//!
//!     // The ledger had the second signaled: its success covers the first (C9). The third is too long for the peer's
//!     // receive. The fourth is flushed, and completes although it is unsignaled (C8).
//!     let wc = |nth: usize, status| {
//!         let Call::Send { wr_id, .. } = script.calls()[nth] else { unreachable!() };
//!         Wc::new(wr_id, status, 7)
//!     };
//!     let polled =
//!         [wc(1, WcStatus::SUCCESS), wc(2, WcStatus::REM_INV_REQ_ERR), wc(3, WcStatus::WR_FLUSH_ERR)];
//!     for done in qp.retire_all(&polled) {
//!         let Done::Sent(sent) = done else { continue };
//!         match sent.result {
//!             Ok(()) => println!("{} was sent", sent.token),
//!             Err(failed) => println!("{} failed: {}", sent.token, failed.status()),
//!         }
//!     }
//!     assert!(qp.is_idle());
//!     Ok(())
//! }
//! ```
//!
//! After a failure an RC queue pair is in ERR, and everything behind the failed request completes with WR_FLUSH
//! ([Q2](cq_core::contract#q2)). [`result`](cq_core::wc::Wc::result) returns only the four fields that are defined then
//! ([C4](cq_core::contract#c4)). The first failure is the cause:
//!
//! | status | look for |
//! |---|---|
//! | [`RETRY_EXC_ERR`](cq_core::wc::WcStatus::RETRY_EXC_ERR) | a peer that has ended, was reset, or never connected |
//! | [`RNR_RETRY_EXC_ERR`](cq_core::wc::WcStatus::RNR_RETRY_EXC_ERR) | too few receives at the peer |
//! | [`REM_INV_REQ_ERR`](cq_core::wc::WcStatus::REM_INV_REQ_ERR), [`LOC_LEN_ERR`](cq_core::wc::WcStatus::LOC_LEN_ERR) | a message longer than its receive |
//! | [`REM_ACCESS_ERR`](cq_core::wc::WcStatus::REM_ACCESS_ERR) | key, range or rights of a WRITE or READ |
//! | [`LOC_PROT_ERR`](cq_core::wc::WcStatus::LOC_PROT_ERR) | key, range or rights of the request's own SGEs |
//! | [`WR_FLUSH_ERR`](cq_core::wc::WcStatus::WR_FLUSH_ERR) | an earlier failure, or an overrun completion queue |
//!
//! Rule [Q7](cq_core::contract#q7) has all causes. A call that is refused returns an error at once and changes
//! nothing; `{error:#}` of anyhow prints its causes, too.
//!
//! # Next
//! Examples run by `cargo run -p transport-rxe-loop --example NAME`; `echo` is the program above for 10,000 messages.
//!
//! | to | read | example |
//! |---|---|---|
//! | sleep in epoll, threads or tasks | [events](super::events) | `epoll_channel`, `mio` |
//! | never sleep; forward without copying | [poll-mode loops](super::poll_mode) | `forward` |
//! | serve many clients | [server](super::server) | `kv_store` |
//! | share receives (SRQ) | [`TrackedSrq`](crate::tracked::TrackedSrq) | `hello_srq` |
//! | WRITE to the peer's memory | [`SendWr::write`](crate::wr::SendWr::write) | `replicated_log` (`-p bench`) |
//! | recover from failures | [recovery](super::recovery) | `recovery` (`-p bench`) |
