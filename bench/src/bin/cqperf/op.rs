//! The operations that can be measured, and what each one means for the two ends.
//!
//! | operation | what happens | who learns of it |
//! |---|---|---|
//! | send | a message goes to a receive | both ends, by completions |
//! | write | a message goes to memory of the peer | the peer, by looking at that memory |
//! | read | a message is fetched from memory of the peer | who fetches |
//! | cas | a counter in memory of the peer is replaced by the next number | who does it |
//! | faa | one is added to it | who does it |

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// An operation. A variant with a docstring would make the help twice as long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    Send,
    Write,
    Read,
    Cas,
    Faa,
}

/// Bytes that an atomic is about.
pub const WORD: u32 = 8;

impl Op {
    /// As the command line has it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Write => "write",
            Self::Read => "read",
            Self::Cas => "cas",
            Self::Faa => "faa",
        }
    }

    /// Whether one end does everything, and the other one only has the memory.
    pub const fn fetches(self) -> bool {
        matches!(self, Self::Read | Self::Cas | Self::Faa)
    }

    /// Whether it is about eight bytes, as one step.
    pub const fn is_atomic(self) -> bool {
        matches!(self, Self::Cas | Self::Faa)
    }

    /// What a latency is the time of.
    pub const fn latency_is(self) -> &'static str {
        if self.fetches() { "operation" } else { "one way" }
    }
}
