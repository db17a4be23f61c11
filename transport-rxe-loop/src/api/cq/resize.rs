//! Resizing a completion queue: its completions move to a new ring under the producers' lock, which excludes both
//! sides. Their positions stay, by which send slots are freed (Q5), and the tags and the arm move with them. Unread events
//! stay at the channel.

use std::mem;

use cq_core::queue::OnChannel;
use cq_core::queue::raw::Layout;
use cq_core::transport::Arm;
use cq_verbs::setup::ResizeError;

use super::Cq;
use crate::completion::queue::ring;
use crate::conditions::no_memory;
use crate::engine::{complete, in_flight};
use crate::error::CreateError;
use crate::lifecycle::deaths;
use crate::protocol::fanin::Location;
use crate::protocol::mode::CqFlag;
use crate::sync;

impl Cq {
    /// Resizes the queue to hold `capacity` completions, and returns the new capacity, which is the same
    /// ([Q12](cq_core::contract#q12)). Completions stay in order; arm and events are kept. Completions may be pushed
    /// meanwhile. If the queue is of the sends of one queue pair alone, it waits for the message that this carries out,
    /// as [`QueuePair::modify`] does.
    ///
    /// [`QueuePair::modify`]: crate::QueuePair::modify
    ///
    /// ```
    /// use transport_rxe_loop::{Context, CreateError, LimitKind, ResizeError};
    ///
    /// let mut cq = Context::open("loop0")?.cq(16).create()?;
    /// assert_eq!(cq.resize(100)?, 100);
    /// assert_eq!(cq.resize(0), Err(ResizeError::Create(CreateError::Zero(LimitKind::Cqe))));
    /// assert_eq!(cq.capacity(), 100);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The queue holds more completions than `capacity`, the capacity is 0 or exceeds the device's limit, there is no
    /// memory, or the queue has overrun. Nothing was changed.
    #[doc(alias = "ibv_resize_cq")]
    pub fn resize(&mut self, capacity: u32) -> Result<u32, ResizeError> {
        let (location, extent, _) = deaths::retry_after_recovery(self.device, || {
            super::allocate(self.handle.queue.engine, capacity)
        })?;
        self.move_to(location, capacity)?;
        // No producer uses the old memory any more: each looks the ring up under the lock.
        let mut mine = sync::lock(&self.handle.queue.extent);
        drop(mem::replace(&mut *mine, extent));
        Ok(self.capacity() as u32)
    }

    fn move_to(&mut self, location: Location, asked: u32) -> Result<(), ResizeError> {
        let (engine, index) = (self.handle.queue.engine, self.handle.queue.index);
        let fanin = &engine.completions.cq(index).fanin;
        in_flight::share_queue(engine, index);
        let _guard = complete::lock(engine, index).map_err(CreateError::from)?;
        let none = CreateError::from(no_memory(Layout::SLOTS_AT));
        let old = ring(engine.completions, fanin.location()).ok_or(none)?;
        let new = ring(engine.completions, location).ok_or(none)?;
        let is_given_up = engine.completions.cq(index).mode.has(CqFlag::GivenUp);
        if is_given_up || old.control().end().is_some() {
            return Err(ResizeError::Overrun);
        }
        let consumer = self.consumer_mut();
        let unpolled = fanin.unpolled(consumer);
        if unpolled > asked.into() {
            let unpolled = unpolled.try_into().unwrap_or(u32::MAX);
            return Err(ResizeError::TooFew { unpolled, asked });
        }
        let channel = OnChannel::named(consumer.key());
        *consumer = fanin.move_to((consumer, &old), (location, new), channel);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
