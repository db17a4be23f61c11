//! Atomics and atomic writes, wherever the word is.
//!
//! Words in memory that every process maps are changed by atomic instructions. For all other memory there is a fixed
//! set of locks, selected by address, which each atomic takes, also in the owner's process. A lock is taken over from
//! a dead holder without repair: the word was written, or it was not.

use super::atomic_op::{AtomicOp, LEN, lock};
use super::copier::client::{self, NotDone};
use super::copy_guard::Word;
use super::paths::AccessPath;
use super::remote::{Failure, Process};
use super::sge::{Far, Span, Spans, Target};
use super::transfer::Trouble;
use super::{Memory, copier, remote};
use crate::sync::{self, AtomicU64};

/// Carries out an operation, and returns the word's previous value.
#[inline]
pub fn apply(memory: &'static Memory, word: &Word<'_>, step: AtomicOp) -> Result<u64, NotDone> {
    match word {
        Word::Mapped(word) => Ok(step.on(word)),
        Word::Own(word) => {
            let _guard = lock(memory, word.as_ptr() as usize)?;
            Ok(step.on(word))
        }
        &Word::Far { far, span, is_mapped } => step_far(memory, far, span, is_mapped, step),
    }
}

#[cold]
fn step_far(
    memory: &'static Memory,
    far: Far,
    span: Span,
    is_mapped: bool,
    step: AtomicOp,
) -> Result<u64, NotDone> {
    let at = Target::of_far(far, span);
    let paths = &memory.paths;
    loop {
        let process = match paths.of(memory, far.attachment) {
            AccessPath::None => return Err(Trouble::NoAnswer.into()),
            // An abandoned request in flight there may write to the same memory; the service carries this one out
            // after it.
            AccessPath::Direct(process)
                if !is_mapped && !copier::has_abandoned(memory, far.attachment) =>
            {
                process
            }
            // Other processes change a mapped word by instructions, so only a process that maps it can take part.
            _ => return client::atomic(memory, far, span, step),
        };
        let guard = lock(memory, span.addr)?;
        let outcome = remote_step(process, &at, step);
        drop(guard);
        match outcome {
            Ok(held) => return Ok(held),
            Err(Failure::Here) => return Err(Trouble::Own.into()),
            Err(Failure::System(errno)) => paths.learn(memory, far.attachment, process, errno)?,
        }
    }
}

/// Carries out an operation on a word of another process, whose lock is held.
fn remote_step(process: Process, at: &Target<'_>, step: AtomicOp) -> Result<u64, Failure> {
    let copy = [AtomicU64::new(0)];
    let stores = matches!(step, AtomicOp::Store { .. });
    if !stores {
        remote::copy(process, at.spans(), &Target::of_words(&copy, LEN), 0..LEN, LEN)?;
    }
    let held = step.on(&copy[0]);
    if stores || sync::load(&copy[0]) != held {
        remote::copy(process, &Spans::of_words(&copy, LEN), at, 0..LEN, LEN)?;
    }
    Ok(held)
}

#[cfg(test)]
mod tests;
