//! A completion queue over any transport: batch poll, arm and poll again, wait. Safe code that knows
//! nothing of rings, since real hardware has none that could be seen.
//!
//! ```
//! use std::time::{Duration, Instant};
//! use cq_core::cq::{CompletionQueue, WaitError};
//! use cq_core::transport::{Arm, Block, PollCq};
//! use cq_core::wc::Wc;
//!
//! /// Serves completions until none has come for a second: spins while there is work, sleeps while
//! /// there is none.
//! fn serve<T, C>(cq: &mut CompletionQueue<T>, channel: &mut C) -> Result<(), WaitError>
//! where
//!     T: Arm,
//!     C: Block<Instant = Instant>,
//! {
//!     let mut room = [Wc::default(); 32];
//!     loop {
//!         let batch = cq.wait(&mut room, channel, Some(Instant::now() + Duration::from_secs(1)))?;
//!         if batch.is_empty() {
//!             return Ok(());
//!         }
//!         for wc in batch {
//!             println!("request {} is done: {}", wc.wr_id(), wc.status());
//!         }
//!     }
//! }
//! ```

#[cfg(feature = "async")]
mod next_batch;
#[cfg(feature = "stream")]
mod stream;

#[cfg(feature = "stream")]
pub use self::stream::CompletionStream;

use crate::transport::{
    Arm, ArmError, Armed, Block, CqKey, EventError, Events, Notify, PollCq, PollError, Woken,
};
use crate::wc::Wc;

/// A completion queue of a transport.
#[derive(Debug)]
pub struct CompletionQueue<T> {
    transport: T,
}

impl<T: PollCq> CompletionQueue<T> {
    /// The queue of this transport.
    pub const fn new(transport: T) -> Self {
        Self { transport }
    }

    /// Takes up to `room.len()` completions, oldest first. Never blocks; empty means that there was none
    /// (P1–P3). Entries of `room` past the returned ones stay as they are (P4).
    ///
    /// # Errors
    /// The queue itself failed. A transport that claims more than there was room for is not believed (P7).
    #[inline]
    pub fn poll<'r>(&mut self, room: &'r mut [Wc]) -> Result<&'r [Wc], PollError> {
        let count = self.take(room)?;
        Ok(&room[..count])
    }

    /// The transport, for what is its own.
    pub const fn transport(&mut self) -> &mut T {
        &mut self.transport
    }

    /// Gives the transport back.
    pub fn into_transport(self) -> T {
        self.transport
    }

    #[inline]
    fn take(&mut self, room: &mut [Wc]) -> Result<usize, PollError> {
        let asked = room.len();
        match self.transport.poll(room)? {
            returned if returned > asked => Err(PollError::Misbehaved { asked, returned }),
            returned => Ok(returned),
        }
    }
}

impl<T: Arm> CompletionQueue<T> {
    /// Polls and, if nothing was there, arms for `on` and polls again. Empty means: armed, and safe to
    /// sleep until the event (N2, N6); but an empty `room` says nothing, and arms nothing. For event loops
    /// that sleep on a descriptor of their own: wake, take the channel's events, and poll like this until
    /// nothing is there. Each arm may raise one event, so one that never takes them gathers them (N9).
    ///
    /// # Errors
    /// The queue failed, or can't be armed.
    pub fn poll_or_arm<'r>(
        &mut self,
        room: &'r mut [Wc],
        on: Notify,
    ) -> Result<&'r [Wc], WaitError> {
        let mut count = self.look(room, None)?;
        if count == 0 && !room.is_empty() {
            count = self.look(room, Some(on))?;
        }
        Ok(&room[..count])
    }

    /// Takes up to `room.len()` completions, sleeping on `channel` until there is one. Empty means that the
    /// deadline has passed, or that there is no `room`; `None` is no deadline. With a channel of the
    /// standard library's clock, `Some(Instant::now() + Duration::from_secs(1))` waits for a second.
    ///
    /// The channel has to be this queue's alone: its events are taken here, also those that nobody has slept
    /// for, before the queue is armed anew. So two are unread at most, of the last arm and of one whose event
    /// was under way then, however many waits find completions without sleeping.
    ///
    /// # Errors
    /// The queue or the channel failed. The channel names another queue: that event is in the error, and with
    /// its owner nothing is lost. Or the sleep was interrupted, by a signal for example, and no completion
    /// was there: a batch comes without the error, so a handler's flag is to be looked at after each wait.
    pub fn wait<'r, C: Block>(
        &mut self,
        room: &'r mut [Wc],
        channel: &mut C,
        deadline: Option<C::Instant>,
    ) -> Result<&'r [Wc], WaitError> {
        wait_with(self.transport.key(), room, channel, deadline, |room, on| self.look(room, on))
    }

    /// Polls; or arms, and polls for what came before the arm.
    pub(crate) fn look(&mut self, room: &mut [Wc], on: Option<Notify>) -> Result<usize, WaitError> {
        let Some(on) = on else { return self.take(room).map_err(WaitError::Poll) };
        match self.transport.arm(on)? {
            Armed::MayHaveMissed => Ok(self.take(room)?),
            Armed::Armed => Ok(0),
        }
    }
}

