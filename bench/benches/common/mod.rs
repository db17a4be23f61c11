//! What both benches share: the queues under test, what is asked of them, and the two cores it runs on.

mod entries;
pub mod peer;
pub mod peers;
pub mod placement;
mod runs;
mod sample;
pub mod scenarios;
