//! Asynchronous waiting.

use core::future::poll_fn;
use core::task::{Context, Poll, ready};

use super::{CompletionQueue, MOST_EVENTS, WaitError, take_events};
use crate::transport::{Arm, Notify, RegisterWaker};

impl<T: Arm> CompletionQueue<T> {
    /// Waits until there is a completion, then takes up to `buffer.len()` of them: [`wait`](Self::wait) for a task of
    /// any executor. Returns an empty slice only if `buffer` is empty.
    ///
    /// The channel must serve this queue only: a [waker](crate::channel), or one of the transport.
    ///
    /// # Cancel safety
    /// This method is cancel safe. If the future is dropped before it is ready, it has taken no completions.
    ///
    /// # Errors
    /// The queue failed or ended, it can't be armed, or the channel does not serve it or delivered an event of another
    /// queue.
    pub async fn next_batch<'r>(
        &mut self,
        buffer: &'r mut [T::Entry],
        events: &mut impl RegisterWaker,
    ) -> Result<&'r [T::Entry], WaitError> {
        let count = poll_fn(|task| self.poll_batch(buffer, events, task)).await?;
        Ok(&buffer[..count])
    }

    /// Polls. If the queue is empty, arranges for the next completion to wake the task.
    pub(super) fn poll_batch(
        &mut self,
        buffer: &mut [T::Entry],
        events: &mut impl RegisterWaker,
        task: &mut Context<'_>,
    ) -> Poll<Result<usize, WaitError>> {
        ready!(events.poll_budget(task));
        match self.look_or_register(buffer, events, task) {
            Ok(0) if !buffer.is_empty() => Poll::Pending,
            looked => {
                events.spend_budget(task);
                Poll::Ready(looked)
            }
        }
    }

    fn look_or_register(
        &mut self,
        buffer: &mut [T::Entry],
        events: &mut impl RegisterWaker,
        task: &Context<'_>,
    ) -> Result<usize, WaitError> {
        let count = self.take(buffer)?;
        if count > 0 || buffer.is_empty() {
            return Ok(count);
        }
        // Register before arming, so that the arm's event wakes this task.
        events.register(task.waker());
        let taken = take_events(self.transport.key(), events)?;
        if taken == MOST_EVENTS {
            // A channel need not wake the task for an event behind unread ones.
            task.waker().wake_by_ref();
        }
        self.look(buffer, taken, Some(Notify::Next))
    }
}
