//! Atomics, and writes that are one: who else does one on the same eight bytes waits, or uses the same
//! instructions.
//!
//! Memory that all map is changed by instructions. On any other there is a lock, of many for all addresses,
//! that whoever does an atomic takes, its own process included. It is taken over from a process that died:
//! that one had written its word, or not.

use std::time::{Duration, Instant};

use rustix::io::Errno;

use crate::memory::Memory;
use crate::memory::copier;
use crate::memory::copier::asking::{self, NotDone};
use crate::memory::copy_guard::Word;
use crate::memory::paths::AccessPath;
use crate::memory::remote;
use crate::memory::remote::Process;
use crate::memory::sge::{Far, Span, Spans, Target};
use crate::memory::transfer::Trouble;
use crate::protocol::lock::Lock;
use crate::shm::lock::{Backoff, Guard};
use crate::sync::{self, AtomicU64};

/// How many locks there are. A power of two.
pub const STRIPES: usize = 64;

const LEN: usize = size_of::<u64>();

/// For how long others wait who ask this process for something else, while it waits for a lock on behalf of one. There may
/// be hundreds of these.
const SOON: Duration = Duration::from_micros(200);

/// What an atomic does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    CompareSwap {
        compare: u64,
        swap: u64,
    },
    FetchAdd {
        add: u64,
    },
    /// Says nothing of what the word held.
    Store {
        value: u64,
    },
}

impl Step {
    #[inline]
    fn on(self, word: &AtomicU64) -> u64 {
        match self {
            Self::CompareSwap { compare, swap } => sync::compare_swap(word, compare, swap),
            Self::FetchAdd { add } => sync::fetch_add(word, add),
            Self::Store { value } => {
                sync::release(word, value);
                0
            }
        }
    }
}

/// Does the step, and says what the word held.
#[inline]
pub fn apply(memory: &'static Memory, word: &Word<'_>, step: Step) -> Result<u64, NotDone> {
    match word {
        Word::Mapped(word) => Ok(step.on(word)),
        Word::Own(word) => {
            let _guard = lock(memory, word.as_ptr() as usize)?;
            Ok(step.on(word))
        }
        &Word::Far { far, piece, is_mapped } => step_far(memory, far, piece, is_mapped, step),
    }
}

/// The lock of a word, by its address in its own process.
fn stripe(memory: &'static Memory, addr: usize) -> &'static Lock {
    &memory.stripes[addr / LEN % STRIPES]
}

fn lock(memory: &'static Memory, addr: usize) -> Result<Guard<'static>, Trouble> {
    memory.lock(stripe(memory, addr), || {}).map_err(|_| Trouble::NoAnswer)
}

/// The same as [`apply`], of this process' own word, for others, whom it is not to keep waiting; `None` if it would, or the
/// word is another's.
pub fn apply_soon(memory: &'static Memory, word: &Word<'_>, step: Step) -> Option<u64> {
    match word {
        Word::Mapped(word) => Some(step.on(word)),
        Word::Own(word) => {
            let stripe = stripe(memory, word.as_ptr() as usize);
            let (end, mut backoff) = (Instant::now() + SOON, Backoff::default());
            loop {
                if let Some(_guard) = memory.shm.try_lock(stripe) {
                    return Some(step.on(word));
                }
                if Instant::now() > end {
                    return None;
                }
                backoff.snooze();
            }
        }
        Word::Far { .. } => None,
    }
}

#[cold]
fn step_far(
    memory: &'static Memory,
    far: Far,
    piece: Span,
    is_mapped: bool,
    step: Step,
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
fn remote_step(process: Process, at: &Target<'_>, step: Step) -> Result<u64, Errno> {
    let copy = [AtomicU64::new(0)];
    let stores = matches!(step, Step::Store { .. });
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
