//! Which entry is completed, and which one must be polled for it.

use cq_core::entry::Entry;
use cq_core::queue::{Completion, Tagged};
use cq_core::wc::{Wc, WcOpcode, WcStatus};

/// A kind of completion. Of other entries than [`Wc`] it matters only whether they are [urgent](Self::is_urgent).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A receive.
    Receive,
    /// A receive of a message that was sent SOLICITED.
    Solicited,
    /// A send.
    Send,
    /// A send that failed.
    Failure,
    /// A receive that failed.
    FailedReceive,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Receive, Self::Solicited, Self::Send, Self::Failure, Self::FailedReceive];

    /// Whether it raises the event of a consumer that armed for solicited completions.
    #[must_use]
    pub const fn is_urgent(self) -> bool {
        matches!(self, Self::Solicited | Self::Failure | Self::FailedReceive)
    }

    /// The completion of this kind.
    pub const fn wc(self, wr_id: u64) -> Wc {
        let (status, opcode) = match self {
            Self::Receive | Self::Solicited => (WcStatus::SUCCESS, WcOpcode::RECV),
            Self::Send => (WcStatus::SUCCESS, WcOpcode::SEND),
            Self::Failure => (WcStatus::REM_OP_ERR, WcOpcode::SEND),
            Self::FailedReceive => (WcStatus::LOC_LEN_ERR, WcOpcode::RECV),
        };
        Wc::new(wr_id, status, 1).with_opcode(opcode)
    }

    /// The completion of this kind, for a [`Producer`](cq_core::queue::Producer) to push.
    #[must_use]
    pub const fn entry(self, wr_id: u64) -> Tagged {
        Tagged { wc: self.wc(wr_id), tag: 0, solicited: matches!(self, Self::Solicited) }
    }
}

/// An entry that the checks can make, and tell from others. [`Wc`] is one; implement it for an entry of your own.
pub trait Numbered: Entry + PartialEq {
    /// What is pushed for it: itself, unless it does not say alone whether it is urgent.
    type Pushed: Completion<Self> + Copy;

    /// What is pushed for the completion with this number. It is urgent if [`kind`](Kind::is_urgent) is.
    fn pushed(kind: Kind, number: u64) -> Self::Pushed;

    /// What is polled then. Override this if the entry has spare bits, which what is pushed sets.
    fn polled(kind: Kind, number: u64) -> Self {
        *Self::pushed(kind, number).entry()
    }

    /// Its number, or as much of it as the entry holds.
    fn number(&self) -> u64;
}

impl Numbered for Wc {
    type Pushed = Tagged;

    fn pushed(kind: Kind, number: u64) -> Tagged {
        kind.entry(number)
    }

    fn number(&self) -> u64 {
        self.wr_id()
    }
}
