//! What the program `cqperf`, the benches and the examples have in common.

pub mod cores;
pub mod transport;
