//! The device as a whole: opening it, its service thread, and recovery from the death of other processes.
//!
//! [`Device`] combines what a process has of a fabric: [shared memory](crate::shm), [memory](crate::memory),
//! [completion queues](crate::completion) and the [engine](crate::engine). It owns the list of
//! [tables](crate::shm::recovery) whose entries die with their process.

pub mod deaths;
pub mod device;
pub mod open;
pub mod service;

pub use self::device::Device;
