//! Queue pairs and shared receive queues whose requests are accounted for: each with its [ledger](crate::ledger), and
//! with what it has [reserved](crate::budget) of its completion queues. Available on targets with compare-and-swap.
//!
//! ```
//! use std::error::Error;
//! use std::sync::Arc;
//! use cq_core::budget::{Budget, Budgeted, Reservation};
//! use cq_core::cq::CompletionQueue;
//! use cq_core::device::{Device, Memory, ProtectionDomain, QueuePair, Region};
//! use cq_core::setup::{Access, QpInit};
//! use cq_core::tracked::{Done, TrackedQp};
//! use cq_core::wc::Wc;
//! use cq_core::wr::SendWr;
//!
//! /// What a send is about: a failed one tells it, too.
//! enum Send { Reply { client: u32 }, Note }
//!
//! /// A queue pair with up to 32 sends and 16 receives outstanding. Each receive's token is the offset of its buffer.
//! type Connection<D> = TrackedQp<<D as Device>::Qp, Send, usize, 32, 16, Reservation<Arc<Budget>>>;
//!
//! fn serve<D: Device>(device: &D) -> Result<(), Box<dyn Error>> {
//!     let (pd, port) = (device.alloc_pd()?, device.port(1)?);
//!     let cq = device.create_cq(96, None)?;
//!     let capacity = cq_core::device::Cq::capacity(&cq);
//!     let mut cq = CompletionQueue::new(Budgeted::new(cq, capacity));
//!     let memory = pd.allocate(16 * 64, Access::LOCAL_WRITE)?;
//!
//!     let mut connections = Vec::new();
//!     for _ in 0..2 {
//!         let budget = cq.get_ref().budget();
//!         let (sends, receives) = (Reservation::new(budget, 32)?, Reservation::new(budget, 16)?);
//!         let qp = pd.create_qp(&QpInit::new(cq.get_ref()))?;
//!         connections.push(Connection::<D>::with(qp, sends, receives));
//!     }
//!     // Nothing is left for a third one.
//!     assert!(Reservation::new(cq.get_ref().budget(), 48).is_err());
//! #   let (mut one, other) = (connections.remove(0), connections.remove(0));
//! #   let mut connections = [one, other];
//! #   let endpoints = [0, 1].map(|nth| connections[1 - nth].get_ref().endpoint(&port));
//!     // …
//!     for (connection, peer) in connections.iter_mut().zip(&endpoints) {
//!         connection.connect(&port, peer)?;
//!     }
//!     connections[1].post_recv(&[memory.sge(64, 64)?], 64)?;
//!     let note = SendWr::send_inline(0, b"hello").unsignaled();
//!     connections[0].post_send(note, Send::Note)?;
//!     connections[0].post_send(SendWr::send_inline(0, b"again"), Send::Reply { client: 7 })?;
//! #   connections[1].post_recv(&[memory.sge(128, 64)?], 128)?;
//!
//!     let (mut buffer, mut open) = ([Wc::default(); 16], 4);
//!     while open > 0 {
//!         for wc in cq.poll(&mut buffer)? {
//!             for done in connections.iter_mut().flat_map(|connection| connection.retire(wc)) {
//!                 open -= 1;
//!                 match done {
//!                     Done::Sent(sent) => sent.result?,
//!                     Done::Received(received) => {
//!                         let mut bytes = [0; 5];
//!                         assert_eq!(received.result?.byte_len(), 5);
//!                         memory.read(received.token, &mut bytes)?;
//!                     }
//!                 }
//!             }
//!         }
//!     }
//!     Ok(())
//! }
//! ```
//!
//! The queue pair is destroyed before its reservations are dropped. Without a budget, [`TrackedQp::new`] only keeps
//! the ledgers.

mod credit;
mod drain;
mod qp;
mod srq;

pub use self::credit::{Credit, Unlimited};
pub use self::drain::DrainError;
pub use self::qp::{Done, TrackedQp};
pub use self::srq::TrackedSrq;
