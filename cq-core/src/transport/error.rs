//! Why polling, arming and waiting fail.

use super::CqKey;
use crate::sentences;

/// Why a completion queue can't be polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum PollError {
    /// The queue overran. All stored completions have been returned; every later poll fails, too
    /// ([O3](crate::contract#o3)).
    Overrun {
        /// How many completions were dropped so far; later polls may report more. `None` if the device does not report it.
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
    Self::Overrun { dropped: Some(count) } => ("the completion queue overran and dropped {count} entries: make it large enough for all that may be outstanding");
    Self::Overrun { dropped: None } => ("the completion queue overran: make it large enough for all that may be outstanding");
    Self::Failed => ("the completion queue has failed and gets no more completions: destroy it");
    Self::Closed => ("the completion queue's producers are gone, and everything they stored has been polled");
    Self::Device(code) => ("the device failed to poll the completion queue (code {code})");
    Self::Misbehaved { asked, returned } => ("the transport returned {returned} completions for a buffer of {asked}");
});

/// Why a completion queue can't be armed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum WaitError {
    /// The queue failed.
    Poll(PollError),
    /// The queue can't be armed.
    Arm(ArmError),
    /// The channel, or the device, failed.
    Event(EventError),
    /// The channel does not serve this queue, whose key this is, so a sleep would not end. Nothing was armed.
    WrongChannel(CqKey),
    /// The channel is shared, and the event that was taken belongs to this other queue. Pass it on to that queue.
    OtherQueue(CqKey),
    /// A signal handler or a stop request interrupted the sleep, and nothing had come.
    Interrupted,
}

crate::from_causes! {
    PollError => WaitError::Poll;
    ArmError => WaitError::Arm;
    EventError => WaitError::Event;
}

sentences!(WaitError {
    Self::Poll(_) => ("the completion queue can't be polled");
    Self::Arm(_) => ("the completion queue can't be armed");
    Self::Event(_) => ("the channel can't be read or slept on");
    Self::WrongChannel(key) => ("the channel does not serve completion queue {key}: wait on the channel that the queue was made with; a queue without one can only be polled");
    Self::OtherQueue(key) => ("the channel also serves completion queue {key}, whose event was taken: wait on a channel of this queue alone");
    Self::Interrupted => ("the wait was interrupted, by a signal or because a stop was asked for");
}
    Self::Poll(error) => error;
    Self::Arm(error) => error;
    Self::Event(error) => error;
);

#[cfg(feature = "std")]
crate::io_errors! {
    PollError { This::Device(code) => Self::from_raw_os_error(*code); }
    ArmError { This::Device(code) => Self::from_raw_os_error(*code); }
    EventError { This::Device(code) => Self::from_raw_os_error(*code); }
    WaitError { This::Poll(error) => *error; This::Arm(error) => *error; This::Event(error) => *error; This::Interrupted => std::io::ErrorKind::Interrupted; }
    crate::wc::Failed {}
}
