//! Requests in flight: what is outstanding on a queue, which sends to signal, and which requests a completion retires.
//!
//! ```
//! use cq_core::transport::CqKey;
//! use cq_core::wc::{Wc, WcStatus};
//! use cq_testing::fake::{Call, Script};
//! use cq_verbs::ledger::{Array, Generation, Sends};
//! use cq_verbs::post::WrError;
//! use cq_verbs::wr::SendWr;
//!
//! // A queue pair: here a script.
//! let qp = &mut &Script::<32>::new(CqKey { index: 0, generation: 1 });
//! // With the feature `alloc`: `Sends::with_capacity(generation, 4)`.
//! let mut sends = Sends::<&str, Array<4>>::fixed(Generation::new(1));
//!
//! // The ledger chooses the `wr_id` of each request, and keeps the program's token.
//! for token in ["a", "b", "c", "d"] {
//!     sends.post(qp, SendWr::send_inline(0, b"ping").unsignaled(), token)?;
//! }
//! // The queue is full.
//! let refused = sends.post(qp, SendWr::send_inline(0, b"ping"), "e").unwrap_err();
//! assert_eq!((refused.token, refused.why), ("e", WrError::QueueFull));
//!
//! // The ledger signaled the second and the fourth. The completion of the second also retires the first (C9).
//! let Call::Send { wr_id, .. } = qp.calls()[1] else { unreachable!() };
//! let completion = Wc::new(wr_id, WcStatus::SUCCESS, 5);
//! let done: Vec<_> = sends.retire(&completion).map(|sent| sent.token).collect();
//! assert_eq!(done, ["a", "b"]);
//! assert_eq!(sends.outstanding(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Tokens
//! A ledger owns the `wr_id` of its queue's requests: it holds the direction, the generation of the ledger and the
//! number of the request. A program gives each request a token of any type instead, and gets it back when the request is
//! retired. So a program never needs the opcode of a failed completion, which is undefined ([C4](cq_core::contract#c4)):
//! the token identifies the request. A token can own the request's buffer, which the device may use until then.
//!
//! # Retiring
//! A completion of a send, good or bad, retires its request and all that were posted before it on the same queue
//! ([C9](cq_core::contract#c9), [C10](cq_core::contract#c10)): those were successful, since a failed request always completes
//! itself ([C8](cq_core::contract#c8)). A completion of a receive retires one receive. A completion whose `wr_id` is of
//! another ledger or another generation, such as one that was polled after its queue pair went to RESET, retires
//! nothing, and neither does one that is given a second time. So several queues' completions may be offered to several
//! ledgers, in any order of the ledgers. If threads share a completion queue, an older batch may be retired after a newer
//! one: what the newer one has covered is then retired already.
//!
//! A request is retired when its token is taken. A program that leaves a loop over what a completion retires, by `break`,
//! `?` or a panic, loses none: the others come first the next time, with the results that they had.
//!
//! The numbers of sends repeat after 2³² sends. Those of receives repeat when a slot was used 2³¹ / `N` times, with `N` the
//! capacity, rounded up to a power of two; free slots are used in turn, so that is after 2³¹ receives, or fewer where some stay outstanding
//! meanwhile. Only a completion that is given again after exactly so many others could retire another request.
//!
//! A request of which a transport does not know whether it was posted counts as posted
//! ([`WrError::Unknown`]): its token comes back when it completes, or when the ledger is restarted.
//!
//! On a queue that ignores overruns, a dropped completion covers nothing ([O8](cq_core::contract#o8)): its requests are
//! retired by a later one, as if they had succeeded.
//!
//! # Signaling
//! An unsignaled request does not complete on success, and its slot is freed only when a later completion covers it
//! ([Q5](cq_core::contract#q5)). [`Sends`] signals a request if the caller asked for it, at the latest every half queue,
//! and the one that fills the queue, so the queue never fills up with unsignaled requests alone. If a program waits for
//! the last of its requests, it posts that one signaled.
//!
//! # Two ledgers for a queue pair
//! [`Sends`] and [`Receives`] count one queue each. A [`TrackedQp`](crate::tracked::TrackedQp) joins them with their
//! queue pair, and with what they may use of the completion queues.

#[cfg(feature = "alloc")]
mod heap;
mod reap;
mod receives;
mod sends;
pub(crate) mod storage;
mod wr_id;

