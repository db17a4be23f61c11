//! Real RDMA hardware for `cq-core`, through libibverbs and librdmacm: InfiniBand, RoCE, iWARP, and the
//! kernel's Soft-RoCE.
//!
//! ```no_run
//! use cq_core::transport::{PollCq, Post};
//! use cq_core::wc::Wc;
//! use cq_core::wr::{RecvWr, SendWr};
//! use transport_verbs::{Access, Context, QpInit};
//!
//! let context = Context::open_first()?;
//! let port = context.port(1)?;
//! let pd = context.alloc_pd()?;
//! let mut cq = context.create_cq(16, None)?;
//! let mut alice = pd.create_qp(&QpInit::new(&cq))?;
//! let mut bob = pd.create_qp(&QpInit::new(&cq))?;
//! alice.connect(&port, &bob.endpoint(&port))?;
//! bob.connect(&port, &alice.endpoint(&port))?;
//!
//! let region = pd.allocate(4096, Access::LOCAL_WRITE | Access::REMOTE_WRITE)?;
//! region.write(0, b"hello")?;
//! bob.post_recv(&[RecvWr::new(1, &[region.sge(1024, 64)?])])?;
//! alice.post_send(&[
//!     SendWr::write(2, &[region.sge(0, 5)?], region.remote(2048)?).unsignaled(),
//!     SendWr::send(3, &[region.sge(0, 5)?]),
//! ])?;
//!
//! let (mut wcs, mut done) = ([Wc::default(); 4], 0);
//! while done < 2 {
//!     let count = cq.poll(&mut wcs)?;
//!     for wc in &wcs[..count] {
//!         println!("{:?}", wc.result()?);
//!     }
//!     done += count;
//! }
//! let mut back = [0; 5];
//! region.read(2048, &mut back)?;
//! assert_eq!(&back, b"hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Without hardware it runs on the loopback's C ABI: with `LD_PRELOAD=librxe_loop_verbs.so`, the first device is
//! `loop0`. This crate's tests run there, with `VERBS_DEVICE=loop0`, and on Soft-RoCE.
//!
//! The words are those of `transport-rxe-loop`, so code that is written against it moves to hardware by
//! changing the type that is named at set-up, and by telling each queue pair the port that it uses. Peers
//! on other machines exchange their [`Endpoint`]s first: over TCP ([`exchange`]), or in any other way; or
//! librdmacm connects them ([`cm`]).
//!
//! # Where things are
//!
//! ```text
//!   device, attributes, port     Context: open, limits, GIDs         error    every reason, with a sentence
//!     |
//!     +-- pd, mr                 domains, keys, rights, memory
//!     +-- cq, channel            poll, arm, resize; wait             wait     sleeping on a descriptor
//!     +-- async_event            what no completion tells
//!     +-- qp, srq, ah            posting, states (attr, state), refusal of a request explained
//!           connect, endpoint, exchange, cm     how two of them find each other
//!   ................................ safe code above, but for what hands the promise of `register` down
//!   sys    one room an object: calls libibverbs, keeps alive what the object refers to, destroys it
//!          layout   what C and Rust agree on, asserted field by field
//!          ext      operations that an older library may lack
//!          reports  what the events of a queue tell    polling  which function polls it
//!          memory   pages that a device may write at any time
//! ```
//!
//! # What is unsafe
//! For the user, one function: [`ProtectionDomain::register`], since the caller's own memory is written by
//! a device that no borrow checker sees. [`ProtectionDomain::allocate`] is the safe way; its memory is read
//! and written by copies. Inside, `sys` alone calls C. What a device or a driver writes, states, statuses,
//! opcodes, event types, counts, is kept as a number and judged; none of it becomes a Rust enum.
//!
//! # What goes when
//! Everything keeps alive what it was made of: a queue pair its completion queues, its domain and its shared
//! receive queue, a completion queue its channel, all of them the opening. So handles may be dropped in any
//! order, and the object goes when its last user does. `destroy` says that it goes now, and gives the handle
//! back where something still uses it (Q11). Of memory, the keys are dead when dropping the region returns.
//!
//! # Threads
//! Every handle may move to another thread, and what takes `&mut self` is done by one at a time: polling,
//! posting, taking events. Different queues need no lock between them. A queue that several threads poll is
//! shared by [`SharedCq`](cq_core::shared_cq::SharedCq), which shows the lock. Nothing is allocated, and no
//! lock of this crate is taken, by polling or posting.
//!
//! # Overrun
//! See [`Context`]'s asynchronous events: who takes the device's CQ_ERR thereby tells the queue, which from
//! then on, once it is empty, fails with [`PollError::Overrun`](cq_core::transport::PollError::Overrun) for
//! ever (O3). A program that takes no asynchronous events is never told.
//!
//! # What is not offered
//! SEND with invalidate and LOCAL_INV are posted as any operation. BIND_MW, ATOMIC_WRITE and FLUSH are refused
//! with [`Refused::Unsupported`](cq_core::transport::Refused::Unsupported): `rdma-sys` does not have the operands
//! of the first, and is older than the others. Completion queues that ignore overruns need a call that it
//! misses.
//!
//! # Traps that are handled
//! - An event of a type that the headers do not know is read as a number.
//! - Every event is acknowledged: those of completion queues in batches, at the latest when their queue
//!   goes. So destroying never hangs, not even while another thread takes events of the same object.
//! - `ibv_poll_cq` sets no errno: [`PollError::Device`](cq_core::transport::PollError::Device) holds what
//!   it returned.
//! - `rdma-sys` misses every extended operation, because it compares with the wrong number; they are looked
//!   for here, and used for attributes, ports and moderation.
//! - The layouts that `rdma-sys` writes by hand are asserted while compiling, and shown to a C compiler by
//!   a test, as is every constant.
//! - On RoCE the first GID is hardly ever the right one: [`Context::port`] takes the one that reaches
//!   farthest.
//! - READ and atomics hang some devices where `max_rd_atomic` is 0: they are refused when posted (Q7).
//! - Optional access rights that the kernel does not know are left out, not refused (Q10).
//! - A kernel without RDMA has no devices; that is no error of listing them.
//! - What building needs, and does not find, is named before `rdma-sys` fails.
//!
//! The rules that the documentation cites (`C8`, `Q5`) are the contract's:
//! [`cq_core::contract`] says each, with its source.
#![deny(unsafe_code)]

mod ah;
mod async_event;
mod attr;
mod attributes;
mod channel;
pub mod cm;
mod connect;
mod cq;
mod datagram;
mod device;
mod error;
pub mod exchange;
mod generic;
mod mr;
mod pd;
mod port;
mod psn;
mod qp;
mod refusal;
mod srq;
mod sys;
mod wait;

pub use cq_core::setup::{
    Access, AddressError, AddressVector, ArmLimitError, AtomicCap, CreateError, DeviceAttr,
    DeviceError, Endpoint, EndpointError, Errno, Gid, GlobalRoute, InUse, Limit, ModerateError,
    ModifyError, Port, PortState, QpAttr, QpAttrMask, QpCaps, QpState, QpType, RangeError,
    RegisterError, ResizeError, Rule, SrqInit,
};

pub use crate::ah::AddressHandle;
pub use crate::channel::CompletionChannel;
pub use crate::cq::Cq;
pub use crate::datagram::{Destination, Directed};
pub use crate::device::{Context, devices};
pub use crate::error::OpenError;
pub use crate::mr::{MemoryRegion, OwnedRegion};
pub use crate::pd::ProtectionDomain;
pub use crate::qp::{QpInit, QueuePair};
pub use crate::srq::SharedReceiveQueue;
