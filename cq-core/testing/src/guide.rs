//! Guides to testing programs, and to writing transports.

#[doc(alias = "fault_injection")]
pub mod testing;
pub mod your_transport;
