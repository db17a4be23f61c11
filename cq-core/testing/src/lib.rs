//! Tests over [`cq_core`], without hardware, `no_std`. A scripted transport ([`fake`]) and fault injection for any transport ([`fault`])
//! test a program. [`rules`] tests a transport, a software queue or an entry; [`entries`] has entries to begin with.
//!
//! ```
//! use cq_core::cq::CompletionQueue;
//! use cq_core::transport::{CqKey, PollError};
//! use cq_core::wc::{Wc, WcStatus};
//! use cq_testing::fake::Script;
//!
//! let script = Script::<8>::new(CqKey { index: 0, generation: 1 })
//!     .on_poll(Ok(&[Wc::new(7, WcStatus::RETRY_EXC_ERR, 5)]))
//!     .on_poll(Err(PollError::Closed));
//! let (mut cq, mut batch) = (CompletionQueue::new(&script), [Wc::default(); 4]);
//! assert_eq!(cq.poll(&mut batch)?[0].status(), WcStatus::RETRY_EXC_ERR);
//! assert_eq!(cq.poll(&mut batch), Err(PollError::Closed));
//! # Ok::<(), PollError>(())
//! ```
//!
//! | guide | for |
//! |---|---|
//! | [`testing`](guide::testing) | tests of a program with failures, late completions, overruns, killed peers |
//! | [`your_transport`](guide::your_transport) | a transport for your own device |
//!
//! Unsafe code is denied except in [`raw_queue`], whose parts are atomic words.
//!
//! # Features
//!
//! | feature | what it adds |
//! |---|---|
//! | `std` | faults for a channel with a descriptor; `rules::entry` |
#![cfg_attr(docsrs, feature(doc_cfg))]
#![no_std]
#![deny(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(feature = "std")]
extern crate std;

pub mod entries;
pub mod fake;
pub mod fault;
pub mod guide;
pub mod rules;

use cq_core::queue::raw::{RawQueue, Slot, Tag};
use cq_core::queue::{CapacityError, Control};

/// A [raw queue](cq_core::queue::raw) made of parts that a test owns, with as many tags as slots, or none. Two producers
/// of one queue can lose and forge the test's completions, and do no other harm.
///
/// # Errors
/// The number of slots, the number of tags or the guaranteed capacity is invalid.
#[allow(unsafe_code)]
pub fn raw_queue<'a>(
    control: &'a Control,
    slots: &'a [Slot],
    tags: &'a [Tag],
    promised: u32,
) -> Result<RawQueue<'a>, CapacityError> {
    // SAFETY: the parts are atomic words, which any number of producers and consumers can share soundly. Having one of
    // each matters only for the completions that the test sees.
    unsafe { RawQueue::of(control, slots, tags, promised) }
}
