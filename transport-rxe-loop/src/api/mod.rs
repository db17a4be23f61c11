//! The public API: contexts and their options, protection domains, regions, windows, completion queues, channels, queue
//! pairs, shared receive queues and address handles. Arguments are validated here, once; the layers below carry them
//! out.
//!
//! This layer holds handles only. Each refers to the [`Device`](crate::lifecycle::Device), or to its
//! [`Engine`](crate::engine::Engine), and keeps the objects that it depends on in use.

pub mod ah;
pub mod async_event;
pub mod attr;
pub mod channel;
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
pub mod state;
