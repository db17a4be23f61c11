//! What the program `cqperf`, the benches and the examples have in common. It is not published.
//!
//! The example `replicated_log` is generic over [`cq_verbs::device`], and runs unchanged on every transport. It names the
//! transport where it opens the device:
//!
//! ```text
//! replicate(&transport_rxe_loop::Context::open("loop0")?, &records)?
//! replicate(&transport_verbs::Context::open_first()?, &records)?
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`transport`] | connected ends on any transport |
//! | [`delivery`] | a sender and a receiver in one thread |
//! | [`turns`], [`cores`], [`placement`] | ratios by alternating samples; the two cores, and the distance between them |
//! | [`calls`], [`callgrind`] | the calls whose instructions are counted; counting them |
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
