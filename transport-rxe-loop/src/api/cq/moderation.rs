//! Completion queue moderation: [`Cq::moderate`].

use cq_verbs::setup::{DeviceError, ModerateError};

use super::Cq;
use crate::completion::queue::{key, ring};
use crate::completion::wakeup::Wakeup;
use crate::conditions::FORKED;
use crate::engine::{complete, in_flight};
use crate::protocol::mode::CqFlag;
use crate::protocol::moderation::{EventAction, Setting};
use crate::sync;

impl Cq {
    /// Delays each event until `count` completions have come, or `period` microseconds have passed since the first of
    /// them. A count of 1 with a period of 0 ends moderation. The maxima are in [`DeviceAttr`](crate::DeviceAttr).
    ///
    /// - The queue stays armed until the event is raised. Arming it again meanwhile requests no further event, and
    ///   polling it empty does not cancel the event.
    /// - Only completions that the queue was armed for count. A failure or a dropped completion raises the event at
    ///   once.
    /// - A period of 0 means 10 milliseconds, so that no event is delayed without limit; a count of 0 means 1.
    /// - An event that is delayed when this is called is raised. Resizing keeps the moderation.
    /// - It waits for a message that is being carried out, as [resizing](Cq::resize) does.
    ///
    /// ```
    /// use cq_core::transport::{Arm, Armed, Notify};
    /// use transport_rxe_loop::Context;
    ///
    /// let context = Context::open("loop0")?;
    /// let channel = context.create_channel()?;
    /// let mut cq = context.cq(16).channel(&channel).create()?;
    /// cq.moderate(4, 1_000)?;
    /// assert_eq!(cq.arm(Notify::Next), Ok(Armed::Armed));
    /// cq.moderate(1, 0)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The service thread can't be started, another process holds the queue's lock, or this is a forked child. Nothing
    /// was changed.
    #[doc(alias = "ibv_modify_cq")]
    pub fn moderate(&mut self, count: u16, period: u16) -> Result<(), ModerateError> {
        let (engine, index) = (self.handle.queue.engine, self.handle.queue.index);
        if !engine.shm.is_ours() {
            return Err(FORKED.into());
        }
        let (slot, setting) = (engine.completions.cq(index), Setting { count, period });
        if setting.is_any() && self.attachments.1.is_some() {
            let started = engine.shm.thread.start();
            started.map_err(|why| why.for_object("the service thread"))?;
            sync::lock(&engine.completions.moderated).insert(index);
        }
        let event_action = {
            in_flight::share_queue(engine, index);
            let _guard = complete::lock(engine, index).map_err(DeviceError::from)?;
            slot.mode.set(CqFlag::Moderated, setting.is_any());
            let queue = ring(engine.completions, slot.fanin.location());
            queue.map_or(EventAction::None, |queue| slot.moderation.set(queue.control(), setting))
        };
        Wakeup::new(key(engine.completions, index), event_action).raise(engine.completions);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