#[cfg(feature = "alloc")]
pub use self::heap::Heap;
pub use self::reap::{ReapError, Reaped};
#[cfg(target_has_atomic = "32")]
pub(crate) use self::reap::{Retire, post_or_reap, reap};
pub use self::receives::{Received, Receives};
#[cfg(target_has_atomic = "32")]
pub(crate) use self::sends::Covered;
pub use self::sends::{Retired, Sends, Sent};
pub(crate) use self::storage::Items;
pub use self::storage::{Array, Storage};
pub use self::wr_id::{Direction, Generation};
use crate::post::{PostError, WrError};

/// A request that was not posted. It gives the token back. As a reason alone ([`WrError`], [`ReapError`]) it is returned by
/// `?` whatever the token is; as a boxed error its token has to be `'static`.
///
/// ```
/// use cq_verbs::ledger::Sends;
/// use cq_verbs::post::{Post, WrError};
/// use cq_verbs::wr::SendWr;
///
/// /// The token borrows, so no error that is kept can have it.
/// fn greet<'b>(qp: &mut impl Post, sends: &mut Sends<&'b [u8]>, bytes: &'b [u8]) -> Result<(), WrError> {
///     sends.post(qp, SendWr::send_inline(0, bytes), bytes)?;
///     Ok(())
/// }
/// ```
#[derive(thiserror::Error)]
#[error("the request was not posted")]
pub struct NotPostedError<T, E = WrError> {
    /// The token of the request.
    pub token: T,
    /// Why it was not posted. [`WrError::QueueFull`]: the ledger or the queue has no free slot.
    #[source]
    pub why: E,
}

impl<T, E> NotPostedError<T, E> {
    /// The token, and why the request was not posted.
    #[must_use]
    pub fn into_parts(self) -> (T, E) {
        (self.token, self.why)
    }
}

impl<T> From<NotPostedError<T>> for WrError {
    fn from(error: NotPostedError<T>) -> Self {
        error.why
    }
}

impl<T> From<NotPostedError<T, Self>> for ReapError {
    fn from(error: NotPostedError<T, Self>) -> Self {
        error.why
    }
}

cq_core::debug_of!([T, E: core::fmt::Debug] NotPostedError<T, E> { why });

/// Without the token, which need not have it.
#[cfg(feature = "defmt")]
impl<T, E: defmt::Format> defmt::Format for NotPostedError<T, E> {
    fn format(&self, f: defmt::Formatter<'_>) {
        defmt::write!(f, "NotPostedError {{ why: {} }}", self.why);
    }
}

/// How much of a list was posted, of the part for which a ledger has free slots.
struct Posted {
    count: usize,
    refused: Option<WrError>,
}

impl Posted {
    /// Posts this part of the list.
    fn of<W>(list: &[W], post: impl FnOnce(&[W]) -> Result<(), PostError>) -> Self {
        if list.is_empty() {
            return Self { count: 0, refused: None };
        }
        match post(list) {
            Ok(()) => Self { count: list.len(), refused: None },
            // A transport's number is not trusted: only what was offered can be posted.
            Err(PostError { posted, why }) => {
                Self { count: posted.min(list.len()), refused: Some(why) }
            }
        }
    }

    /// The result for the whole list. `next` is how the first request was judged for which there was no slot.
    fn before(self, next: Option<Result<(), WrError>>) -> Result<(), PostError> {
        let Self { count: posted, refused } = self;
        refused.or_else(|| next.map(full)).map_or(Ok(()), |why| Err(PostError { posted, why }))
    }
}

/// Whether a request that was posted alone is posted. It is where that is not known: the device may have it.
fn posted_alone(posted: Result<(), PostError>) -> Result<(), WrError> {
    match posted {
        Err(PostError { posted: 0, why }) => Err(why),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Why a request is not posted that there is no slot for, and that was judged thus.
fn full(judged: Result<(), WrError>) -> WrError {
    judged.err().unwrap_or(WrError::QueueFull)
}

/// An iterator whose rest is dropped with it: also where the code that it was passed to panics.
struct Exhausted<I: Iterator>(I);

impl<I: Iterator> Iterator for Exhausted<I> {
    type Item = I::Item;

    fn next(&mut self) -> Option<I::Item> {
        self.0.next()
    }
}

impl<I: Iterator> Drop for Exhausted<I> {
    fn drop(&mut self) {
        self.0.by_ref().for_each(drop);
    }
}
