//! How a program has the events of a completion queue held back.

use thiserror::Error;

use super::Cq;
use crate::completion::moderation::act;
use crate::completion::queue::ring;
use crate::engine::complete;
use crate::error::Stuck;
use crate::protocol::mode::Trait;
use crate::protocol::moderation::{Alert, Setting};

/// Why a completion queue's events are held back as before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ModerateError {
    /// This process was forked from the one that opened the device.
    #[error("the device was opened by the parent process: open it in this one, too")]
    Forked,
    /// A process that lives holds the queue's lock and does not give it back: it is suspended, or broken.
    #[error("another process holds the queue's lock: let it go on, or end it, then try again")]
    Stuck,
    /// There is no thread to raise the events that have waited long enough.
    #[error("the system refuses the thread that raises events in time (errno {errno}): end some")]
    NoThread {
        /// What it said.
        errno: i32,
    },
}

impl Cq {
    /// Lets an event wait for `count` completions, or for `period` microseconds after the first of them;
    /// 1 and 0 end that. The most of either is in [`DeviceAttr`](crate::DeviceAttr).
    ///
    /// The queue stays armed until the event is raised: arming it again meanwhile asks for no further event, and
    /// polling it empty does not take the event back. Completions count that it was armed for. A failure and a
    /// completion that finds no room raise the event at once. A period of 0 is one of 10 milliseconds, so that no
    /// event waits for ever; a count of 0 is one of 1. An event that waits when this is called is raised. Resizing
    /// changes nothing about all this.
    ///
    /// ```
    /// use cq_core::transport::{Arm, Armed, Notify};
    /// use transport_rxe_loop::Context;
    ///
    /// let context = Context::open("loop0")?;
    /// let channel = context.create_channel()?;
    /// let mut cq = context.create_cq(16, Some(&channel))?;
    /// cq.moderate(4, 1_000)?;
    /// assert_eq!(cq.arm(Notify::Next), Ok(Armed::Armed));
    /// cq.moderate(1, 0)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The service thread, which raises events whose time is over, can't be started; or another process holds the
    /// queue's lock. Nothing was changed.
    pub fn moderate(&mut self, count: u16, period: u16) -> Result<(), ModerateError> {
        let (engine, index) = (self.queue.engine, self.queue.index);
        if !engine.shm.is_ours() {
            return Err(ModerateError::Forked);
        }
        let (slot, setting) = (engine.completions.cq(index), Setting { count, period });
        if setting.is_any() && self.attachments.1.is_some() {
            engine.shm.thread().start().map_err(|error| ModerateError::NoThread {
                errno: error.raw_os_error().unwrap_or(0),
            })?;
            engine.completions.moderated().insert(index);
        }
        let alert = {
            let _guard = complete::lock(engine, index).map_err(|Stuck| ModerateError::Stuck)?;
            slot.mode.set(Trait::Moderated, setting.is_any());
            let queue = ring(engine.completions, slot.fanin.place());
            queue.map_or(Alert::None, |queue| slot.moderation.set(queue.control(), setting))
        };
        act(engine.completions, index, alert);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
