//! What a script notes of the code under test.

use core::time::Duration;

use crate::transport::{CqKey, Notify};
use crate::wr::{RecvWr, SendFlags, SendOp, SendWr};

/// What the code under test did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Call {
    /// It polled, with room for so many.
    Poll(usize),
    /// It armed.
    Arm(Notify),
    /// It asked the channel for an event.
    Event,
    /// It asked the device for an asynchronous event.
    Async,
    /// It blocked, with this deadline on the script's clock.
    Block(Option<Duration>),
    /// It posted this request, which was taken. `SendWr::into` makes one to compare with.
    Send {
        /// The request's number.
        wr_id: u64,
        /// What it does.
        op: SendOp,
        /// How.
        flags: SendFlags,
        /// With how many bytes.
        len: u64,
    },
    /// It posted this receive, which was taken. `RecvWr::into` makes one to compare with.
    Recv {
        /// The request's number.
        wr_id: u64,
        /// Into how many bytes.
        len: u64,
    },
    /// It posted the request of this number, which was refused.
    Refused(u64),
    /// It raised an event for this queue.
    Raise(CqKey),
    /// So many more calls, of which there was no room to take note.
    Unrecorded(usize),
}

impl From<SendWr<'_>> for Call {
    fn from(wr: SendWr<'_>) -> Self {
        Self::Send { wr_id: wr.wr_id, op: wr.op, flags: wr.flags, len: wr.data.len() }
    }
}

impl From<RecvWr<'_>> for Call {
    fn from(wr: RecvWr<'_>) -> Self {
        Self::Recv { wr_id: wr.wr_id, len: wr.sges.iter().map(|sge| u64::from(sge.length)).sum() }
    }
}

impl Call {
    /// What is noted of this request if it is refused.
    pub(super) const fn refused(self) -> Self {
        match self {
            Self::Send { wr_id, .. } | Self::Recv { wr_id, .. } => Self::Refused(wr_id),
            other => other,
        }
    }
}
