//! One measurement, and what it is taken on.

use std::time::Duration;

use super::placement::Placement;
use bench::cores::Cores;

/// One measurement.
pub struct Sample {
    /// How long it took.
    pub elapsed: Duration,
    /// How often the thing was done; at least as often as asked for.
    pub count: u64,
    /// Where it was taken.
    pub placement: Placement,
}

/// Where, and on queues of what size.
#[derive(Clone, Copy)]
pub struct Setting {
    /// The cores for the two threads.
    pub cores: Cores,
    /// How many entries a queue holds.
    pub capacity: usize,
}
