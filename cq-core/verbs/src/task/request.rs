//! A request that a task awaits.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use cq_core::wc::{Completed, Failed, Wc};
use tokio::sync::oneshot::{self, Receiver, Sender};

use crate::post::WrError;

/// A request that was posted. It completes whether it is awaited or not: to drop it is usual for a send that nobody waits
/// for. Its buffer is dropped when it completes, and if it fails, so do the receives of its queue pair.
#[must_use = "the request completes without it, but its buffer is then dropped"]
#[derive(Debug)]
pub struct Posted<B>(Receiver<Result<Finished<B>, UnfinishedError<B>>>);

/// A request that has succeeded.
#[derive(Debug)]
pub struct Finished<B> {
    /// The buffer that the request was posted with.
    pub buffer: B,
    wc: Wc,
}

impl<B> Finished<B> {
    /// The completion.
    pub const fn wc(&self) -> &Wc {
        &self.wc
    }

    /// The completion, of which all fields are defined.
    #[must_use]
    pub fn completed(&self) -> Completed<'_> {
        self.wc.result().unwrap_or_else(|failed| unreachable!("{failed}"))
    }
}

/// A request that has not succeeded, with its buffer if the device does not use it any more.
///
/// One that failed with WR_FLUSH is only a consequence: [`TaskQp::failure`](super::TaskQp::failure) is the cause.
///
/// ```
/// use cq_verbs::post::WrError;
/// use cq_verbs::task::{RequestError, UnfinishedError};
///
/// /// The buffer, if the request may be posted again later.
/// fn again<B>(error: UnfinishedError<B>) -> Option<B> {
///     match error.why {
///         RequestError::Refused(WrError::QueueFull) => error.buffer,
///         _ => None,
///     }
/// }
/// let error = UnfinishedError { buffer: Some("page"), why: WrError::QueueFull.into() };
/// assert_eq!(error.to_string(), "the request was refused");
/// assert_eq!(again(error), Some("page"));
/// ```
pub struct UnfinishedError<B> {
    /// The buffer that the request was posted with. If it is `None`, it stays with the queue pair, as the device may still
    /// use it, or was dropped after the queue pair was destroyed.
    pub buffer: Option<B>,
    /// What happened.
    pub why: RequestError,
}

impl<B> UnfinishedError<B> {
    /// The buffer, and what happened.
    #[must_use]
    pub fn into_parts(self) -> (Option<B>, RequestError) {
        (self.buffer, self.why)
    }
}

/// Why a request has not succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// It was refused when posted.
    #[error("the request was refused")]
    Refused(#[from] WrError),
    /// It completed with an error.
    #[error("the request failed")]
    Failed(#[from] Failed),
    /// Its queue pair went to RESET or was destroyed.
    #[error("the request was discarded: its queue pair was reset or destroyed")]
    Discarded,
    /// The completion queue is not polled any more: it failed, or its driver ended.
    #[error(
        "the completion queue is no longer polled, so the request can't be seen to complete: its queue failed, or its driver ended"
    )]
    NotPolled,
}

impl<B> UnfinishedError<B> {
    pub(super) const fn new(buffer: B, why: RequestError) -> Self {
        Self { buffer: Some(buffer), why }
    }
}

cq_core::debug_of!([B] UnfinishedError<B> { why });

impl<B> fmt::Display for UnfinishedError<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.why.fmt(f)
    }
}

impl<B> core::error::Error for UnfinishedError<B> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        self.why.source()
    }
}

impl<B> Future for Posted<B> {
    type Output = Result<Finished<B>, UnfinishedError<B>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context).map(|answer| match answer {
            Ok(result) => result,
            // The token was dropped with its queue pair.
            Err(_) => Err(UnfinishedError { buffer: None, why: RequestError::Discarded }),
        })
    }
}

/// The token of a request, in the ledgers of a [`TaskQp`](super::TaskQp). It owns the buffer until the request
/// completes.
#[derive(Debug)]
pub struct Token<B> {
    buffer: B,
    /// `None` once the task was answered because the completion queue is not polled any more.
    task: Option<Waiting<B>>,
}

/// The task that awaits a request.
#[derive(Debug)]
pub(super) struct Waiting<B>(Sender<Result<Finished<B>, UnfinishedError<B>>>);

impl<B> Waiting<B> {
    /// The request ends without its completion. The device may still use the buffer.
    pub(super) fn end(self, why: RequestError) {
        self.answer(Err(UnfinishedError { buffer: None, why }));
    }

    /// Answers the task. If it does not wait any more, the buffer is dropped.
    fn answer(self, answer: Result<Finished<B>, UnfinishedError<B>>) {
        drop(self.0.send(answer));
    }
}

impl<B> Token<B> {
    pub(super) fn new(buffer: B) -> (Self, Posted<B>) {
        let (task, answer) = oneshot::channel();
        (Self { buffer, task: Some(Waiting(task)) }, Posted(answer))
    }

    /// The error of a request that was not posted.
    pub(super) fn not_posted(self, why: RequestError) -> UnfinishedError<B> {
        UnfinishedError::new(self.buffer, why)
    }

    pub(super) fn complete(self, wc: &Wc, result: Result<(), Failed>) {
        let Self { buffer, task } = self;
        let answer = match result {
            Ok(()) => Ok(Finished { buffer, wc: *wc }),
            Err(failed) => Err(UnfinishedError::new(buffer, failed.into())),
        };
        if let Some(task) = task {
            task.answer(answer);
        }
    }

    /// The queue pair went to RESET: the device does not use the buffer any more.
    pub(super) fn discard(self) {
        if let Some(task) = self.task {
            task.answer(Err(UnfinishedError::new(self.buffer, RequestError::Discarded)));
        }
    }

    /// Takes out the task, which is to be answered without the queue pair's lock: that wakes it. The buffer stays.
    pub(super) const fn give_up(&mut self) -> Option<Waiting<B>> {
        self.task.take()
    }
}
