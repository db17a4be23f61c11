//! What goes on beside the program's own threads: the service thread, and what is done about processes that died.
//!
//! [`Device`] is what a process has of a fabric, put together: [shared memory](crate::shm), [memory](crate::memory),
//! [completion queues](crate::completion) and the [engine](crate::engine). It owns the list of [tables](crate::shm::owners)
//! whose entries die with their process.

pub mod deaths;
pub mod device;
pub mod open;
pub mod service;

pub use self::device::Device;
