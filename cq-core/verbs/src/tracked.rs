//! Queue pairs and shared receive queues whose requests are accounted for: each with its [ledger](crate::ledger), and
//! with what it has [reserved](crate::budget) of its completion queues. Available on targets with compare-and-swap.
//!
//! ```
//! use cq_core::cq::CompletionQueue;
//! use cq_core::wc::Wc;
//! use cq_verbs::budget::Budgeted;
//! use cq_verbs::device::{Device, Memory, DevicePd, DeviceQp, Region};
//! use cq_verbs::setup::Access;
//! use cq_verbs::tracked::{Done, TrackedQp};
//! use cq_verbs::wr::SendWr;
//! use std::error::Error;
//!
//! /// What a send is about: a failed one returns it, too.
//! enum Send { Reply { client: u32 }, Note }
//!
//! /// Each receive's token is the offset of its buffer.
//! type Connection<D> = TrackedQp<<D as Device>::Qp, Send, usize>;
//!
//! fn serve<D: Device>(device: &D) -> Result<(), Box<dyn Error>> {
//!     let (pd, port, cq) = (device.alloc_pd()?, device.port(1)?, device.cq(96).create()?);
//!     let mut cq = CompletionQueue::new(Budgeted::new(cq));
//!     let memory = pd.allocate(16 * 64, Access::LOCAL_WRITE)?;
//!
//!     // Each may have 32 sends and 16 receives outstanding, and reserves an entry for each.
//!     let handle = cq.get_ref().handle();
//!     let mut alice = Connection::<D>::create(&pd, &handle, 32, 16)?;
//!     let mut bob = Connection::<D>::create(&pd, &handle, 32, 16)?;
//!     assert!(Connection::<D>::create(&pd, &handle, 32, 16).is_err(), "no entries are left");
//!     alice.connect(&port, &bob.get_ref().endpoint(&port))?;
//!     bob.connect(&port, &alice.get_ref().endpoint(&port))?;
//!
//!     let (mut buffer, mut received) = ([Wc::default(); 16], 0);
//!     bob.fill_receives(16, |nth| memory.sge(64 * nth..64 * nth + 64).unwrap(), |nth| 64 * nth)?;
//!     alice.post_send(SendWr::send_inline(0, b"hello").unsignaled(), Send::Note)?;
//!     alice.post_send(SendWr::send_inline(0, b"again"), Send::Reply { client: 7 })?;
//!     while received < 2 || alice.sends_outstanding() > 0 {
//!         for wc in cq.poll(&mut buffer)? {
//!             for done in alice.retire(wc).chain(bob.retire(wc)) {
//!                 match done {
//!                     Done::Sent(sent) => sent.result?,
//!                     Done::Received(message) => {
//!                         let mut bytes = [0; 5];
//!                         assert_eq!(message.result?.byte_len(), 5);
//!                         memory.read(message.token, &mut bytes)?;
//!                         received += 1;
//!                     }
//!                 }
//!             }
//!         }
//!     }
//!     Ok(())
//! }
//! ```
//!
//! The queue pair is destroyed before its reservations are dropped. Without a budget, `TrackedQp::new` only keeps
//! the ledgers.
//!
//! Ledgers are on the heap, with the feature `alloc`. Without, they are arrays in the queue pair: [`Fixed`].
//!
//! Two programs connect over a socket, by `TrackedQp::connect_over` (feature `std`).

#[cfg(all(feature = "std", target_os = "linux"))]
mod connect;
mod create;
mod drain;
#[cfg(feature = "alloc")]
mod heap;
mod ledgers;
mod left;
mod qp;
mod retire;
mod srq;

pub use self::create::CreateTrackedError;
pub use self::drain::DrainError;
#[cfg(all(feature = "tokio", unix))]
pub(crate) use self::heap::CqHandle;
pub use self::ledgers::{Fixed, Ledgers};
pub use self::qp::{Done, FailError, TrackedQp};
pub use self::srq::TrackedSrq;
