//! What judges a transport: the [set-up trait](device) that every one of them implements here.
//!
//! | module | owns |
//! |---|---|
//! | [`device`] | setting up in words of no transport, so that what is written once runs on each |
//! | [`loopback`] | the loopback of one process as such a device |
//! | [`model`] | the reference model: a device as the contract describes it, to compare with |
#![deny(unsafe_code)]

pub mod device;
pub mod loopback;
pub mod model;
