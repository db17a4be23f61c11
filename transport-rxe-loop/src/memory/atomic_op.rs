//! Atomic operations on a word of this process, and the locks of words that others can't map.

use std::time::{Duration, Instant};

use super::Memory;
use super::copy_guard::Word;
use super::transfer::Trouble;
use crate::protocol::lock::Lock;
use crate::shm::lock::{Backoff, Guard};
use crate::sync::{self, AtomicU64};

/// How many locks there are. A power of two.
pub const STRIPES: usize = 64;

pub const LEN: usize = size_of::<u64>();

/// For how long others wait who ask this process for something else, while it waits for a lock on behalf of one. There may
/// be hundreds of these.
const SOON: Duration = Duration::from_micros(200);

/// What an atomic does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicOp {
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

/// The lock of a word, by its address in its own process.
pub fn stripe(memory: &'static Memory, addr: usize) -> &'static Lock {
    &memory.stripes[addr / LEN % STRIPES]
}

pub fn lock(memory: &'static Memory, addr: usize) -> Result<Guard<'static>, Trouble> {
    memory.lock(stripe(memory, addr), || {}).map_err(|_| Trouble::NoAnswer)
}

/// The same as [`apply`], of this process' own word, for others, whom it is not to keep waiting; `None` if it would, or the
/// word is another's.
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
