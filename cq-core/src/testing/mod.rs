//! Test utilities. To test code that uses this crate: [`fake`], a scripted transport, and [`fault`], fault injection
//! for any transport. To test a custom transport: [`rules`]. Feature `test-util`.

pub mod fake;
pub mod fault;
pub mod rules;

use crate::queue::raw::{RawQueue, Slot, Tag};
use crate::queue::{CapacityError, Control};
#[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
use crate::queue::{Position, mpsc};

/// A [raw queue](crate::queue::raw) made of parts that a test owns, with as many tags as slots, or none. Two producers
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

/// A multi-producer queue whose positions begin at `position`, modulo 2⁶².
#[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
#[must_use]
pub fn shared_queue_at<const N: usize>(position: Position) -> mpsc::SoftCq<N> {
    mpsc::SoftCq::at(position)
}

/// A ring to resize a multi-producer queue to. Its positions begin at `position`, modulo 2⁶².
#[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
#[must_use]
pub fn ring_at<const N: usize>(position: Position) -> mpsc::Ring<N> {
    mpsc::Ring::at(position)
}
