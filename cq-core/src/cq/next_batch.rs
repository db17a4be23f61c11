//! Waiting as a task does. Feature `async`.

use core::future::poll_fn;
use core::ops::Deref;
use core::task::{Poll, Waker};

use super::{CompletionQueue, WaitError, take_events};
use crate::channel::waker::{Receiver, WakerChannel};
use crate::transport::{Arm, Notify};
use crate::wc::Wc;

impl<T: Arm> CompletionQueue<T> {
    /// Takes up to `room.len()` completions, once there is one: [`wait`](Self::wait) for a task of any executor. Empty means
    /// that there is no `room`. Dropped before it is ready, it has taken nothing, and nothing is lost.
    ///
    /// The channel has to be this queue's alone.
    ///
    /// # Errors
    /// The queue failed, or ended, or can't be armed.
    pub async fn next_batch<'r>(
        &mut self,
        room: &'r mut [Wc],
        events: &mut Receiver<impl Deref<Target = WakerChannel>>,
    ) -> Result<&'r [Wc], WaitError> {
        let count = poll_fn(|task| match self.look_for(room, events, task.waker()) {
            Ok(0) if !room.is_empty() => Poll::Pending,
            looked => Poll::Ready(looked),
        });
        let count = count.await?;
        Ok(&room[..count])
    }

    /// Polls; if nothing is there, has the task woken by the next completion.
    pub(super) fn look_for(
        &mut self,
        room: &mut [Wc],
        events: &mut Receiver<impl Deref<Target = WakerChannel>>,
        task: &Waker,
    ) -> Result<usize, WaitError> {
        let count = self.take(room)?;
        if count > 0 || room.is_empty() {
            return Ok(count);
        }
        // Before the arm, whose event is to find it.
        events.register(task);
        take_events(self.transport.key(), events)?;
        self.look(room, Some(Notify::Next))
    }
}
