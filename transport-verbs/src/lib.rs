//! Real RDMA hardware for `cq-core`, through libibverbs.
//!
//! **This crate comes next: there is nothing in it yet.** It will implement the seams of
//! `cq_core::transport` over `rdma-sys`, so that code written against the loopback device of
//! `transport-rxe-loop` runs on hardware by changing the type that is named at set-up:
//!
//! - device list and open, protection domains, memory regions, queue pairs, shared receive queues;
//! - polling that hands the caller's slice to `ibv_poll_cq` as it is: no copy, no allocation, no
//!   instruction that C would not spend;
//! - completion channels that count and acknowledge events in batches.
//!
//! It is not among the default members of the workspace, because building it will need `libibverbs-dev`;
//! everything else needs Rust alone.
