//! Atomics, and writes that are one: who else does one on the same eight bytes waits, or uses the same
//! instructions.
//!
//! Memory that all map is changed by instructions. On any other there is a lock, of many for all addresses,
//! that whoever does an atomic takes, its own process included. It is taken over from a process that died:
//! that one had written its word, or not.

use rustix::io::Errno;

use super::atomic_op::{AtomicOp, LEN, lock};
use super::copier::asking::{self, NotDone};
use super::copy_guard::Word;
use super::paths::AccessPath;
use super::remote::Process;
use super::sge::{Far, Span, Spans, Target};
use super::transfer::Trouble;
use super::{Memory, copier, remote};
use crate::sync::{self, AtomicU64};

/// Does the step, and says what the word held.
#[inline]
pub fn apply(memory: &'static Memory, word: &Word<'_>, step: AtomicOp) -> Result<u64, NotDone> {
    match word {
        Word::Mapped(word) => Ok(step.on(word)),
        Word::Own(word) => {
            let _guard = lock(memory, word.as_ptr() as usize)?;
            Ok(step.on(word))
        }
        &Word::Far { far, piece, is_mapped } => step_far(memory, far, piece, is_mapped, step),
    }
}

#[cold]
fn step_far(
    memory: &'static Memory,
    far: Far,
    piece: Span,
    is_mapped: bool,
    step: AtomicOp,
) -> Result<u64, NotDone> {
    let at = Target::of_far(far, piece);
    let paths = &memory.paths;
    loop {
        let process = match paths.of(memory, far.place) {
            AccessPath::None => return Err(Trouble::NoAnswer.into()),
            // What is in flight there may write where this does: it is asked for behind that.
            AccessPath::Direct(process)
                if !is_mapped && !copier::has_abandoned(memory, far.place) =>
            {
                process
            }
            // What others change by instructions, only who maps it can.
            _ => return asking::atomic(memory, far, piece, step),
        };
        let guard = lock(memory, piece.addr)?;
        let outcome = remote_step(process, &at, step);
        drop(guard);
        match outcome {
            Ok(held) => return Ok(held),
            Err(errno) => paths.learn(memory, far.place, process, errno)?,
        }
    }
}

/// The step on a word of another process. Its lock is held.
fn remote_step(process: Process, at: &Target<'_>, step: AtomicOp) -> Result<u64, Errno> {
    let copy = [AtomicU64::new(0)];
    let stores = matches!(step, AtomicOp::Store { .. });
    if !stores {
        remote::copy(process, at.pieces(), &Target::of_words(&copy, LEN), 0..LEN, LEN)?;
    }
    let held = step.on(&copy[0]);
    if stores || sync::load(&copy[0]) != held {
        remote::copy(process, &Spans::of_words(&copy, LEN), at, 0..LEN, LEN)?;
    }
    Ok(held)
}

#[cfg(test)]
mod tests;
