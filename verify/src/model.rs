//! The reference model: a verbs device as [the contract](../../../verify/CONTRACT.md) describes it,
//! sequential and obvious. Beside the contract's page it reads as the specification: each decision names
//! its rule.
//!
//! ```
//! use cq_core::transport::{PollCq, Post};
//! use cq_core::wc::{Wc, WcStatus};
//! use cq_core::wr::{RecvWr, SendWr};
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
//! // What can happen at once has happened when posting returns: the receive, then the send.
//! let mut room = [Wc::default(); 4];
//! assert_eq!(cq.poll(&mut room), Ok(2));
//! assert_eq!((room[0].wr_id(), room[0].result().unwrap().byte_len()), (1, 5));
//! assert_eq!((room[1].wr_id(), room[1].status()), (2, WcStatus::SUCCESS));
//! let mut bytes = [0; 5];
//! memory.read(0, &mut bytes);
//! assert_eq!(&bytes, b"hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Where things are
//!
//! | module | rules |
//! |---|---|
//! | `world` | the tables: what there is, and who uses what (Q11) |
//! | `states` | what may be changed when (Q1), RESET (Q2) |
//! | `posting` | which sends are refused (Q3–Q5) |
//! | `receives` | which receives are refused (Q3, Q4), who takes them, shared receive queues (Q9) |
//! | `execute` | what is judged in which order (Q7), SEND (Q6) |
//! | `onesided` | WRITE, READ, atomics, FLUSH (Q6) |
//! | `windows` | memory windows: binding, invalidating (Q6) |
//! | `datagram` | datagrams and handles of addresses (Q6, C7) |
//! | `failures` | what goes wrong and how it is told: Q7 as a table |
//! | `memory` | who may touch which bytes (Q7, Q10) |
//! | `completion` | how requests end (C8, C9, Q2), polling (P1–P6), overrun (O1–O6, O8), resizing (Q12) |
//! | `events` | arming and events (N1–N9, N11, N12), asynchronous events (O2, O4, Q7, Q9) |
//! | `time` | the clock, and waiting for receives and answers (Q7) |
//! | `opening`, `handles` | the traits of [`device`](crate::device) over all that |
//!
//! One lock is around everything, so that handles may move to other threads.
//!
//! # Time
//! The clock stands still until somebody waits. [`Device::pause`](crate::device::Device::pause) lets it
//! run to the next thing that time brings, the end of a wait for a receive or for an answer or an event that
//! was held back, and so does [`Block::block`](cq_core::transport::Block::block) as far as its limit allows. Where time brings
//! nothing, only another thread can: `block` really sleeps then.
//!
//! ```
//! use cq_core::transport::{PollCq, Post};
//! use cq_core::wc::{Wc, WcStatus};
//! use cq_core::wr::SendWr;
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
//! // There is no receive, and it is worth one more try.
//! qp.post_send(&[SendWr::send(1, &[])])?;
//! let mut room = [Wc::default(); 4];
//! assert_eq!(cq.poll(&mut room), Ok(0));
//! device.pause();
//! assert_eq!(cq.poll(&mut room), Ok(1));
//! assert_eq!(room[0].status(), WcStatus::RNR_RETRY_EXC_ERR);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Decided here
//! Where the contract leaves it open, this device does what its user would expect:
//!
//! - What one thread opens is one device, as long as anything of it is left. An object works with what was
//!   made through the same opening; what was made through two can be connected.
//! - A queue holds exactly what was asked for. A queue of no requests is legal, and always full.
//! - A region has two different keys, and is at most 1 GiB large. Access flags that are not optional and none
//!   of the rights, MW_BIND or those of FLUSH, ask for features that this device does not have: refused, for
//!   queue pairs too.
//! - RESET and destroying a queue pair unbind its windows, and the end of a region those that open on it.
//!   Any queue pair of the domain may bind them then, with any key of theirs. A window may allow what its
//!   region does not.
//! - A SEND that can't invalidate the key it names has written its bytes before it fails at the receiver.
//! - Of a datagram the length is judged before its memory. The area for the global route is judged with the
//!   rest of the receive, also where it is not written.
//! - `cur_state` has to be the state that the queue pair is in. Without a state to go to, attributes are
//!   changed as the state it is in allows. Packet numbers and packet sizes are checked and mean nothing.
//! - In SQD the request that was begun, because it had to wait, is ended. SQD may be left before that; then
//!   nothing is reported.
//! - Of several reasons to refuse a request, the first of these counts: the state, the operation, too many
//!   pieces or inline bytes, the length, READ and atomics turned off, the full queue. READ and atomics are
//!   turned off in ERR too, if `max_rd_atomic` never was set. A message is at most 2³¹ bytes long.
//! - The slot of a receive comes back when a message takes it, or it is flushed.
//! - A list is posted as a whole; what can happen at once then happens before posting returns. The receive
//!   completes before its send. On a failure the receive completes, then the request, then the rest of the
//!   requester's sends and receives are flushed, then the responder's.
//! - A request that waits goes on as soon as it can, and needs no timer for that. If it then waits for
//!   something else, counting starts anew. A peer that is connected elsewhere does not answer.
//! - A request that fails changes no memory, and no piece before the bad one; but an atomic is carried out before
//!   it is found that its answer has nowhere to go.
//! - Of the pieces that are written, only those that bytes reach are looked at, each to its end. A receive
//!   that is too small and bad is too small. The length of an atomic is judged before anything is sent, the
//!   right of a queue pair before any key, and for no bytes too. Whatever ends as REM_INV_REQ without
//!   taking a receive is reported as QP_REQ_ERR.
//! - Of two queue pairs that wait for a receive of the same shared queue, that with the lower number gets
//!   it. A shared receive queue gives its receives out as they were posted.
//! - RESET and destroying a queue pair leave its completions where they are; destroying anything removes
//!   the reports about it that nobody read.
//! - A completion queue that has overrun can be armed, and is not resized. Each completion that it drops
//!   sends its queue pairs to ERR, also those that were reset since; one that is in RESET stays there.
//! - All bytes of a request are copied aside before any is written, also where pieces overlap each other.
//! - What is undefined in a completion is zero.

mod completion;
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
