//! Guides to tests of programs, and of transports.

pub mod testing;
pub mod your_transport;
