//! A completion queue over any transport: batch poll, arm and poll again, wait. Safe code that knows
//! nothing of rings, since real hardware has none that could be seen.
//!
//! ```
//! use core::time::Duration;
//! use cq_core::cq::CompletionQueue;
//! use cq_core::transport::{Arm, Block, Poll};
//! use cq_core::wc::Wc;
//!
//! /// Serves completions until none has come for a second: spins while there is work, sleeps while
//! /// there is none.
//! fn serve<T: Arm>(cq: &mut CompletionQueue<T>, channel: &mut impl Block) -> Result<(), Box<dyn std::error::Error>> {
//!     let mut room = [Wc::default(); 32];
//!     loop {
//!         let batch = cq.wait(&mut room, channel, Some(Duration::from_secs(1)))?;
//!         if batch.is_empty() {
//!             return Ok(());
//!         }
//!         for wc in batch {
//!             println!("request {} is done: {}", wc.wr_id(), wc.status());
//!         }
//!     }
//! }
//! ```

use core::time::Duration;

use crate::sync::{Site, intact};
use crate::transport::{Arm, ArmError, Armed, Block, CqKey, EventError, Notify, Poll, PollError};
use crate::wc::Wc;

/// A completion queue of a transport.
#[derive(Debug)]
pub struct CompletionQueue<T> {
    transport: T,
}

impl<T: Poll> CompletionQueue<T> {
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
    /// that sleep on a descriptor of their own.
    ///
    /// # Errors
    /// The queue failed, or can't be armed.
    pub fn poll_or_arm<'r>(
        &mut self,
        room: &'r mut [Wc],
        on: Notify,
    ) -> Result<&'r [Wc], WaitError> {
        let count = self.look(room, Some(on))?;
        Ok(&room[..count])
    }

    /// Takes up to `room.len()` completions, sleeping on `channel` until there is one. Empty means that
    /// `limit` is over, or that `room` is. `None` waits for ever.
    ///
    /// The channel has to be this queue's alone: its events are taken here.
    ///
    /// # Errors
    /// The queue or the channel failed, or the channel names another queue: that event is in the error,
    /// and with its owner nothing is lost.
    pub fn wait<'r>(
        &mut self,
        room: &'r mut [Wc],
        channel: &mut impl Block,
        limit: Option<Duration>,
    ) -> Result<&'r [Wc], WaitError> {
        wait_with(self.transport.key(), room, channel, limit, |room, on| self.look(room, on))
    }

    /// Polls and, if nothing was there, arms for `on` and polls again.
    pub(crate) fn look(&mut self, room: &mut [Wc], on: Option<Notify>) -> Result<usize, WaitError> {
        let count = self.take(room)?;
        let Some(on) = on.filter(|_| count == 0 && !room.is_empty()) else { return Ok(count) };
        match self.transport.arm(on)? {
            Armed::MayHaveMissed if intact(Site::SecondPoll) => Ok(self.take(room)?),
            _ => Ok(0),
        }
    }
}

/// Waits for the queue called `key`, which `look` looks at before each sleep, arming it, and a last time
/// when `limit` is over.
pub(crate) fn wait_with<'r>(
    key: CqKey,
    room: &'r mut [Wc],
    channel: &mut impl Block,
    limit: Option<Duration>,
    mut look: impl FnMut(&mut [Wc], Option<Notify>) -> Result<usize, WaitError>,
) -> Result<&'r [Wc], WaitError> {
    let mut left = limit;
    let mut count = 0;
    while !room.is_empty() {
        count = look(room, Some(Notify::Next))?;
        if count > 0 {
            break;
        }
        if !sleep(key, channel, &mut left)? {
            count = look(room, None)?;
            break;
        }
    }
    Ok(&room[..count])
}

/// Sleeps until an event of this queue has been taken; false if the time is over first.
fn sleep(
    of: CqKey,
    channel: &mut impl Block,
    left: &mut Option<Duration>,
) -> Result<bool, WaitError> {
    loop {
        match channel.next()? {
            Some(key) if key == of => return Ok(true),
            Some(key) => return Err(WaitError::OtherQueue(key)),
            None if channel.block(left)? => {}
            None => return Ok(false),
        }
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
    Self::Poll(error) => ("{error}");
    Self::Arm(error) => ("{error}");
    Self::Event(error) => ("{error}");
    Self::OtherQueue(key) => ("the channel also serves completion queue {key}, whose event was taken: wait on a channel of this queue alone");
});
