//! The public API: contexts and their options, protection domains, regions, windows, completion queues, channels, queue
//! pairs, shared receive queues and address handles. Arguments are validated here, once; the layers below carry them
//! out.
//!
//! This layer has handles. Each refers to the [`Device`](crate::lifecycle::Device), or to its
//! [`Engine`](crate::engine::Engine), keeps the objects that it depends on in use, and owns what it was created with: a
//! table entry, memory of the arena, the attributes that were set, and positions that only its thread needs.

pub mod ah;
pub mod async_event;
pub mod attr;
pub mod channel;
pub mod cm;
pub mod connect;
pub mod cq;
pub mod datagram;
pub mod device;
pub mod domain;
pub mod limits;
pub mod mr;
pub mod mw;
pub mod open;
pub mod pd;
pub mod qp;
pub mod srq;
