//! Going on after a failure: draining, a new completion queue, a new connection, and what to send again.
//!
//! The whole program, in which a queue overruns and a receiver goes away, and each message still arrives once:
//! `cargo run -p bench --example recovery`, and with the feature `verbs` on hardware. This page has its essential lines.
//!
//! # What is lost, and what is not
//! - A **completion with success** says that the peer's *device* has the message, not that the peer's *program* has seen it:
//!   the peer may die before it polls, or its completion queue may drop the completion. So a program that must not lose a
//!   message keeps it until the peer's program has acknowledged it.
//! - A **failed or flushed request** may have been executed: the answer was lost, not the request
//!   ([Q7](cq_core::contract#q7)). So a program that must not do a thing twice numbers its messages, and the peer knows
//!   the number that it expects next.
//! - Of **unsignaled requests** before a failed one, all were successful ([C9](cq_core::contract#c9)): the ledger returns
//!   their tokens with success.
//!
//! When two ends connect anew, each tells the other what it expects next, beside its endpoint. Messages before that number
//! are done; all others, completed or not, are sent again.
//!
//! # Draining
//! [`drain`](crate::tracked::TrackedQp::drain) goes to ERR and polls until everything outstanding has been flushed. Then
//! every token has come back, and no buffer is in use. Other queue pairs' completions are passed on, since they may share the
//! queue.
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
//! /// Ends a connection, and begins another with the same queue pair. Returns the numbers of the messages that are to be
//! /// sent again, in order. `kept` has those that have completed and are not acknowledged.
//! fn reconnect<Q: DeviceQp, T: PollWc>(
//!     qp: &mut TrackedQp<Q, u64>, // the token of a send is the number of its message
//!     cq: &mut CompletionQueue<T>,
//!     mut kept: Vec<u64>,
//!     port: &Port,
//!     exchange: impl FnOnce(Endpoint) -> Result<(Endpoint, u64), Box<dyn Error>>,
//! ) -> Result<Vec<u64>, Box<dyn Error>> {
//!     let deadline = Instant::now() + Duration::from_secs(10);
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
//! - Draining ends on its own where the device works: each request completes exactly once
//!   ([C8](cq_core::contract#c8)). The deadline is for a device that does not.
//! - [`DrainError::Poll`](crate::tracked::DrainError::Poll): a completion queue has failed, and what is outstanding never
//!   completes there. Destroy the queue pair instead. Its tokens are dropped with it; take them out before, by
//!   [`tokens_mut`](crate::tracked::TrackedQp::tokens_mut), if they are needed.
//! - [`reset`](crate::tracked::TrackedQp::reset) without draining discards requests without completions
//!   ([Q2](cq_core::contract#q2)), and passes their tokens on. It is quicker. Completions from before that are still in the
//!   queue retire nothing afterwards, since the ledger has another generation.
//! - Receives of a shared receive queue stay there, except those that a queue pair was about to use: go to ERR, and wait
//!   for [QP_LAST_WQE_REACHED](super::poll_mode#the-last-receive), with a deadline.
//!
//! # A completion queue that has overrun
//! It returns what it had stored, in order, then [`Overrun`](cq_core::transport::PollError::Overrun) for ever
//! ([O3](cq_core::contract#o3)). Its queue pairs are in ERR ([O4](cq_core::contract#o4)). It can't be repaired; it is replaced, as
//! is one that has failed in another way:
//!
//! ```
//! use cq_core::cq::CompletionQueue;
//! use cq_core::transport::PollError;
//! use cq_core::wc::Wc;
//! use cq_verbs::polling::PollWc;
//! use cq_verbs::device::{Destroy, Device};
//!
//! /// Replaces a completion queue that has overrun by a larger one. `qps` are all queue pairs that use it.
//! fn replace<D: Device, Q>(
//!     device: &D,
//!     mut cq: CompletionQueue<D::Cq>,
//!     qps: Vec<Q>,
//!     capacity: u32,
//!     mut completed: impl FnMut(&Wc),
//! ) -> Result<CompletionQueue<D::Cq>, Box<dyn std::error::Error>> {
//!     // 1. What was stored is valid. On hardware the error may come only once CQ_ERR was taken from the device's
//!     //    asynchronous events, by whichever thread; a device that fails before that may not say that it has overrun.
//!     let mut buffer = [Wc::default(); 32];
//!     loop {
//!         match cq.poll(&mut buffer) {
//!             Ok(batch) => batch.iter().for_each(&mut completed),
//!             Err(PollError::Overrun { .. } | PollError::Failed | PollError::Device(_)) => break,
//!             Err(error) => return Err(error.into()),
//!         }
//!     }
//!     // 2. Its queue pairs first: a queue that is in use can't be destroyed (Q11).
//!     drop(qps);
//!     cq.into_inner().destroy().map_err(|in_use| in_use.to_string())?;
//!     // 3. Large enough for all that may be outstanding.
//!     Ok(CompletionQueue::new(device.cq(capacity).create()?))
//! }
//! ```
//!
//! Then the queue pairs are created anew, with new numbers, so the peers have to connect again, too: theirs see
//! RETRY_EXC, or are told by the program. Better is a queue that never overruns: [sizing](super::sizing).
//!
//! # A peer that has died
//! | noticed by | when |
//! |---|---|
//! | a send that fails with RETRY_EXC, and those behind it with WR_FLUSH | after the timeouts of [`connect`](crate::device::DeviceQp::connect): half a second on the loopback, a few seconds on hardware |
//! | nothing, if the program only receives | never: it probes, as below, or keeps the socket of [`exchange`](crate::exchange), which is readable at its end |
//! | the connection manager's DISCONNECTED, with [`cm`](crate::cm) | at once, if the peer's host lives |
//!
//! A program that only receives has one send more, for a [probe](crate::wr::SendWr::probe), a WRITE of no bytes:
//!
//! ```
//! use cq_verbs::device::DeviceQp;
//! use cq_verbs::ledger::NotPostedError;
//! use cq_verbs::tracked::TrackedQp;
//! use cq_verbs::wr::SendWr;
//!
//! /// Each second in which nothing has arrived. If `Done::Sent` returns a failure, the peer is gone.
//! fn probe<Q: DeviceQp>(qp: &mut TrackedQp<Q, (), usize>) -> Result<(), NotPostedError<()>> {
//!     match qp.available_sends() {
//!         0 => Ok(()), // the last one is under way
//!         _ => qp.post_send(SendWr::probe(0), ()),
//!     }
//! }
//! ```
//!
//! A server drops the `TrackedQp` of a client that is gone, and is done with it ([server](super::server)): that destroys
//! the queue pair, and drops the tokens of what was outstanding. If it has a shared receive queue, first poll until its
//! completions are retired ([poll-mode loops](super::poll_mode#the-end)).
//!
//! A client, or an end that waits for its peer, goes on with the same queue pair: drain, reset, exchange endpoints with the
//! peer that has come again, connect, post receives, send again. The order of the last steps matters: the side that
//! receives first posts its receives and says so, before the other sends.
//!
//! # Many receive buffers in one call
//! [`fill_receives`](crate::tracked::TrackedQp::fill_receives) posts a receive for each part of a region, by few lists, with
//! a token for each. It is what a new connection does first:
//!
//! ```
//! use cq_verbs::device::{DeviceQp, Region};
//! use cq_verbs::post::PostError;
//! use cq_verbs::tracked::TrackedQp;
//!
//! /// 64 receives of `size` bytes. The token of each is the offset of its buffer.
//! fn post_all<Q: DeviceQp, M: Region>(
//!     qp: &mut TrackedQp<Q, (), usize>, // a send for probes
//!     memory: &M,
//!     size: usize,
//! ) -> Result<(), PostError> {
//!     qp.fill_receives(
//!         qp.max_receives() - qp.receives_outstanding(),
//!         |nth| memory.sge(nth * size..nth * size + size).expect("the memory has 64 buffers"),
//!         |nth| nth * size,
//!     )
//! }
//! ```
//!
//! [`TrackedSrq::fill`](crate::tracked::TrackedSrq::fill) does the same for a shared receive queue. For thousands of
//! buffers, one region: it is registered once, and each SGE is a part of it.
//!
//! # Checks
//! Recovery that is not tested does not work. `RXE_LOOP_FAULTS="seed=7,fail=0.001:RETRY_EXC_ERR"` fails connections in the
//! middle, `overrun=#100` overruns queues, and a process can be killed at any instant: the guide to tests of `cq-testing`.
