//! Posting work requests: the trait that a queue pair implements, and why a request is refused.
//!
//! ```
//! use cq_core::transport::CqKey;
//! use cq_testing::fake::Script;
//! use cq_verbs::post::{Post, PostError, WrError};
//! use cq_verbs::wr::SendWr;
//!
//! // A queue pair: here a script, which takes one request and refuses the next.
//! let script = Script::<8>::new(CqKey { index: 0, generation: 1 });
//! let script = script.on_send(Ok(1)).on_send(Err(WrError::QueueFull));
//! let list = [SendWr::send_inline(1, b"first"), SendWr::send_inline(2, b"second")];
//! assert_eq!((&script).post_send(&list), Err(PostError { posted: 1, why: WrError::QueueFull }));
//! ```

use crate::wr::{RecvWr, SendWr};

/// Posts work requests.
///
/// ```
/// use cq_core::transport::CqKey;
/// use cq_testing::fake::Script;
/// use cq_verbs::post::{Post, PostError};
/// use cq_verbs::wr::{RemoteAddr, SendWr, Sge};
///
/// /// Writes to the peer's memory, and then notifies the peer. One completion is for both.
/// fn publish(qp: &mut impl Post, data: &[Sge], to: RemoteAddr) -> Result<(), PostError> {
///     qp.post_send(&[SendWr::write(1, data, to).unsignaled(), SendWr::send_inline(2, b"done")])
/// }
/// let script = Script::<4>::new(CqKey { index: 0, generation: 1 });
/// publish(&mut &script, &[], RemoteAddr { addr: 0x1000, rkey: 8 })?;
/// assert_eq!(script.calls().len(), 2);
/// # Ok::<(), PostError>(())
/// ```
pub trait Post {
    /// Posts a list of requests to the send queue, in order.
    ///
    /// # Errors
    /// A request was refused. The requests before it are posted; it and those after it are not
    /// ([Q4](cq_core::contract#q4)). [`WrError::Unknown`]: it is not known which of those before it are.
    #[doc(alias("ibv_post_send", "ibv_wr_start", "ibv_wr_complete"))]
    fn post_send(&mut self, list: &[SendWr<'_>]) -> Result<(), PostError>;

    /// Posts a list of requests to the receive queue, in order.
    ///
    /// # Errors
    /// As for [`post_send`](Self::post_send).
    #[doc(alias = "ibv_post_recv")]
    fn post_recv(&mut self, list: &[RecvWr<'_>]) -> Result<(), PostError>;

    /// Ends all use of buffers, before the queue pair is destroyed.
    ///
    /// With `true` the transport promises that the device neither reads nor writes a buffer of any request that was
    /// posted here, from now on: the caller frees them. It has to make that so, as by going to RESET, or know that
    /// it is: because posting has copied the bytes, or because the buffers belong to the transport and outlive the requests.
    ///
    /// With `false` the device may still use them: the buffers of outstanding requests must never be freed, and the
    /// requests may still complete.
    fn quiesce(&mut self) -> bool;

    /// Judges a request without posting it: the reason why the queue pair as it is now would refuse it, whatever is
    /// outstanding, such as too many SGEs, too much inline data, or an operation that is not supported. `Ok` where that can't be checked before it
    /// is posted.
    ///
    /// The state of the queue pair is not judged, which may change before the request is posted.
    ///
    /// # Errors
    /// The request can never be posted. Never [`QueueFull`](WrError::QueueFull).
    #[inline]
    fn check_send(&self, wr: &SendWr<'_>) -> Result<(), WrError> {
        let _ = wr;
        Ok(())
    }

    /// Judges a receive without posting it, as [`check_send`](Self::check_send) does.
    ///
    /// # Errors
    /// The request can never be posted. Never [`QueueFull`](WrError::QueueFull).
    #[inline]
    fn check_recv(&self, wr: &RecvWr<'_>) -> Result<(), WrError> {
        let _ = wr;
        Ok(())
    }
}

/// The methods of [`Post`] as a type's own, which need no import.
#[doc(hidden)]
#[macro_export]
macro_rules! posted_without_import {
    () => {
        /// Posts a list of requests to the send queue, in order.
        ///
        /// # Errors
        /// A request was refused. The requests before it are posted; it and those after it are not
        /// ([Q4](::cq_core::contract#q4)).
        #[inline]
        #[doc(alias("ibv_post_send", "ibv_wr_start"))]
        pub fn post_send(
            &mut self,
            list: &[$crate::wr::SendWr<'_>],
        ) -> Result<(), $crate::post::PostError> {
            $crate::post::Post::post_send(self, list)
        }

        /// Posts a list of requests to the receive queue, in order.
        ///
        /// # Errors
        /// As for [`post_send`](Self::post_send).
        #[inline]
        #[doc(alias("ibv_post_recv"))]
        pub fn post_recv(
            &mut self,
            list: &[$crate::wr::RecvWr<'_>],
        ) -> Result<(), $crate::post::PostError> {
            $crate::post::Post::post_recv(self, list)
        }
    };
}

impl<T: Post + ?Sized> Post for &mut T {
    cq_core::of_target! { (**self);
        post_send(&mut self, list: &[SendWr<'_>]) -> Result<(), PostError>;
        post_recv(&mut self, list: &[RecvWr<'_>]) -> Result<(), PostError>;
        quiesce(&mut self) -> bool;
        check_send(&self, wr: &SendWr<'_>) -> Result<(), WrError>;
        check_recv(&self, wr: &RecvWr<'_>) -> Result<(), WrError>;
    }
}

/// Which request of a list was refused, and why.
///
/// ```
/// use cq_verbs::post::{PostError, WrError};
///
/// /// What of a list was not posted.
/// fn rest<W>(list: &[W], error: PostError) -> &[W] {
///     &list[error.posted..]
/// }
/// let error = PostError { posted: 1, why: WrError::QueueFull };
/// assert_eq!(rest(&["a", "b", "c"], error), ["b", "c"]);
/// assert_eq!(error.to_string(), "request 1 of the list was refused");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct PostError {
    /// Number of requests posted before the refused one, which is also its index in the list. With
    /// [`WrError::Unknown`] the number of those that may have been posted; those after them were not.
    pub posted: usize,
    /// The reason.
    pub why: WrError,
}

cq_core::sentences!(PostError {
    Self { posted, why: WrError::Unknown(_) } => ("posting the first {posted} of the list failed");
    Self { posted, .. } => ("request {posted} of the list was refused");
}
    Self { why, .. } => why;
);

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum WrError {
    /// The queue is full. Polling completions frees slots ([Q5](cq_core::contract#q5)).
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
    /// The queue pair's state does not accept such a request ([Q3](cq_core::contract#q3)).
    WrongState,
    /// The device does not support the operation.
    Unsupported,
    /// A READ or an atomic with inline data. These operations write to their SGEs.
    InlineResult,
    /// A READ or an atomic on a queue pair whose `max_rd_atomic` is 0 ([Q7](cq_core::contract#q7)).
    NoReadAtomic,
    /// A FLUSH with no placement or an invalid one.
    BadPlacement,
    /// A datagram without a destination in the queue pair's protection domain.
    NoDestination,
    /// The queue pair takes its receives from a shared receive queue ([Q9](cq_core::contract#q9)).
    SharedReceives,
    /// The device refused with this code.
    Device(i32),
    /// The device failed with this code, and named none of the requests that it was given. It may have all of them: they
    /// count as posted, and may use their buffers, until they complete or the queue pair goes to RESET or is destroyed.
    Unknown(i32),
}

cq_core::sentences!(WrError {
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
