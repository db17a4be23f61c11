//! `loop0`: a verbs device in user space, over shared memory, for 64-bit Linux. It needs no hardware, no kernel module and no
//! root. Its queue pairs connect within a process and between processes of one user. Completions, those of failures included,
//! are as the verbs specification describes them, so that programs can be tested anywhere. Version 0.1, not on crates.io yet.
//!
//! ```
//! use transport_rxe_loop::{Access, Context, RecvWr, SendWr, Wc};
//!
//! let context = Context::open("loop0")?;
//! let (port, pd) = (context.port(1)?, context.alloc_pd()?);
//! let mut cq = context.cq(16).create()?;
//! let mut alice = pd.qp(&cq).create()?;
//! let mut bob = pd.qp(&cq).create()?;
//! alice.connect(&port, &bob.endpoint(&port))?;
//! bob.connect(&port, &alice.endpoint(&port))?;
//!
//! let region = pd.allocate(4096, Access::LOCAL_WRITE | Access::REMOTE_WRITE)?;
//! region.write(0, b"hello")?;
//! bob.post_recv(&[RecvWr::new(1, &[region.sge(1024..1088)?])])?;
//! alice.post_send(&[
//!     SendWr::write(2, &[region.sge(..5)?], region.remote(2048)?).unsignaled(),
//!     SendWr::send(3, &[region.sge(..5)?]),
//! ])?;
//!
//! let (mut wcs, mut polled) = ([Wc::default(); 2], 0);
//! while polled < wcs.len() {
//!     polled += cq.poll(&mut wcs[polled..])?.len();
//! }
//! wcs.sort_by_key(Wc::wr_id); // either completion may come first
//! assert_eq!((wcs[0].result()?.wr_id(), wcs[0].result()?.byte_len()), (1, 5));
//! assert_eq!(wcs[1].result()?.wr_id(), 3); // and with it the WRITE before it (C9)
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The device lies in a *fabric*: the memory that processes share, with what they create in it. There is no daemon.
//!
//! | to | read |
//! |---|---|
//! | write a first program | the guide [`first_program`](cq_verbs::guide::first_program) |
//! | connect two processes | by addresses: [`cm`]; over a socket: [`cq_verbs::exchange`], [an example](manual) |
//! | choose a fabric, and how the device behaves | [`OpenOptions`], [fabrics](OpenOptions#fabrics), [`Limits`], [RoCE](manual#ethernet) |
//! | send, receive, WRITE, READ | [`QueuePair`], [unreliable transports](QueuePair#unreliable-transports), [datagrams](QueuePair::to), [FLUSH](QueuePair#flush), [retries and timeouts](QueuePair#how-long-a-request-waits) |
//! | have memory that the device uses | [`ProtectionDomain`], [`OwnedRegion`], [`MemoryRegion`], [`MemoryWindow`] |
//! | poll; sleep | [`Cq`]; [`CompletionChannel`], [asynchronous events](Context#asynchronous-events), the guide [`events`](cq_verbs::guide::events) |
//! | test what can go wrong | [`Faults`], the [strict device](OpenOptions::strict), the [imitation of Soft-RoCE](OpenOptions::imitate_rxe) |
//! | recover from a failure, or a peer's death | the guide [`recovery`](cq_verbs::guide::recovery), [deaths](manual#death), [forks](manual#forked-children) |
//! | see what a live program does | [`observe`], [events for `tracing`](manual#events-for-tracing) |
//! | know what is not supported, or differs from hardware | [limitations](manual#not-supported), [differences](manual#strictly) |
//! | look up a cited rule (`C8`, `Q5`), or how it works inside | [`cq_core::contract`]; [`internals`] |
//!
//! # Features
//! | feature | what it adds |
//! |---|---|
//! | `serde` | `Serialize` for what an observer sees |
//! | `tokio` | `cq_verbs::task`: what tasks of tokio await |
//! | `tracing` | [events](manual#events-for-tracing) of objects, states, failures and deaths for `tracing` |
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(unsafe_code)]

cfg_if::cfg_if! {
    if #[cfg(loom)] {
        // For the models of `verify/loom`.
        pub mod protocol;
        pub mod sync;
    } else {
        mod addresses;
        mod api;
        #[cfg(feature = "serde")]
        mod by_name;
        mod completion;
        pub mod conditions;
        mod connections;
        mod engine;
        mod error;
        #[cfg(fuzzing)]
        #[doc(hidden)]
        pub mod fuzzing;
        #[cfg(test)]
        #[path = "../tests/inside/mod.rs"]
        mod inside;
        pub mod internals;
        mod lifecycle;
        #[doc(alias = "fork")]
        pub mod manual;
        mod memory;
        pub mod observe;
        mod policy;
        mod protocol;
        mod shm;
        mod sync;
        mod trace;

        #[doc(hidden)]
        pub use crate::shm::{descriptor, sanitizer};

        #[doc(no_inline)]
        pub use cq_verbs as verbs;
        pub use cq_verbs::fault::When;
        #[doc(inline)]
        pub use cq_verbs::root::*;

        #[doc(alias = "AH")]
        pub use crate::api::ah::AddressHandle;
        pub use crate::api::ah::Destination;
        pub use crate::api::channel::CompletionChannel;
        #[doc(alias("librdmacm", "rdma_cm"))]
        pub use crate::api::cm;
        pub use crate::api::cq::demand::CqDemand;
        pub use crate::api::cq::{Cq, CqHandle};
        pub use crate::api::datagram::Directed;
        pub use crate::api::device::Context;
        pub use crate::api::limits::{Limits, LimitsTextError, OtherLimitsError};
        #[doc(alias = "MR")]
        pub use crate::api::mr::{MemoryRegion, OwnedRegion};
        pub use crate::api::mw::MemoryWindow;
        pub use crate::api::open::{OpenError, OpenOptions, devices};
        #[doc(alias = "PD")]
        pub use crate::api::pd::ProtectionDomain;
        pub use crate::api::qp::Batch;
        #[doc(alias = "QP")]
        pub use crate::api::qp::QueuePair;
        #[doc(alias = "SRQ")]
        pub use crate::api::srq::SharedReceiveQueue;
        pub use crate::engine::port::gids::GidEntry;
        #[doc(alias("Ethernet", "RoCE"))]
        pub use crate::engine::port::link_layer::LinkLayer;
        pub use crate::policy::faults::{Faults, FaultsError, Injected};
        pub use crate::shm::error::AttachError;
        pub use crate::shm::header::ForeignFileError;
        pub use crate::shm::limits::LimitsError;
        pub use crate::shm::name::NameError;
        pub use crate::shm::system::SystemError;

        cq_verbs::device_traits! {
            Context, ProtectionDomain, OwnedRegion, MemoryRegion, CompletionChannel, Cq, CqHandle, SharedReceiveQueue,
            AddressHandle, QueuePair, Directed
        }
    }
}

/// The example of the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
