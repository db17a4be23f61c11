//! Resizing: what waits in a queue moves to a new ring, under the producers' lock, so that neither side is
//! at work. With it go the tags, by which send slots come back (Q5), and the arm. Events that nobody has
//! read stay where they are, at the channel.

use std::mem;
use std::sync::PoisonError;

use cq_core::health::State;
use cq_core::ring::Tail;
use cq_core::soft::{Consumer, Control, Parts};
use cq_core::transport::{Arm, NoSignal};
use cq_core::wc::Wc;

use super::{Cq, Shape};
use crate::error::{CreateError, ResizeError};
use crate::sync;

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
        let (shape, extent) = Shape::allocate(self.queue.fabric, capacity)?;
        self.move_to(shape)?;
        // No producer knows the old memory any more: they look it up under the lock.
        let mut mine = self.queue.extent.lock().unwrap_or_else(PoisonError::into_inner);
        drop(mem::replace(&mut *mine, extent));
        Ok(self.capacity())
    }

    fn move_to(&mut self, shape: Shape) -> Result<(), ResizeError> {
        let fabric = self.queue.fabric;
        let slot = fabric.cq(self.queue.index);
        let _guard = slot.lock.lock();
        let none = CreateError::NoMemory { bytes: size_of::<Control>() };
        let old = Shape::of(slot).control(fabric).ok_or(none)?;
        let (new, control) = shape.parts(fabric).zip(shape.control(fabric)).ok_or(none)?;
        if old.state() != State::Running {
            return Err(ResizeError::Overrun);
        }
        let stored = Tail::from_words(slot.tail.each_ref().map(sync::load)).position();
        let unpolled = stored.wrapping_sub(self.consumer.position());
        let asked = shape.promised;
        if unpolled > asked.into() {
            let unpolled = unpolled.try_into().unwrap_or(u32::MAX);
            return Err(ResizeError::TooFew { unpolled, asked });
        }
        let key = self.key();
        let tail = carry_over(&mut self.consumer, unpolled as usize, &new);
        control.adopt(old);
        shape.record(slot, tail);
        self.consumer = new.consumer(0, key, self.attachments.1.is_some());
        Ok(())
    }
}

/// Moves so many completions, with their tags; says where the producers go on.
fn carry_over(from: &mut Consumer<'_>, count: usize, to: &Parts<'_>) -> Tail {
    let mut producer = to.producer(Tail::default(), from.key(), None::<NoSignal>);
    let mut room = [Wc::default(); 32];
    let mut left = count;
    while left > 0 {
        let most = left.min(room.len());
        let moved = from.poll_with(&mut room[..most], |wc, tag| {
            // There is room, as the queue holds at least so many.
            let _ = producer.push_with(wc, tag, false);
        });
        match moved {
            Ok(moved) if moved > 0 => left -= moved,
            // A stranger wrote there, so that less can be read than was stored.
            _ => break,
        }
    }
    producer.tail()
}
