//! The reference model: a verbs device as [the contract](../../../verify/CONTRACT.md) describes it,
//! sequential and obvious. Beside the contract's page it reads as the specification: each decision names
//! its rule.
//!
//! ```
//! use cq_core::transport::{Poll, Post};
//! use cq_core::wc::{Wc, WcStatus};
//! use cq_core::wr::{RecvWr, SendWr};
//! use verify::device::{Access, Attr, Device, Mr, Qp, QpInit};
//! use verify::model::Model;
//!
//! let device = Model::open();
//! let (pd, mut cq) = (device.alloc_pd(), device.create_cq(16, None).unwrap());
//! let memory = device.register(&pd, 64, Access::LOCAL_WRITE).unwrap();
//! let mut a = device.create_qp(&pd, &QpInit::new(&cq)).unwrap();
//! let mut b = device.create_qp(&pd, &QpInit::new(&cq)).unwrap();
//! let (to_a, to_b) = (a.number(), b.number());
//! for (qp, peer) in [(&mut a, to_b), (&mut b, to_a)] {
//!     for attr in [Attr::init(Access::empty()), Attr::rtr(peer), Attr::rts()] {
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

mod completion;
mod events;
mod execute;
mod failures;
mod handles;
mod memory;
mod opening;
mod posting;
mod states;
#[cfg(test)]
mod tests;
mod time;
mod world;

pub use self::handles::{Model, ModelChannel, ModelCq, ModelMr, ModelPd, ModelQp};
