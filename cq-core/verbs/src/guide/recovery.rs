//! Recovering from a failed connection, an overrun completion queue, and the death of a peer.
//!
//! A whole program, whose queue overruns and whose receiver dies, and in which each message arrives once: `cargo run -p bench
//! --example recovery`.
//!
//! # What is lost, and what is not
//! - **A completion with success** means that the peer's *device* has the message. The peer's *program* may die before it
//!   polls. To lose no message, keep it until the peer's program has acknowledged it.
//! - **A failed or flushed request** may have been executed, if only its acknowledgement was lost
//!   ([Q7](cq_core::contract#q7)). To execute nothing twice, number the messages; the peer knows the number that it expects.
//! - **Unsignaled requests** before a failed one were successful ([C9](cq_core::contract#c9)): the ledger returns their tokens
//!   with success.
//!
//! When two ends connect again, each sends the number that it expects next with its endpoint. Messages from that number on are
//! sent again, whether they have completed or not.
//!
//! # Draining
//! [`drain`](crate::tracked::TrackedQp::drain) goes to ERR and polls until everything outstanding was flushed. Then each token
//! has been returned, and the device uses no buffer. Completions of other queue pairs are passed on.
//!
//! ```
//! use std::error::Error;
//! use std::ops::ControlFlow;
//! use std::time::{Duration, Instant};
//!
//! use cq_core::cq::CompletionQueue;
//! use cq_core::wc::Wc;
//! use cq_verbs::device::DeviceQp;
//! use cq_verbs::ledger::Reaped;
//! use cq_verbs::polling::PollWc;
//! use cq_verbs::setup::{Endpoint, Port};
//! use cq_verbs::tracked::{Done, TrackedQp};
//!
//! /// Connects the same queue pair again. Returns the numbers of the messages to send again, in order. `kept` has those
//! /// that have completed and are not acknowledged.
//! fn reconnect<Q: DeviceQp, T: PollWc>(
//!     qp: &mut TrackedQp<Q, u64>, // the token of a send is the number of its message
//!     cq: &mut CompletionQueue<T>,
//!     mut kept: Vec<u64>,
//!     port: &Port,
//!     exchange: impl FnOnce(Endpoint) -> Result<(Endpoint, u64), Box<dyn Error>>,
//! ) -> Result<Vec<u64>, Box<dyn Error>> {
//!     let deadline = Instant::now() + Duration::from_secs(10); // for a device that fails
//!     qp.drain(&mut [cq], &mut [Wc::default(); 32], |reaped| match reaped {
//!         Reaped::Done(Done::Sent(sent)) => {
//!             kept.push(sent.token);
//!             ControlFlow::Continue(())
//!         }
//!         Reaped::Nothing if Instant::now() > deadline => ControlFlow::Break(()),
//!         _ => ControlFlow::Continue(()),
//!     })?;
//!     qp.reset(|_| (), |_| ())?; // nothing is outstanding, so no token is discarded
//!     let (peer, expected) = exchange(qp.get_ref().endpoint(port))?;
//!     qp.connect(port, &peer)?;
//!     kept.retain(|number| *number >= expected);
//!     Ok(kept)
//! }
//! ```
//!
//! - Then the receiver posts receives and reports that, before the other end sends.
//! - [`DrainError::Poll`](crate::tracked::DrainError::Poll): the completion queue has failed. Destroy the queue pair. Its
//!   outstanding tokens are dropped with it; take them by [`tokens_mut`](crate::tracked::TrackedQp::tokens_mut) before.
//! - [`reset`](crate::tracked::TrackedQp::reset) without draining is quicker. Outstanding requests have no completions
//!   ([Q2](cq_core::contract#q2)); it passes their tokens on. Completions that are still in the queue retire nothing later.
//! - Receives of an SRQ stay there, except those that the queue pair has consumed: go to ERR, and wait for
//!   [QP_LAST_WQE_REACHED](super::poll_mode#the-last-receive), with a deadline.
//!
//! # A completion queue that has overrun
//! It returns what it had stored, then [`Overrun`](cq_core::transport::PollError::Overrun) at each poll
//! ([O3](cq_core::contract#o3)). Its queue pairs are in ERR ([O4](cq_core::contract#o4)). Replace it:
//!
//! ```
//! use cq_core::cq::CompletionQueue;
//! use cq_core::transport::PollError;
//! use cq_core::wc::Wc;
//! use cq_verbs::polling::PollWc;
//! use cq_verbs::device::{Destroy, Device};
//!
//! /// `qps` are all queue pairs that use the queue.
//! fn replace<D: Device, Q>(
//!     device: &D,
//!     mut cq: CompletionQueue<D::Cq>,
//!     qps: Vec<Q>,
//!     capacity: u32,
//!     mut completed: impl FnMut(&Wc),
//! ) -> Result<CompletionQueue<D::Cq>, Box<dyn std::error::Error>> {
//!     // 1. What was stored is valid. On hardware the error may come only once CQ_ERR was taken from the device's
//!     //    asynchronous events; a device that fails before may not report the overrun.
//!     let mut buffer = [Wc::default(); 32];
//!     loop {
//!         match cq.poll(&mut buffer) {
//!             Ok(batch) => batch.iter().for_each(&mut completed),
//!             Err(PollError::Overrun { .. } | PollError::Failed | PollError::Device(_)) => break,
//!             Err(error) => return Err(error.into()),
//!         }
//!     }
//!     // 2. Queue pairs first: a queue that is in use can't be destroyed (Q11).
//!     drop(qps);
//!     cq.into_inner().destroy().map_err(|in_use| in_use.to_string())?;
//!     // 3. Large enough for all that may be outstanding.
//!     Ok(CompletionQueue::new(device.cq(capacity).create()?))
//! }
//! ```
//!
//! Then create the queue pairs anew, with new numbers. The peers, whose sends fail with RETRY_EXC, connect again, too. To avoid
//! overruns, [reserve entries](super::sizing#completion-queues).
//!
//! # A peer that has died
//! RC has no keepalive.
//!
//! | detected by | when |
//! |---|---|
//! | a send that fails with RETRY_EXC; those behind it fail with WR_FLUSH | after the timeouts of [`connect`](crate::device::DeviceQp::connect): half a second on the loopback, a few seconds on hardware; of a connection by [`cm`](crate::cm) about 15 seconds: call [`check_ended`](crate::cm::Connection::check_ended), too |
//! | the end of the socket of [`exchange`](crate::exchange) | immediately, if its process has died and its host has not |
//! | DISCONNECTED of the connection manager ([`cm`](crate::cm)) | immediately, under the same condition |
//! | nothing | if the program only receives, and has no socket |
//!
//! As keepalive, post a [probe](crate::wr::SendWr::probe), an RDMA WRITE of no bytes, which needs a send entry:
//!
//! ```
//! use cq_verbs::device::DeviceQp;
//! use cq_verbs::ledger::NotPostedError;
//! use cq_verbs::tracked::TrackedQp;
//! use cq_verbs::wr::SendWr;
//!
//! /// Call it each second in which nothing has arrived. If `Done::Sent` has a failure, the peer is gone.
//! fn probe<Q: DeviceQp>(qp: &mut TrackedQp<Q, (), usize>) -> Result<(), NotPostedError<()>> {
//!     match qp.available_sends() {
//!         0 => Ok(()), // the last one is outstanding
//!         _ => qp.post_send(SendWr::probe(0), ()),
//!     }
//! }
//! ```
//!
//! A [server](super::server#a-client-that-dies) drops the `TrackedQp` of a client that is gone; with an SRQ, it first [polls until
//! its receives are retired](super::poll_mode#the-end). A client drains its queue pair, and connects it again.
//!
//! # Testing
//! `RXE_LOOP_FAULTS="seed=7,fail=0.001:RETRY_EXC_ERR"` fails connections, `overrun=#100` overruns queues. Kill processes,
//! too: see the guide to tests of `cq-testing`.
