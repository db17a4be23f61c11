//! Internal tests, which are part of the library's unit tests: files and attachments with several processes,
//! processes that die, and processes that corrupt shared memory.

pub mod actor;
mod addresses;
pub mod attaching;
pub mod audit;
pub mod chance;
pub mod connecting;
pub mod dying;
pub mod fixture;
mod hostile;
mod name_space;
mod observing;
mod opening;
pub mod prelude;
mod protocol;
pub mod subscriber;
