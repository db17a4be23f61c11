//! What the program `cqperf`, the benches and the examples have in common.
//!
//! `examples/replicated_log.rs` is an application that is generic over [`cq_verbs::device`], and runs unchanged on every
//! transport. It names the transport where it opens the device:
//!
//! ```text
//! replicate(&transport_rxe_loop::Context::open("loop0")?, &records)?
//! replicate(&transport_verbs::Context::open_first()?, &records)?
//! ```
//!
//! # Features
//!
//! | feature | what it adds |
//! |---|---|
//! | `dpdk` | DPDK's `rte_ring` among the peers of the benches |
//! | `rigtorp` | rigtorp's `SPSCQueue` of C++ among them; its headers are named by `RIGTORP_INCLUDE` |
//! | `verbs` | real devices through `transport-verbs`, and the comparisons with C programs |

pub mod callgrind;
pub mod calls;
pub mod cores;
pub mod delivery;
mod failure;
pub mod placement;
pub mod transport;
pub mod turns;

pub use self::failure::Failure;
