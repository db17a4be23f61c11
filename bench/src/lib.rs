//! What the program `cqperf`, the benches and the examples have in common.
//!
//! `examples/replicated_log.rs` is an application that is generic over the seams of cq-core, and runs unchanged
//! on every transport of [`transport`]. All of it but the choice of the transport:
//!
//! ```text
//! replicate(&Loopback::open()?, &records)?
//! replicate(&Verbs::open(None, None)?, &records)?
//! ```

pub mod callgrind;
pub mod cores;
pub mod delivery;
pub mod transport;
