//! Guides: how to use the crate for a purpose, from the first line to the tests.

pub mod your_transport;
