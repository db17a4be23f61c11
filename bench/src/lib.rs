//! What the program `cqperf` and the benches have in common.

pub mod cores;
