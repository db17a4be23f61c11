//! Tests of the inside: of files and attachments among several processes, of processes that die, and of those that
//! write where they should not. They are part of the library's unit tests.

pub mod actor;
pub mod attaching;
pub mod audit;
pub mod chance;
mod dying;
mod hostile;
