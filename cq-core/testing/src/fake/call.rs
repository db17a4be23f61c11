//! The calls that a script records.

use core::time::Duration;

use cq_core::transport::{CqKey, Notify};
use cq_verbs::wr::{RecvWr, SendFlags, SendOp, SendWr};

/// A call of the code under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Call {
    /// It polled, with a buffer of this many entries.
    Poll(usize),
    /// It armed the queue.
    Arm(Notify),
    /// It asked the channel for an event.
    Event,
    /// It asked the device for an asynchronous event.
    Async,
    /// It blocked on the channel, with this deadline on the script's clock.
    Block(Option<Duration>),
    /// It posted this request, which was accepted. To compare, convert a [`SendWr`] with `into`.
    Send {
        /// The request's `wr_id`.
        wr_id: u64,
        /// The operation.
        op: SendOp,
        /// The flags.
        flags: SendFlags,
        /// The length of its data, in bytes.
        len: u64,
    },
    /// It posted this receive, which was accepted. To compare, convert a [`RecvWr`] with `into`.
    Recv {
        /// The request's `wr_id`.
        wr_id: u64,
        /// The length of its scatter/gather elements, in bytes.
        len: u64,
    },
    /// It posted the request of this `wr_id`, which was refused.
    Refused(u64),
    /// It raised an event for this queue.
    Raise(CqKey),
    /// This many more calls, which exceed the script's capacity.
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
    /// The entry for this request if it is refused.
    pub(super) const fn refused(self) -> Self {
        match self {
            Self::Send { wr_id, .. } | Self::Recv { wr_id, .. } => Self::Refused(wr_id),
            other => other,
        }
    }
}
