//! The checker of transports: the [traits](device) that every one of them implements here, and the [suite](conformance) that
//! runs on it. It is not published; `cargo verify` runs it.
//!
//! ```
//! use verify::conformance::cases;
//! use verify::loopback::Loopback;
//!
//! let case = cases::<Loopback>().into_iter().find(|case| case.name == "p03_empty_is_no_error").unwrap();
//! (case.run)(); // panics if the transport does not follow the rule
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`conformance`] | the cases of every rule, running them, the table rule × transport |
//! | [`device`] | the calls of a device in terms of no transport |
//! | [`model`] | the reference model: a device as the contract describes it |
//! | [`differential`] | random programs, run on two devices and compared |
//! | [`loopback`], [`far`], [`across`] | the loopback of one process; of another process; of two, each with one end of every connection |
//! | `verbs` | real verbs (feature `verbs`) |
//! | `adapter`, `heap` | every transport with cq-core's traits; memory of the process, registered with the loopback |
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
