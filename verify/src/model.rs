//! The reference model: a verbs device as [the contract](cq_core::contract) describes it, sequential and without
//! optimisation. It can be read beside the contract as its specification: each decision names its rule.
//!
//! ```
//! use cq_core::transport::PollCq;
//! use cq_core::wc::{Wc, WcStatus};
//! use cq_verbs::post::Post;
//! use cq_verbs::wr::{RecvWr, SendWr};
//! use verify::device::{Access, Device, Mr, Qp, attr, small};
//! use verify::model::Model;
//!
//! let device = Model::open();
//! let (pd, mut cq) = (device.alloc_pd(), device.create_cq(16, None).unwrap());
//! let memory = device.register(&pd, 64, Access::LOCAL_WRITE).unwrap();
//! let mut a = device.create_qp(&pd, &small(&cq)).unwrap();
//! let mut b = device.create_qp(&pd, &small(&cq)).unwrap();
//! let (to_a, to_b) = (a.number(), b.number());
//! for (qp, peer) in [(&mut a, to_b), (&mut b, to_a)] {
//!     for attr in [attr::init(Access::empty()), attr::rtr(peer), attr::rts()] {
//!         qp.modify(&attr).unwrap();
//!     }
//! }
//!
//! b.post_recv(&[RecvWr::new(1, &[memory.sge(0, 64)])])?;
//! a.post_send(&[SendWr::send_inline(2, b"hello")])?;
//!
//! // Both have completed when posting returns: the receive, then the send.
//! let mut wcs = [Wc::default(); 4];
//! assert_eq!(cq.poll_into(&mut wcs), Ok(2));
//! assert_eq!((wcs[0].wr_id(), wcs[0].result().unwrap().byte_len()), (1, 5));
//! assert_eq!((wcs[1].wr_id(), wcs[1].status()), (2, WcStatus::SUCCESS));
//! let mut bytes = [0; 5];
//! memory.read(0, &mut bytes);
//! assert_eq!(&bytes, b"hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Modules
//!
//! | module | rules |
//! |---|---|
//! | `world` | the tables of objects |
//! | `states` | transitions and attributes (Q1), RESET (Q2) |
//! | `posting` | which sends are refused (Q3–Q5) |
//! | `receives` | which receives are refused (Q3, Q4), who consumes them, shared receive queues (Q9) |
//! | `execute` | the order of checks (Q7), SEND (Q6) |
//! | `onesided` | WRITE, READ, atomics, FLUSH (Q6) |
//! | `windows` | memory windows: binding, invalidating (Q6) |
//! | `datagram` | datagrams and address handles (Q6, C7) |
//! | `failures` | errors and how they are reported: the table of Q7 |
//! | `memory` | keys, ranges and rights (Q7, Q10) |
//! | `completion` | how requests complete (C8, C9, Q2), polling (P1–P6), overrun (O1–O6, O8), resizing (Q12) |
//! | `events` | arming and events (N1–N9, N11, N12), asynchronous events (O2, O4, Q7, Q9) |
//! | [`connecting`] | the order of events and calls of a connection (M1, M4), as data |
//! | `time` | the clock, and waiting for receives and answers (Q7) |
//! | `opening`, `handles` | the traits of [`device`](crate::device) over all these; what uses what (Q11) |
//!
//! One lock protects all of it, so that handles may move to other threads.
//!
//! # Time
//! The clock is virtual and advances only while a thread waits. [`Device::pause`](crate::device::Device::pause) advances it
//! to the next timer: the end of a wait for a receive or for an answer, or the deadline of a moderated event.
//! [`Block::block`](cq_core::transport::Block::block) does the same within its own deadline. If no timer is set, only
//! another thread can raise an event: then `block` really sleeps.
//!
//! ```
//! use cq_core::transport::PollCq;
//! use cq_core::wc::{Wc, WcStatus};
//! use cq_verbs::post::Post;
//! use cq_verbs::wr::SendWr;
//! use verify::device::{Access, Device, Qp, attr, small};
//! use verify::model::Model;
//!
//! let device = Model::open();
//! let (pd, mut cq) = (device.alloc_pd(), device.create_cq(16, None).unwrap());
//! let mut qp = device.create_qp(&pd, &small(&cq)).unwrap();
//! let itself = qp.number();
//! let rts = attr::rts().rnr_retry(1);
//! for attr in [attr::init(Access::empty()), attr::rtr(itself), rts] {
//!     qp.modify(&attr).unwrap();
//! }
//!
//! // There is no receive, and rnr_retry is 1.
//! qp.post_send(&[SendWr::send(1, &[])])?;
//! let mut wcs = [Wc::default(); 4];
//! assert_eq!(cq.poll_into(&mut wcs), Ok(0));
//! device.pause();
//! assert_eq!(cq.poll_into(&mut wcs), Ok(1));
//! assert_eq!(wcs[0].status(), WcStatus::RNR_RETRY_EXC_ERR);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Decided here
//! Where the contract allows more than one behaviour, the model has the one that a user would expect:
//!
//! - All contexts that one thread opens are of one device, which exists as long as any object of it. An object can be used
//!   only with objects of the same context; queue pairs of two contexts can be connected.
//! - A queue has exactly the requested capacity. A queue for 0 requests is valid, and always full.
//! - A region has two different keys, and is at most 1 GiB large. Access flags that are neither optional nor
//!   rights, MW_BIND or those of FLUSH are not supported: they are refused, also for queue pairs.
//! - RESET and destroying a queue pair unbind its windows, and so does deregistering the region of a window.
//!   Any queue pair of the domain may bind them afterwards, with any key of theirs. A window may allow what its
//!   region does not.
//! - A SEND whose key can't be invalidated has written its bytes before it fails at the receiver.
//! - The length of a datagram is checked before its memory. The area for the GRH is checked with the rest of the receive,
//!   even if it is not written.
//! - `cur_state` has to be the current state of the queue pair. Without a new state, those attributes can be changed that
//!   the current state allows. Packet sequence numbers and path MTUs are checked, and have no effect.
//! - In SQD a request that has started, and waits, is completed. SQD may be left before that; then
//!   SQ_DRAINED is not raised.
//! - If there are several reasons to refuse a request, the first of these counts: the state, the operation, too many
//!   SGEs or too much inline data, the length, READ and atomics disabled, the full queue. READ and atomics are
//!   also disabled in ERR, if `max_rd_atomic` was never set. A message is at most 2³¹ bytes long.
//! - The slot of a receive is free when a message consumes it, or when it is flushed.
//! - A list is posted as a whole; then all that can be executed is, before posting returns. The receive
//!   completes before its send. On a failure the receive completes, then the request; then the other
//!   sends and receives of the requester are flushed, then those of the responder.
//! - A waiting request continues as soon as it can, without a timer. If it then waits for something
//!   else, the retry count starts again. A peer that is connected elsewhere does not answer.
//! - A request that fails changes no memory, and no SGE before the bad one; but an atomic is executed before
//!   the memory for its result is checked.
//! - Only those SGEs are checked that bytes are written to, each as a whole. A receive that is both
//!   too small and bad is too small. The length of an atomic is checked before anything is sent, the
//!   rights of a queue pair before any key, and also for zero bytes. An error with REM_INV_REQ that
//!   consumes no receive raises QP_REQ_ERR.
//! - If two queue pairs wait for a receive of the same shared queue, the one with the lower number gets
//!   it. Receives of a shared queue are consumed in the order in which they were posted.
//! - RESET and destroying a queue pair keep its completions; destroying an object discards the unread
//!   events that name it.
//! - A completion queue that has overrun can be armed, and not resized. Each completion that it drops
//!   changes its queue pairs to ERR, also those that were reset since; one that is in RESET stays there.
//! - All bytes of a request are copied before any is written, also if SGEs overlap.
//! - Undefined fields of a completion are zero.

mod completion;
pub mod connecting;
mod datagram;
mod events;
mod execute;
mod failures;
mod handles;
mod memory;
mod onesided;
mod opening;
mod posting;
mod receives;
#[cfg(test)]
mod sabotage;
mod states;
#[cfg(test)]
mod tests;
mod time;
mod windows;
mod world;

pub use self::handles::{
    Model, ModelAh, ModelChannel, ModelCq, ModelMr, ModelMw, ModelPd, ModelQp, ModelSrq,
};
