//! The flags of a completion queue that change how completions are pushed. They are one word, so that a
//! producer checks a single word, and nothing else where no such flag is set.
//!
//! | bit | flag | set by | cleared by |
//! |---|---|---|---|
//! | 0 | [given up](CqFlag::GivenUp) | a producer that could not take the lock | nobody |
//! | 1 | [ignores overruns](CqFlag::IgnoresOverrun) | the owner when it creates the queue | nobody |
//! | 2 | [moderated](CqFlag::Moderated) | the owner | the owner |
//! | 3 | [like Soft-RoCE's](CqFlag::LikeRxe) | the owner when it creates the queue | nobody |
//! | 4 | [overran](CqFlag::Overran) | under the lock: a producer whose completion was dropped, or the process that inherits the lock | nobody |
//! | 5 | [there](CqFlag::There) | the owner when it creates the queue | a fork, in the child: its mapping reads as zeros |
//! | 6 | [full](CqFlag::Full) | an injected fault | nobody |
//! | 7 | [counted](CqFlag::Counted) | the owner when it creates the queue | nobody |
//! | 8 | [known opcodes](CqFlag::KnownOpcodes) | the owner, before it creates queue pairs | nobody |
//!
//! Bits 0 and 4 inform processes that do not hold the lock. Such a process must not touch the ring: at any
//! instant the ring may be moved by a resize and its memory be reused. So a producer that cannot take the
//! lock sets bit 0 and writes nothing to the ring; the owner reads the bit when a poll finds nothing. Bits 4,
//! 5, 7 and 8 do not change how completions are pushed.
//!
//! Each bit belongs to one life of the queue: creating a queue [resets](Mode::begin) them. Producers read the
//! word without the lock, so a push in progress may see a change of bit 2 late; the state of moderation
//! itself is under the lock.

use crate::sync::{self, AtomicU32};

/// The word. Any value is valid; 0 is an ordinary queue. It is seldom written, and read by every push and by
/// every poll that finds nothing, so it has cache lines of its own.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub struct Mode(AtomicU32);

/// A flag of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum CqFlag {
    /// Its lock could not be taken; nobody pushes to the queue any more.
    GivenUp = 1 << 0,
    /// Completions that do not fit are dropped, and nothing else happens.
    IgnoresOverrun = 1 << 1,
    /// Its events may be moderated.
    Moderated = 1 << 2,
    /// Completions are pushed, and overruns handled, as Soft-RoCE does.
    LikeRxe = 1 << 3,
    /// A completion was dropped; the queue pairs concerned may not have been failed yet.
    Overran = 1 << 4,
    /// This process created the queue, and is not a forked child.
    There = 1 << 5,
    /// The next completion does not fit, even if there is space.
    Full = 1 << 6,
    /// Its polls are counted: a poll that finds nothing has to look elsewhere.
    Counted = 1 << 7,
    /// A completion that failed has the opcode that Soft-RoCE stores, and no pattern.
    KnownOpcodes = 1 << 8,
}

/// Flags that do not change how completions are pushed.
const ORDINARY: u32 = CqFlag::Overran as u32
    | CqFlag::There as u32
    | CqFlag::Counted as u32
    | CqFlag::KnownOpcodes as u32;

impl Mode {
    /// Initializes the word for a new queue.
    pub fn begin(&self, ignores_overrun: bool) {
        let word = if ignores_overrun { CqFlag::IgnoresOverrun as u32 } else { 0 };
        sync::store(&self.0, word | CqFlag::There as u32);
    }

    /// Whether a push needs no special handling.
    #[inline(always)]
    pub fn is_ordinary(&self) -> bool {
        sync::load(&self.0) & !ORDINARY == 0
    }

    /// Whether a poll need read nothing but the ring.
    #[inline(always)]
    pub fn is_all_in_ring(&self) -> bool {
        let there = CqFlag::There as u32;
        let elsewhere = CqFlag::GivenUp as u32 | CqFlag::Counted as u32;
        sync::load(&self.0) & (there | elsewhere) == there
    }

    /// Whether a flag is set.
    #[inline(always)]
    pub fn has(&self, which: CqFlag) -> bool {
        sync::load(&self.0) & which as u32 != 0
    }

    /// Whether the queue overran, or was given up and counts as one that did.
    pub fn has_failed(&self) -> bool {
        self.has(CqFlag::Overran) || self.has(CqFlag::GivenUp)
    }

    /// Sets or clears a flag.
    pub fn set(&self, which: CqFlag, is: bool) {
        let bit = which as u32;
        sync::fetch_update(&self.0, |word| {
            let next = if is { word | bit } else { word & !bit };
            (next != word).then_some(next)
        });
    }
}
