//! Why polling, arming, waiting and posting fail.

use core::fmt;

use crate::cq_key::CqKey;
use crate::sentences::{from, sentences};

/// Why a completion queue can't be polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum PollError {
    /// The queue overran. All stored completions have been returned; every later poll fails with this error
    /// ([O3](crate::contract#o3)).
    Overrun {
        /// Lower bound on the completions dropped so far; `None` if the device does not report it.
        dropped: Option<u32>,
    },
    /// The consumer has failed the queue. All stored completions have been polled.
    Failed,
    /// The queue's producers are gone. All stored completions have been returned.
    Closed,
    /// The device failed with this code.
    Device(i32),
    /// The transport claimed more completions than the buffer holds ([P7](crate::contract#p7)).
    Misbehaved {
        /// Length of the buffer.
        asked: usize,
        /// Number of completions that the transport claimed.
        returned: usize,
    },
}

sentences!(PollError {
    Self::Overrun { dropped: Some(count) } => ("the completion queue overran and dropped {count} of its completions: make it large enough for all requests outstanding on its queue pairs");
    Self::Overrun { dropped: None } => ("the completion queue overran: make it large enough for all requests outstanding on its queue pairs");
    Self::Failed => ("the completion queue has failed and gets no more completions: destroy it");
    Self::Closed => ("the completion queue's producers are gone, and everything they stored has been polled");
    Self::Device(code) => ("the device failed to poll the completion queue (code {code})");
    Self::Misbehaved { asked, returned } => ("the transport returned {returned} completions for a buffer of {asked}");
});

/// Why a completion queue can't be armed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum ArmError {
    /// The queue was created without a completion channel, so it can't raise events ([N11](crate::contract#n11)).
    NoChannel,
    /// The device refused with this code.
    Device(i32),
}

sentences!(ArmError {
    Self::NoChannel => ("the completion queue has no completion channel: create it with one to arm it");
    Self::Device(code) => ("the device failed to arm the completion queue (code {code})");
});

/// Why a channel can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum EventError {
    /// The device or the operating system failed with this code.
    Device(i32),
}

sentences!(EventError {
    Self::Device(code) => ("the completion channel failed (code {code})");
});

/// Why waiting failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum WaitError {
    /// The queue failed.
    Poll(PollError),
    /// The queue can't be armed.
    Arm(ArmError),
    /// The channel, or the device, failed.
    Event(EventError),
    /// The channel is shared, and the event that was taken belongs to this other queue. Pass it on to that queue.
    OtherQueue(CqKey),
    /// A signal handler or a stop request interrupted the sleep, and nothing had come.
    Interrupted,
}

from! {
    PollError => WaitError::Poll;
    ArmError => WaitError::Arm;
    EventError => WaitError::Event;
}

sentences!(WaitError {
    Self::Poll(_) => ("the completion queue can't be polled");
    Self::Arm(_) => ("the completion queue can't be armed");
    Self::Event(_) => ("the channel can't be read or slept on");
    Self::OtherQueue(key) => ("the channel also serves completion queue {key}, whose event was taken: wait on a channel of this queue alone");
    Self::Interrupted => ("the wait was interrupted, by a signal or because a stop was asked for");
}
    Self::Poll(error) => error;
    Self::Arm(error) => error;
    Self::Event(error) => error;
);

/// Which request of a list was refused, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct PostError {
    /// Number of requests posted before the refused one, which is also its index in the list. With
    /// [`Refused::Unknown`] the number of those that may have been posted; those after them were not.
    pub posted: usize,
    /// The reason.
    pub why: Refused,
}

impl fmt::Display for PostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.why {
            Refused::Unknown(_) => {
                write!(f, "posting the first {} of the list failed", self.posted)
            }
            _ => write!(f, "request {} of the list was refused", self.posted),
        }
    }
}

impl core::error::Error for PostError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(&self.why)
    }
}

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Refused {
    /// The queue is full. Polling completions frees slots ([Q5](crate::contract#q5)).
    QueueFull,
    /// The request has more scatter/gather elements (SGEs) than the queue pair allows.
    TooManySges {
        /// The queue pair's limit.
        max: u32,
    },
    /// The request has more inline bytes than the queue pair allows.
    InlineTooLong {
        /// The queue pair's limit.
        max: u32,
    },
    /// The message is longer than the device allows.
    TooLong {
        /// The device's limit, in bytes.
        max: u64,
    },
    /// The queue pair's state does not accept such a request ([Q3](crate::contract#q3)).
    WrongState,
    /// The device does not support the operation.
    Unsupported,
    /// A READ or an atomic with inline data. These operations write to their SGEs.
    InlineResult,
    /// A READ or an atomic on a queue pair whose `max_rd_atomic` is 0 ([Q7](crate::contract#q7)).
    NoReadAtomic,
    /// A FLUSH with no placement or an invalid one.
    BadPlacement,
    /// A datagram without a destination in the queue pair's protection domain.
    NoDestination,
    /// The queue pair takes its receives from a shared receive queue ([Q9](crate::contract#q9)).
    SharedReceives,
    /// The device refused with this code.
    Device(i32),
    /// The device failed with this code, and named none of the requests that it was given. It may have all of them: they
    /// count as posted, and may use their buffers, until they complete or the queue pair goes to RESET or is destroyed.
    Unknown(i32),
}

sentences!(Refused {
    Self::QueueFull => ("the queue is full: poll completions that cover its requests, or create it with a larger max_send_wr or max_recv_wr");
    Self::TooManySges { max } => ("it has more scatter/gather elements than the queue pair's {max}");
    Self::InlineTooLong { max } => ("it has more inline bytes than the queue pair's {max}");
    Self::TooLong { max } => ("the message is longer than the device's {max} bytes");
    Self::WrongState => ("the queue pair's state takes no such request: move it to RTS to send, to INIT to receive");
    Self::Unsupported => ("the device does not have this operation");
    Self::InlineResult => ("READ and atomics write their data, so it can't be inline: give scatter/gather elements of registered memory");
    Self::NoReadAtomic => ("the queue pair's max_rd_atomic is 0, which allows no READ and no atomic: set it when going to RTS");
    Self::BadPlacement => ("a FLUSH needs a placement: GLOBAL, PERSISTENT or both");
    Self::NoDestination => ("a datagram needs a destination: an address handle of the queue pair's own protection domain, a queue pair's number and its queue key");
    Self::SharedReceives => ("the queue pair takes its receives from a shared receive queue: post them there");
    Self::Device(code) => ("the device refused it (code {code})");
    Self::Unknown(code) => ("the device failed (code {code}) and does not say at which request: those that never complete end when the queue pair goes to RESET");
});
