//! The service thread, and what is done about the dead.
pub mod deaths;
pub mod service;
