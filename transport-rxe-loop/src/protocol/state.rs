//! The states of a queue pair. What leads from one to another is not said here.
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
    /// New, or emptied: takes no requests.
    Reset = 0,
    /// Takes receives.
    Init = 1,
    /// Ready to receive.
    Rtr = 2,
    /// Ready to send, too.
    Rts = 3,
    /// The send queue is drained. A request that has begun is carried out: one that bytes are being moved
    /// for, or that waits for its peer. Those behind it wait until the queue pair is in RTS again, whenever
    /// they were posted; receives go on.
    Sqd = 4,
    /// The send queue failed: what was behind the failed request is flushed, and no more is taken until the
    /// queue pair is in RTS again; receives go on. A reliable connection never gets here: it goes to `Err`.
    Sqe = 5,
    /// Failed: everything posted is flushed.
    Err = 6,
}

impl QpState {
    /// Every state, in the order of their numbers.
    pub const ALL: [Self; 7] =
        [Self::Reset, Self::Init, Self::Rtr, Self::Rts, Self::Sqd, Self::Sqe, Self::Err];

    /// Whether post_send takes requests (Q3).
    #[must_use]
    pub const fn takes_sends(self) -> bool {
        matches!(self, Self::Rts | Self::Sqd | Self::Err)
    }

    /// Whether post_recv takes requests (Q3).
    #[must_use]
    pub const fn takes_recvs(self) -> bool {
        !matches!(self, Self::Reset)
    }

    /// Whether messages of the peer are taken.
    #[must_use]
    pub const fn receives(self) -> bool {
        matches!(self, Self::Rtr | Self::Rts | Self::Sqd | Self::Sqe)
    }

    /// The state of this number; what is no state is ERR, in which a queue pair does no harm.
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
