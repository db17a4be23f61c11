//! The states of a queue pair. The transitions are checked elsewhere.
//!
//! ```
//! use transport_rxe_loop::QpState;
//!
//! assert!(QpState::Init.takes_recvs() && !QpState::Init.receives()); // Q3
//! ```

use core::fmt;

/// `enum ibv_qp_state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum QpState {
    /// New, or reset: accepts no requests.
    Reset = 0,
    /// Accepts receives.
    Init = 1,
    /// Ready to receive.
    Rtr = 2,
    /// Ready to send as well.
    Rts = 3,
    /// The send queue is drained. A request that has begun completes: one whose bytes are being moved, or
    /// that waits for its peer. Later ones wait until the queue pair is in RTS again, whenever they were
    /// posted; receives continue.
    Sqd = 4,
    /// The send queue failed: requests behind the failed one are flushed, and no more are accepted until the queue
    /// pair is in RTS again; receives continue. A reliable connection never enters this state: it goes to `Err`.
    Sqe = 5,
    /// Failed: everything posted is flushed.
    Err = 6,
}

impl QpState {
    /// Every state, in the order of their numbers.
    pub const ALL: [Self; 7] =
        [Self::Reset, Self::Init, Self::Rtr, Self::Rts, Self::Sqd, Self::Sqe, Self::Err];

    /// Whether post_send accepts requests (Q3).
    #[must_use]
    pub const fn takes_sends(self) -> bool {
        matches!(self, Self::Rts | Self::Sqd | Self::Err)
    }

    /// Whether post_recv accepts requests (Q3).
    #[must_use]
    pub const fn takes_recvs(self) -> bool {
        !matches!(self, Self::Reset)
    }

    /// Whether the peer's messages are received.
    #[must_use]
    pub const fn receives(self) -> bool {
        matches!(self, Self::Rtr | Self::Rts | Self::Sqd | Self::Sqe)
    }

    /// The state with this number; any other number is ERR, in which a queue pair does no harm.
    pub(crate) const fn from_bits(bits: u32) -> Self {
        match bits {
            0 => Self::Reset,
            1 => Self::Init,
            2 => Self::Rtr,
            3 => Self::Rts,
            4 => Self::Sqd,
            5 => Self::Sqe,
            _ => Self::Err,
        }
    }
}

impl fmt::Display for QpState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reset => "RESET",
            Self::Init => "INIT",
            Self::Rtr => "RTR",
            Self::Rts => "RTS",
            Self::Sqd => "SQD",
            Self::Sqe => "SQE",
            Self::Err => "ERR",
        })
    }
}
