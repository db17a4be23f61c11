//! What a program holds.
pub mod ah;
pub mod attr;
pub mod channel;
pub mod connect;
pub mod cq;
pub mod datagram;
pub mod device;
pub mod mr;
pub mod mw;
pub mod open;
pub mod pd;
pub mod qp;
pub mod srq;
pub mod state;
