//! The queues under test, and what is asked of them.

mod entries;
pub mod peer;
pub mod peers;
mod runs;
pub mod scenarios;
