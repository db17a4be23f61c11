//! RDMA devices for `cq-core` through libibverbs and librdmacm: InfiniBand, RoCE, and Linux' Soft-RoCE. Version 0.1, not on
//! crates.io yet. It was tested on Soft-RoCE, not yet on a network card. iWARP is [not supported](manual#limitations).
//!
//! ```no_run
//! use transport_verbs::{Access, CompletionQueue, Context, RecvWr, SendWr, Wc};
//!
//! let context = Context::open_first()?;
//! let (port, pd) = (context.port(1)?, context.alloc_pd()?);
//! let (cq, peer_cq) = (context.cq(16).create()?, context.cq(16).create()?);
//! let mut qp = pd.qp(&cq).create()?;
//! let mut peer = pd.qp(&peer_cq).create()?;
//! qp.connect(&port, &peer.endpoint(&port))?;
//! peer.connect(&port, &qp.endpoint(&port))?;
//!
//! let region = pd.allocate(64, Access::LOCAL_WRITE)?;
//! peer.post_recv(&[RecvWr::new(1, &[region.sge(..64)?])])?;
//! qp.post_send(&[SendWr::send_inline(2, b"hello")])?;
//!
//! let (mut peer_cq, mut wcs) = (CompletionQueue::new(peer_cq), [Wc::default(); 4]);
//! while peer_cq.poll(&mut wcs)?.is_empty() {}
//! assert_eq!(wcs[0].result()?.byte_len(), 5);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Peers on other hosts exchange their [`Endpoint`]s first, over TCP by [`cq_verbs::exchange`] or by any other means; or
//! librdmacm connects them ([`cm`]). [Without a device](manual#without-a-device), the program runs on the loopback's C ABI by
//! `LD_PRELOAD`. Types, calls and errors are those of `transport-rxe-loop` ([differences](manual#differences-from-the-loopback)).
//!
//! | to | read |
//! |---|---|
//! | open a device, query it and its ports | [`devices`], [`Context`], [asynchronous events](Context#asynchronous-events) |
//! | register memory | [`ProtectionDomain`], [`OwnedRegion`], [`MemoryRegion`] |
//! | post and poll; sleep | [`QueuePair`], [`SharedReceiveQueue`], [`AddressHandle`], [`Cq`]; [`CompletionChannel`] |
//! | connect | [`QueuePair::connect`], [`cq_verbs::exchange`], [`cm`] |
//! | call what is not wrapped | [`Cq::as_raw`] |
//! | know the rules | [lifetimes](manual#lifetimes), [forks](manual#forks), [threads](manual#threads), [overrun](manual#overrun), [unsafe code](manual#unsafe-code) |
//! | know what is not supported, or handled for you | [limitations](manual#limitations), [pitfalls of libibverbs](manual#pitfalls-of-libibverbs-that-are-handled) |
//! | write a first program, or come from C | the guides [`first_program`](cq_verbs::guide::first_program), [`from_c`](cq_verbs::guide::from_c) |
//! | look up a rule that is cited (`C8`, `Q5`) | [`cq_core::contract`] |
//!
//! # Features
//! | feature | what it adds |
//! |---|---|
//! | `tokio` | `cq_verbs::task`: what tasks of tokio await |
//! | `tracing` | [events](manual#events-for-tracing) of objects, states and asynchronous events for `tracing` |
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(unsafe_code)]

mod ah;
mod async_event;
mod attr;
mod attributes;
mod channel;
#[doc(alias("librdmacm", "rdma_cm"))]
pub mod cm;
mod connect;
mod cq;
mod datagram;
mod device;
mod error;
#[doc(alias("fork", "iWARP", "LD_PRELOAD", "soft_roce"))]
pub mod manual;
mod mr;
mod pd;
mod port;
mod psn;
mod qp;
mod refusal;
mod srq;
mod sys;
mod trace;

#[doc(no_inline)]
pub use cq_verbs as verbs;
#[doc(inline)]
pub use cq_verbs::root::*;

#[doc(alias = "AH")]
pub use crate::ah::AddressHandle;
pub use crate::channel::CompletionChannel;
pub use crate::cq::{Cq, CqHandle};
pub use crate::datagram::{Destination, Directed};
pub use crate::device::{Context, devices};
pub use crate::error::OpenError;
#[doc(alias = "MR")]
pub use crate::mr::{MemoryRegion, OwnedRegion};
#[doc(alias = "PD")]
pub use crate::pd::ProtectionDomain;
#[doc(alias = "QP")]
pub use crate::qp::QueuePair;
#[doc(alias = "SRQ")]
pub use crate::srq::SharedReceiveQueue;

cq_verbs::device_traits! {
    Context, ProtectionDomain, OwnedRegion, MemoryRegion, CompletionChannel, Cq, CqHandle, SharedReceiveQueue,
    AddressHandle, QueuePair, Directed
}

/// The example of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
