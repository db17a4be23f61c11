//! Guides to testing programs, and to writing transports.

pub mod testing;
pub mod your_transport;
