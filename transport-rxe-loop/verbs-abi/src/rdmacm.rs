//! librdmacm's functions: identifiers of connections, and what belongs to them.
//!
//! | module | owns |
//! |---|---|
//! | `addr_info` | `rdma_getaddrinfo`: names into addresses |
//! | `devices` | the context that all identifiers are bound to, and its protection domain |
//! | `id` | the identifiers, with what is made for each |
//! | `qp`, `srq` | the queue pair and the shared receive queue of an identifier |
//!
//! Identifiers can't be made yet. What connects fails with EOPNOTSUPP, and so do rsockets.

pub mod addr_info;
pub mod devices;
pub mod id;
pub mod qp;
pub mod srq;
