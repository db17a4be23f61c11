//! Polling while a queue is full.

use core::ops::ControlFlow;

use cq_core::cq::CompletionQueue;
use cq_core::transport::PollError;
use cq_core::wc::Wc;

use super::NotPostedError;
use crate::polling::PollWc;
use crate::post::WrError;

/// What was polled in a wait for a queue's own completions.
#[derive(Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Reaped<'w, D> {
    /// A request of the queue has completed.
    Done(D),
    /// A completion of another one.
    Other(&'w Wc),
    /// The completion queue was empty. The caller may spin, yield, or check a deadline.
    Nothing,
}

/// Why a post that waits for a free slot ended without posting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum ReapError {
    /// The request was refused, and not because the queue is full.
    #[error("the request was refused")]
    Refused(#[from] WrError),
    /// The completion queue failed.
    #[error("the queue is full, and its completion queue can't be polled")]
    Poll(#[from] PollError),
    /// The caller ended the wait.
    #[error("the queue is full, and the wait for completions was ended")]
    Stopped,
}

/// What completions retire.
pub(crate) trait Retire {
    /// A request that has completed.
    type Done<'w>;

    /// Notes which requests have completed. Returns false if the completion is of another ledger.
    fn complete(&mut self, wc: &Wc) -> bool;

    /// Retires the next request that has completed.
    fn take<'w>(&mut self) -> Option<Self::Done<'w>>;
}

/// The part of a batch that is not yet retired. What is left when it is dropped is noted in the ledger.
struct Batch<'l, 'w, L: Retire> {
    ledger: &'l mut L,
    rest: &'w [Wc],
}

impl<'w, L: Retire> Batch<'_, 'w, L> {
    /// The next completion, for the caller to retire.
    const fn next_wc(&mut self) -> Option<&'w Wc> {
        match self.rest {
            [wc, rest @ ..] => {
                self.rest = rest;
                Some(wc)
            }
            [] => None,
        }
    }
}

impl<L: Retire> Drop for Batch<'_, '_, L> {
    fn drop(&mut self) {
        for wc in self.rest {
            self.ledger.complete(wc);
        }
    }
}

/// Passes on what has completed and was not taken; otherwise polls once, and passes on all that was polled, in the queue's
/// order. Returns `Break` if `reaped` did.
pub(crate) fn reap<L: Retire, C: PollWc>(
    ledger: &mut L,
    cq: &mut CompletionQueue<C>,
    buffer: &mut [Wc],
    reaped: &mut impl FnMut(Reaped<'_, L::Done<'_>>) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, PollError> {
    let mut is_over = false;
    let mut pass = |what: Reaped<'_, L::Done<'_>>| is_over |= reaped(what).is_break();
    let mut next = ledger.take();
    if next.is_none() {
        let batch = cq.poll(buffer)?;
        if batch.is_empty() {
            pass(Reaped::Nothing);
        }
        let mut batch = Batch { ledger: &mut *ledger, rest: batch };
        while let Some(wc) = batch.next_wc() {
            if !batch.ledger.complete(wc) {
                pass(Reaped::Other(wc));
            }
            while let Some(done) = batch.ledger.take() {
                pass(Reaped::Done(done));
            }
        }
    }
    while let Some(done) = next {
        pass(Reaped::Done(done));
        next = ledger.take();
    }
    Ok(if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
}

/// Posts by `post`. While the queue is full, [reaps](reap).
pub(crate) fn post_or_reap<L: Retire, T, C: PollWc>(
    ledger: &mut L,
    mut token: T,
    cq: &mut CompletionQueue<C>,
    buffer: &mut [Wc],
    mut post: impl FnMut(&mut L, T) -> Result<(), NotPostedError<T>>,
    mut reaped: impl FnMut(Reaped<'_, L::Done<'_>>) -> ControlFlow<()>,
) -> Result<(), NotPostedError<T, ReapError>> {
    loop {
        token = match post(ledger, token) {
            Ok(()) => return Ok(()),
            Err(NotPostedError { token, why: WrError::QueueFull }) => token,
            Err(NotPostedError { token, why }) => {
                return Err(NotPostedError { token, why: why.into() });
            }
        };
        let why = match reap(ledger, cq, buffer, &mut reaped) {
            Ok(ControlFlow::Continue(())) => continue,
            Ok(ControlFlow::Break(())) => ReapError::Stopped,
            Err(error) => error.into(),
        };
        return Err(NotPostedError { token, why });
    }
}
