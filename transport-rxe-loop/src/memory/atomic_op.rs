//! Atomic operations on words of this process, and the locks for words that other processes can't map.

use std::time::{Duration, Instant};

use super::Memory;
use super::copy_guard::Word;
use super::transfer::Trouble;
use crate::protocol::lock::Lock;
use crate::shm::lock::{Backoff, Guard};
use crate::sync::{self, AtomicU64};

/// The number of locks. A power of two.
pub const STRIPES: usize = 64;

pub const LEN: usize = size_of::<u64>();

/// How long an atomic on behalf of another process waits for its lock. Requests of other processes wait meanwhile,
/// and there may be hundreds of them.
const SOON: Duration = Duration::from_micros(200);

/// An atomic operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicOp {
    CompareSwap {
        compare: u64,
        swap: u64,
    },
    FetchAdd {
        add: u64,
    },
    /// Does not return the previous value.
    Store {
        value: u64,
    },
}

impl AtomicOp {
    #[inline]
    pub fn on(self, word: &AtomicU64) -> u64 {
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

/// The lock of a word, by its address in its owner's process.
pub fn stripe(memory: &'static Memory, addr: usize) -> &'static Lock {
    &memory.stripes[addr / LEN % STRIPES]
}

pub fn lock(memory: &'static Memory, addr: usize) -> Result<Guard<'static>, Trouble> {
    memory.lock(stripe(memory, addr), || {}).map_err(|_| Trouble::NoAnswer)
}

/// As [`apply`](super::atomics::apply), for a word of this process on behalf of another process, and with a bounded
/// wait for the lock. `None` if it could not be locked in time, or the word is another process'.
pub fn apply_soon(memory: &'static Memory, word: &Word<'_>, step: AtomicOp) -> Option<u64> {
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
