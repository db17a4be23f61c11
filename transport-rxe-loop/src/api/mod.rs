//! What a program holds: an open device and how it is opened, protection domains, regions and windows, completion queues and
//! channels, queue pairs, shared receive queues, address handles. Arguments are judged here, once; what they ask for is done
//! below.
//!
//! There is nothing of the process here but its handles: each names the [`Device`](crate::lifecycle::Device), or the
//! [`Engine`](crate::engine::Engine) in it, and keeps in use what it depends on.

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
