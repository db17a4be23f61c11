//! What judges a transport: the [set-up trait](device) that every one of them implements here, and the
//! [suite](conformance) that runs on it.
//!
//! | module | owns |
//! |---|---|
//! | [`differential`] | random programs, run on two devices side by side |
//! | [`device`] | setting up in words of no transport, so that what is written once runs on each |
//! | [`conformance`] | the cases of every rule, running them, the table rule × transport |
//! | [`loopback`] | the loopback of one process as such a device |
//! | `heap` | memory of a process' own, registered with the loopback |
//! | [`far`] | the loopback of another process as such a device: every call goes there |
//! | [`across`] | the loopback of two processes as such a device: each has one end of every connection |
//! | `verbs` | real verbs as such a device; only with the feature of this name |
//! | `adapter` | every transport with cq-core's traits as such a device |
//! | [`model`] | the reference model: a device as the contract describes it, to compare with |
//!
//! # Features
//!
//! | feature | what it adds |
//! |---|---|
//! | `verbs` | the module `verbs`, which needs libibverbs |
#![deny(unsafe_code)]

pub mod across;
mod adapter;
#[cfg(test)]
mod auto_traits;
#[cfg(test)]
mod broken;
pub mod conformance;
pub mod device;
pub mod differential;
pub mod far;
mod heap;
pub mod loopback;
pub mod model;
#[cfg(feature = "verbs")]
pub mod verbs;

/// The example of the repository's README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
