//! Resizing: what waits in a queue moves to a new ring, under the producers' lock, so that neither side is
//! at work. With it go the tags, by which send slots come back (Q5), and the arm. Events that nobody has
//! read stay where they are, at the channel.

use std::mem;
use std::sync::PoisonError;

use cq_core::queue::raw::Layout;
use cq_core::queue::{OnChannel, State};
use cq_core::transport::Arm;
use thiserror::Error;

use super::Cq;
use crate::completion::queue::ring;
use crate::engine::complete;
use crate::error::CreateError;
use crate::lifecycle::deaths;
use crate::protocol::fanin::Place;
use crate::protocol::mode::Trait;

/// Why a completion queue keeps its size (Q12). Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ResizeError {
    /// No queue of this size could be made, either.
    #[error(transparent)]
    Refused(#[from] CreateError),
    /// It would not hold what waits in it.
    #[error("{unpolled} completions wait, more than the {asked} asked for: poll some first")]
    TooFew {
        /// How many wait to be polled.
        unpolled: u32,
        /// How many it was to hold.
        asked: u32,
    },
    /// It has overrun, which no size mends.
    #[error("the completion queue has overrun: destroy it, and make a larger one")]
    Overrun,
}

impl Cq {
    /// Makes it hold `capacity` completions; says how many it holds then, which is as many (Q12). What
    /// waits in it is kept in order; arms and events stay. Completions may come meanwhile.
    ///
    /// ```
    /// use transport_rxe_loop::{Context, CreateError, Limit, ResizeError};
    ///
    /// let mut cq = Context::open("loop0")?.create_cq(16, None)?;
    /// assert_eq!(cq.resize(100)?, 100);
    /// assert_eq!(cq.resize(0), Err(ResizeError::Refused(CreateError::Zero(Limit::Cqe))));
    /// assert_eq!(cq.capacity(), 100);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// More completions wait than it would hold, a capacity of 0 or past the device's limit, no memory, or
    /// it has overrun. Nothing was changed.
    pub fn resize(&mut self, capacity: u32) -> Result<u32, ResizeError> {
        let (place, extent) =
            deaths::take(self.device, || super::allocate(self.queue.engine, capacity))?;
        self.move_to(place, capacity)?;
        // No producer knows the old memory any more: they look it up under the lock.
        let mut mine = self.queue.extent.lock().unwrap_or_else(PoisonError::into_inner);
        drop(mem::replace(&mut *mine, extent));
        Ok(self.capacity())
    }

    fn move_to(&mut self, place: Place, asked: u32) -> Result<(), ResizeError> {
        let (engine, index) = (self.queue.engine, self.queue.index);
        let fanin = &engine.completions.cq(index).fanin;
        let _guard = complete::lock(engine, index).map_err(CreateError::from)?;
        let none = CreateError::NoMemory { bytes: Layout::SLOTS_AT };
        let old = ring(engine.completions, fanin.place()).ok_or(none)?;
        let new = ring(engine.completions, place).ok_or(none)?;
        let is_given_up = engine.completions.cq(index).mode.has(Trait::GivenUp);
        if is_given_up || old.control().state() != State::Running {
            return Err(ResizeError::Overrun);
        }
        let unpolled = fanin.unpolled(&self.consumer);
        if unpolled > asked.into() {
            let unpolled = unpolled.try_into().unwrap_or(u32::MAX);
            return Err(ResizeError::TooFew { unpolled, asked });
        }
        let channel = OnChannel::named(self.consumer.key());
        self.consumer = fanin.move_to((&mut self.consumer, &old), (place, new), channel);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