/// Waits for the queue called `key`. `look` polls it; or arms it, and polls for what came before the arm.
pub(crate) fn wait_with<'r, C: Block>(
    key: CqKey,
    room: &'r mut [Wc],
    channel: &mut C,
    deadline: Option<C::Instant>,
    mut look: impl FnMut(&mut [Wc], Option<Notify>) -> Result<usize, WaitError>,
) -> Result<&'r [Wc], WaitError> {
    let mut count = 0;
    while !room.is_empty() {
        count = look(room, None)?;
        if count > 0 {
            break;
        }
        // What is taken after the arm may be the arm's own, and is then missing in the sleep.
        take_events(key, channel)?;
        count = look(room, Some(Notify::Next))?;
        if count > 0 {
            break;
        }
        let woken = channel.block(deadline)?;
        if woken == Woken::Event {
            take_event(key, channel)?;
            continue;
        }
        count = look(room, None)?;
        if count == 0 && woken == Woken::Interrupted {
            return Err(WaitError::Interrupted);
        }
        break;
    }
    Ok(&room[..count])
}

/// Takes what events there are. Of a channel that has more and more of them, some; with one left, a sleep ends at once.
fn take_events(of: CqKey, channel: &mut impl Events) -> Result<(), WaitError> {
    const MOST: usize = 16;
    for _ in 0..MOST {
        if !take_event(of, channel)? {
            break;
        }
    }
    Ok(())
}

/// Takes an event of this queue, if there is one.
fn take_event(of: CqKey, channel: &mut impl Events) -> Result<bool, WaitError> {
    match channel.take_event()? {
        Some(key) if key != of => Err(WaitError::OtherQueue(key)),
        event => Ok(event.is_some()),
    }
}

/// Why waiting failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitError {
    /// The queue failed.
    Poll(PollError),
    /// The queue can't be armed.
    Arm(ArmError),
    /// The channel failed.
    Event(EventError),
    /// The channel is shared, and the event that was taken is another queue's: hand it there.
    OtherQueue(CqKey),
    /// The sleep ended for something else than the channel: a signal was handled, or a stop was asked for.
    /// The queue was empty then.
    Interrupted,
}

impl From<PollError> for WaitError {
    fn from(error: PollError) -> Self {
        Self::Poll(error)
    }
}

impl From<ArmError> for WaitError {
    fn from(error: ArmError) -> Self {
        Self::Arm(error)
    }
}

impl From<EventError> for WaitError {
    fn from(error: EventError) -> Self {
        Self::Event(error)
    }
}

crate::transport::sentences!(WaitError {
    Self::Poll(_) => ("the completion queue can't be polled");
    Self::Arm(_) => ("the completion queue can't be armed");
    Self::Event(_) => ("the completion channel can't be read or slept on");
    Self::OtherQueue(key) => ("the channel also serves completion queue {key}, whose event was taken: wait on a channel of this queue alone");
    Self::Interrupted => ("the wait was interrupted, by a signal or because a stop was asked for");
}
    Self::Poll(error) => error;
    Self::Arm(error) => error;
    Self::Event(error) => error;
);
