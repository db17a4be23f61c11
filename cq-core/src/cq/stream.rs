//! Completions as a stream. Feature `async`.

use core::ops::Range;
use core::pin::Pin;
use core::task::{Context, Poll, ready};

use futures_core::Stream;

use super::{CompletionQueue, WaitError};
use crate::transport::{Arm, PollCq, PollError, RegisterWaker};

/// A [`Stream`] of a queue's completions, for a task of any executor. It polls up to `N` completions at a time. The
/// stream ends when the queue's producers are gone, or after an error. Completions that it has polled and not yet
/// yielded are lost when it is dropped.
///
/// ```
/// use cq_core::channel::waker;
/// use cq_core::cq::{CompletionQueue, CompletionStream};
/// use cq_core::queue::HeapCq;
/// use cq_core::wc::{Wc, WcStatus};
/// use futures_util::StreamExt;
///
/// let (raiser, events) = waker::channel();
/// let (mut producer, consumer) = HeapCq::new(16)?.split_with(raiser);
/// (0..5).for_each(|wr_id| producer.push(&Wc::new(wr_id, WcStatus::SUCCESS, 1)).unwrap());
/// drop(producer);
///
/// let completions = CompletionStream::<_, _, 4>::new(CompletionQueue::new(consumer), events);
/// let all: Vec<_> = pollster::block_on(completions.map(|wc| wc.unwrap().wr_id()).collect());
/// assert_eq!(all, [0, 1, 2, 3, 4]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A stream of batches of none does not compile:
/// ```compile_fail,E0080
/// # use cq_core::{channel::waker, cq::*, queue::*};
/// let (raiser, events) = waker::channel();
/// let (_, consumer) = HeapCq::new(1).unwrap().split_with(raiser);
/// let stream = CompletionStream::<_, _, 0>::new(CompletionQueue::new(consumer), events);
/// ```
#[derive(Debug)]
pub struct CompletionStream<T: PollCq, E, const N: usize> {
    cq: CompletionQueue<T>,
    events: E,
    batch: [T::Entry; N],
    /// The part of the batch that is not yet returned.
    left: Range<usize>,
    is_over: bool,
}

impl<T: Arm, E: RegisterWaker, const N: usize> CompletionStream<T, E, N> {
    /// Creates a stream of this queue. `events` must serve this queue only.
    #[must_use]
    pub fn new(cq: CompletionQueue<T>, events: E) -> Self {
        const { assert!(N > 0, "a batch has to hold something") };
        Self { cq, events, batch: [bytemuck::zeroed(); N], left: 0..0, is_over: false }
    }
}

// No field is structurally pinned.
impl<T: PollCq, E: Unpin, const N: usize> Unpin for CompletionStream<T, E, N> {}

impl<T: Arm, E: RegisterWaker + Unpin, const N: usize> Stream for CompletionStream<T, E, N> {
    type Item = Result<T::Entry, WaitError>;

    fn poll_next(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Self { cq, events, batch, left, is_over } = self.get_mut();
        if let Some(nth) = left.next() {
            return Poll::Ready(Some(Ok(batch[nth])));
        }
        if !*is_over {
            match ready!(cq.poll_batch(batch, events, task)) {
                Ok(count) => *left = 0..count,
                Err(error) => {
                    *is_over = true;
                    let is_end = error == WaitError::Poll(PollError::Closed);
                    return Poll::Ready((!is_end).then_some(Err(error)));
                }
            }
        }
        Poll::Ready(left.next().map(|nth| Ok(batch[nth])))
    }
}
