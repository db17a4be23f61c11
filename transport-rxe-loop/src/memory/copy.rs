//! Copying between spans, by the access path of the memory.
//!
//! | memory | whose | bytes | atomics |
//! |---|---|---|---|
//! | the fabric's | any process' | copied: it is [mapped](super::foreign) here | by instructions |
//! | any other | this process' | copied | by instructions, under a [lock](super::atomics) |
//! | any other | another process' | by the [system](remote), directly | read and written by the system, under a lock |
//! | any other, where the system refuses | another process' | through the [fabric](copier), by a thread of that process | by that thread, under a lock |
//!
//! The system identifies a process by its pid, which may be reused. So each call first verifies that the process is
//! the one that has the memory: see [`remote`].
//!
//! A process can ask that the last path always be used, to test it.

use std::ops::Range;

use super::paths::AccessPath;
use super::remote::Failure;
use super::sge::{self, Spans, Target};
use super::transfer::{Order, Transfer, Trouble};
use super::{Memory, copier, remote};
use crate::sync;

/// Copies all of `from` to the beginning of `to`, or as much as fits. If it fails, some bytes may have been copied.
#[inline]
pub fn copy(
    memory: &'static Memory,
    from: &Spans<'_>,
    to: &Target<'_>,
    order: Order,
) -> Result<(), Trouble> {
    if from.far().is_some() || to.spans().far().is_some() {
        return copy_far(memory, from, to, order);
    }
    match order {
        Order::Any => sge::copy(from, to),
        Order::LastWordLast => sge::copy_last_word_late(from, to),
        Order::LastWordFirst => sge::copy_last_word_early(from, to),
    }
    Ok(())
}

#[cold]
fn copy_far(
    memory: &'static Memory,
    from: &Spans<'_>,
    to: &Target<'_>,
    order: Order,
) -> Result<(), Trouble> {
    match (from.far(), to.spans().far()) {
        (Some(far), None) | (None, Some(far)) => Transfer { memory, far, from, to, order }.run(),
        // One side is always this process' own memory.
        _ => Err(Trouble::Fault),
    }
}

impl Transfer<'_> {
    fn run(&self) -> Result<(), Trouble> {
        let len = self.from.len().min(self.to.spans().len());
        if self.there().are_all_far() {
            return self.carry(0..len, len);
        }
        let mut at = 0;
        while at < len {
            let end = self.end_of_run(at, len);
            if self.is_far(at..end) {
                self.carry(at..end, len)?;
            } else {
                let late = self.late(at..end, len);
                sge::copy_range(self.from, self.to, at..late);
                sync::write_fence();
                sge::copy_range(self.from, self.to, late..end);
            }
            at = end;
        }
        Ok(())
    }

    /// Moves bytes to or from another process.
    fn carry(&self, range: Range<usize>, len: usize) -> Result<(), Trouble> {
        let attachment = self.far.attachment;
        let paths = &self.memory.paths;
        loop {
            let process = match paths.of(self.memory, attachment) {
                // An abandoned request in flight there may write to the same memory; the service carries this one out
                // after it.
                AccessPath::Direct(process) if !copier::has_abandoned(self.memory, attachment) => {
                    process
                }
                AccessPath::Direct(_) | AccessPath::Service => {
                    return copier::client::carry(self, range, len);
                }
                AccessPath::None => return Err(Trouble::NoAnswer),
            };
            let late = self.late(range.clone(), len);
            match remote::copy(process, self.from, self.to, range.clone(), late) {
                Ok(()) => return Ok(()),
                Err(Failure::Here) => return Err(Trouble::Own),
                Err(Failure::System(errno)) => {
                    paths.learn(self.memory, attachment, process, errno)?
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
