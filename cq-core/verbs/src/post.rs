//! Posting work requests: the trait that a queue pair implements, and why a request is refused.
//!
//! ```
//! use cq_core::transport::CqKey;
//! use cq_testing::fake::Script;
//! use cq_verbs::post::{Post, PostError, Refused};
//! use cq_verbs::wr::SendWr;
//!
//! // A queue pair: here a script, which takes one request and refuses the next.
//! let script = Script::<8>::new(CqKey { index: 0, generation: 1 });
//! let script = script.on_send(Ok(1)).on_send(Err(Refused::QueueFull));
//! let list = [SendWr::send_inline(1, b"first"), SendWr::send_inline(2, b"second")];
//! assert_eq!((&script).post_send(&list), Err(PostError { posted: 1, why: Refused::QueueFull }));
//! ```

use core::fmt;

use crate::wr::{RecvWr, SendWr};

/// Posts work requests.
pub trait Post {
    /// Posts a list of requests to the send queue, in order.
    ///
    /// # Errors
    /// A request was refused. The requests before it are posted; it and those after it are not
    /// ([Q4](cq_core::contract#q4)). [`Refused::Unknown`]: it is not known which of those before it are.
    fn post_send(&mut self, list: &[SendWr<'_>]) -> Result<(), PostError>;

    /// Posts a list of requests to the receive queue, in order.
    ///
    /// # Errors
    /// As for [`post_send`](Self::post_send).
    fn post_recv(&mut self, list: &[RecvWr<'_>]) -> Result<(), PostError>;

    /// Ends all use of buffers, before the queue pair is destroyed.
    ///
    /// With `true` the transport promises that the device neither reads nor writes a buffer of any request that was
    /// posted here, from now on: the caller frees them. It has to make that so, as by going to RESET, or know that
    /// it is: because posting has copied the bytes, or because the buffers belong to the transport and outlive the requests.
    ///
    /// With `false` the device may go on using them: the buffers of outstanding requests must never be freed, and the
    /// requests may still complete.
    fn quiesce(&mut self) -> bool;

    /// Judges a request without posting it: the reason why the queue pair as it is now would refuse it, whatever is
    /// outstanding, such as too many SGEs, too much inline data, or an operation that is not supported. `Ok` where that can't be told before it
    /// is posted.
    ///
    /// The state of the queue pair is not judged, which may change before the request is posted.
    ///
    /// # Errors
    /// The request can never be posted. Never [`QueueFull`](Refused::QueueFull).
    #[inline]
    fn check_send(&self, wr: &SendWr<'_>) -> Result<(), Refused> {
        let _ = wr;
        Ok(())
    }

    /// Judges a receive without posting it, as [`check_send`](Self::check_send) does.
    ///
    /// # Errors
    /// The request can never be posted. Never [`QueueFull`](Refused::QueueFull).
    #[inline]
    fn check_recv(&self, wr: &RecvWr<'_>) -> Result<(), Refused> {
        let _ = wr;
        Ok(())
    }
}

impl<T: Post + ?Sized> Post for &mut T {
    fn post_send(&mut self, list: &[SendWr<'_>]) -> Result<(), PostError> {
        (**self).post_send(list)
    }

    fn post_recv(&mut self, list: &[RecvWr<'_>]) -> Result<(), PostError> {
        (**self).post_recv(list)
    }

    fn quiesce(&mut self) -> bool {
        (**self).quiesce()
    }

    #[inline]
    fn check_send(&self, wr: &SendWr<'_>) -> Result<(), Refused> {
        (**self).check_send(wr)
    }

    #[inline]
    fn check_recv(&self, wr: &RecvWr<'_>) -> Result<(), Refused> {
        (**self).check_recv(wr)
    }
}

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Refused {
    /// The queue is full. Polling completions frees slots ([Q5](cq_core::contract#q5)).
    #[error(
        "the queue is full: poll completions that cover its requests, or create it with a larger max_send_wr or max_recv_wr"
    )]
    QueueFull,
    /// The request has more scatter/gather elements (SGEs) than the queue pair allows.
    #[error("it has more scatter/gather elements than the queue pair's {max}")]
    TooManySges {
        /// The queue pair's limit.
        max: u32,
    },
    /// The request has more inline bytes than the queue pair allows.
    #[error("it has more inline bytes than the queue pair's {max}")]
    InlineTooLong {
        /// The queue pair's limit.
        max: u32,
    },
    /// The message is longer than the device allows.
    #[error("the message is longer than the device's {max} bytes")]
    TooLong {
        /// The device's limit, in bytes.
        max: u64,
    },
    /// The queue pair's state does not accept such a request ([Q3](cq_core::contract#q3)).
    #[error(
        "the queue pair's state takes no such request: move it to RTS to send, to INIT to receive"
    )]
    WrongState,
    /// The device does not support the operation.
    #[error("the device does not have this operation")]
    Unsupported,
    /// A READ or an atomic with inline data. These operations write to their SGEs.
    #[error(
        "READ and atomics write their data, so it can't be inline: give scatter/gather elements of registered memory"
    )]
    InlineResult,
    /// A READ or an atomic on a queue pair whose `max_rd_atomic` is 0 ([Q7](cq_core::contract#q7)).
    #[error(
        "the queue pair's max_rd_atomic is 0, which allows no READ and no atomic: set it when going to RTS"
    )]
    NoReadAtomic,
    /// A FLUSH with no placement or an invalid one.
    #[error("a FLUSH needs a placement: GLOBAL, PERSISTENT or both")]
    BadPlacement,
    /// A datagram without a destination in the queue pair's protection domain.
    #[error(
        "a datagram needs a destination: an address handle of the queue pair's own protection domain, a queue pair's number and its queue key"
    )]
    NoDestination,
    /// The queue pair takes its receives from a shared receive queue ([Q9](cq_core::contract#q9)).
    #[error("the queue pair takes its receives from a shared receive queue: post them there")]
    SharedReceives,
    /// The device refused with this code.
    #[error("the device refused it (code {0})")]
    Device(i32),
    /// The device failed with this code, and named none of the requests that it was given. It may have all of them: they
    /// count as posted, and may use their buffers, until they complete or the queue pair goes to RESET or is destroyed.
    #[error(
        "the device failed (code {0}) and does not say at which request: those that never complete end when the queue pair goes to RESET"
    )]
    Unknown(i32),
}
