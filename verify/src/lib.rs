//! What judges a transport: the [set-up trait](device) that every one of them implements here.
//!
//! | module | owns |
//! |---|---|
//! | [`device`] | setting up in words of no transport, so that what is written once runs on each |
//! | [`loopback`] | the loopback of one process as such a device |
#![deny(unsafe_code)]

pub mod device;
pub mod loopback;
