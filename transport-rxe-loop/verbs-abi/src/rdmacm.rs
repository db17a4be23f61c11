//! librdmacm's functions: identifiers of connections, and what belongs to them.
//!
//! | module | owns |
//! |---|---|
//! | `addr_info` | `rdma_getaddrinfo`: names into addresses |
//! | `address` | what programs see of addresses and the path |
//! | `channel`, `event` | event channels, taking events |
//! | `connect` | the calls of an identifier, from its address to its disconnection |
//! | `devices` | the context that all identifiers are bound to, and its protection domain |
//! | `ep` | `rdma_create_ep`, `rdma_get_request` |
//! | `id`, `objects` | the identifiers, with what is made for each; the channels, and the events until they are acknowledged |
//! | `make` | identifiers that are created, come with a request, move to another channel, and are destroyed |
//! | `qp`, `srq` | the queue pair and the shared receive queue of an identifier |
//!
//! rsockets fail with EOPNOTSUPP.

pub mod addr_info;
pub mod address;
pub mod channel;
pub mod connect;
pub mod devices;
pub mod ep;
pub mod event;
pub mod id;
pub mod make;
pub mod objects;
pub mod qp;
pub mod srq;
