//! What is asked of each queue. Each run is compiled for one queue and for constant batches, as the code of
//! an application would be.
//!
//! Each of two threads moves its side of the queue to its own stack: side by side on one stack the two would
//! share a cache line, and what is measured would be that.

pub mod limits;
pub mod producers;
pub mod sleep;
pub mod spsc;

use bench::cores::Cores;

/// Where, and on queues of what size.
#[derive(Clone, Copy)]
pub struct Setting {
    /// The cores for the two threads.
    pub cores: Cores,
    /// How many entries a queue holds.
    pub capacity: usize,
}
