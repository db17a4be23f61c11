//! For the tests of code that uses this crate, [`fake`] and [`fault`]: a scripted transport, and faults for any. For the tests
//! of a transport of one's own, [`rules`]. Feature `test-util`.

pub mod fake;
pub mod fault;
pub mod rules;

use crate::queue::raw::{RawQueue, Slot, Tag};
use crate::queue::{CapacityError, Control};
#[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
use crate::queue::{Position, mpsc};

/// A [raw queue](crate::queue::raw) of parts that a test holds: with as many tags as slots, or none. Two producers of one
/// queue lose and forge completions of the test's, and do no other harm.
///
/// # Errors
/// There is no such queue.
#[allow(unsafe_code)]
pub fn raw_queue<'a>(
    control: &'a Control,
    slots: &'a [Slot],
    tags: &'a [Tag],
    promised: u32,
) -> Result<RawQueue<'a>, CapacityError> {
    // SAFETY: the parts are atomic words, which are sound to share among any number of sides; that there is one of
    // each matters for what completions the test sees.
    unsafe { RawQueue::of(control, slots, tags, promised) }
}

/// A queue with several producers, whose positions begin at this one, modulo 2⁶².
#[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
#[must_use]
pub fn shared_queue_at<const N: usize>(position: Position) -> mpsc::SoftCq<N> {
    mpsc::SoftCq::at(position)
}

/// A ring for such a queue to be resized to, whose positions begin at this one, modulo 2⁶².
#[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
#[must_use]
pub fn ring_at<const N: usize>(position: Position) -> mpsc::Ring<N> {
    mpsc::Ring::at(position)
}
