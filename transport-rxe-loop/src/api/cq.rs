//! Completion queues: the engine's ring in the device's memory, pushed to under a lock that no poller
//! takes. [`push`](mod@push) is the producers' side, [`resize`] moves what waits in one to another ring, and
//! [`moderation`] holds events back.
//!
//! ```
//! use cq_core::transport::{Arm, ArmError, Notify, PollCq};
//! use cq_core::wc::Wc;
//! use transport_rxe_loop::Context;
//!
//! let mut cq = Context::open("loop0")?.create_cq(16, None)?;
//! assert_eq!(cq.capacity(), 16);
//! assert_eq!(cq.poll(&mut [Wc::default(); 4]), Ok(0));
//! assert_eq!(cq.arm(Notify::Next), Err(ArmError::NoChannel)); // N11
//! cq.destroy()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod moderation;
pub mod resize;

use std::sync::{Arc, Mutex, PoisonError};

use cq_core::queue::raw::{Consumer, Layout};
use cq_core::queue::{OnChannel, State};
use cq_core::setup::InUse;
use cq_core::transport::{Arm, ArmError, Armed, CqKey, Notify, PollCq, PollError};
use cq_core::wc::Wc;
use rustix::io::Errno;

use super::channel::CompletionChannel;
use crate::completion::channel::{Attached, EventChannel, Source};
use crate::completion::moderation as held_back;
use crate::completion::queue::{self, MAX_CQE, ring};
use crate::engine::{Engine, complete};
use crate::error::{CreateError, Limit, Stuck};
use crate::lifecycle::{Device, deaths};
use crate::protocol::fanin::Place;
use crate::protocol::mode::{Mode, Trait};
use crate::shm::arena::Extent;
use crate::shm::table::Entry as _;
use crate::sync;

/// A queue's entry in the table and its memory; ends when its last user does.
#[derive(Debug)]
pub struct Queue {
    pub engine: &'static Engine,
    pub index: u32,
    /// Another one after resizing. Locked for that alone.
    extent: Mutex<Extent>,
}

impl Queue {
    /// Whether it lies in this fabric, and not in another one of this process.
    pub fn is_of(&self, engine: &'static Engine) -> bool {
        std::ptr::eq(self.engine, engine)
    }

    fn new(
        engine: &'static Engine,
        promised: u32,
        ignore_overrun: bool,
    ) -> Result<(Self, CqKey), CreateError> {
        let (place, extent) = allocate(engine, promised)?;
        let cqs = engine.completions.cqs();
        let full = CreateError::TableFull { what: Limit::CompletionQueues, max: cqs.len() };
        let (index, generation) = cqs.claim(engine.shm.place()).ok_or(full)?;
        let queue = Self { engine, index, extent: Mutex::new(extent) };
        let _guard = complete::lock(engine, index)?;
        let like_rxe = engine.policy.imitation.has_queues_like_rxe();
        queue::begin(engine.completions.cq(index), generation, place, ignore_overrun, like_rxe);
        Ok((queue, CqKey { index, generation }))
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        let slot = self.engine.completions.cq(self.index);
        held_back::forget(self.engine.completions, self.index);
        match complete::lock(self.engine, self.index) {
            Ok(_guard) => slot.fanin.end(),
            // Who is suspended over it will go on with its entry and its memory: they stay until this process
            // ends.
            Err(Stuck) => {
                let mine = self.extent.get_mut().unwrap_or_else(PoisonError::into_inner);
                return mine.leave();
            }
        }
        slot.life().end(self.engine.shm.place());
    }
}

/// Memory for a queue that is to hold so many completions, new.
fn allocate(engine: &'static Engine, promised: u32) -> Result<(Place, Extent), CreateError> {
    let rounded = engine.policy.imitation.capacity(promised, MAX_CQE);
    // What can't be is refused as it was asked for.
    let promised = if (1..=MAX_CQE).contains(&promised) { rounded } else { promised };
    queue::allocate(engine.completions, promised)
}

/// What a completion queue is to be: see [`Context::create_cq_with`](crate::Context::create_cq_with).
#[derive(Clone, Copy, Debug)]
pub struct CqInit<'a> {
    /// How many completions it holds (O1).
    pub capacity: u32,
    /// Where its events come; without one it can't be armed (N11).
    pub channel: Option<&'a CompletionChannel>,
    /// Whether completions that find no room are [dropped](Cq#ignoring-overruns), instead of failing the queue.
    pub ignore_overrun: bool,
}

impl CqInit<'_> {
    /// A queue without a channel, which can overrun.
    #[must_use]
    pub const fn new(capacity: u32) -> Self {
        Self { capacity, channel: None, ignore_overrun: false }
    }
}

/// A completion queue. One thread polls it at a time; it may move to another.
///
/// # Overrun
/// A completion that finds the queue full is dropped, and the queue with it: what was stored is handed out,
/// then polling fails for ever and says how many were dropped (O3). The context gets CQ_ERR (O2), and the
/// queue's queue pairs go to ERR, each with QP_FATAL (O4).
///
/// # Ignoring overruns
/// A queue [made so](CqInit::ignore_overrun) (`IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN`) drops and
/// [counts](Self::dropped) a completion that finds no room, and nothing else happens: nobody fails, nothing is
/// reported, polling goes on, and what comes later is stored once there is room. So between two completions that
/// follow each other others may be missing. Whoever sleeps on it is woken for a dropped completion as for a
/// failure. One of a send gives back its slot, and all before it, at once (Q5): it will not be polled, and nothing
/// else need come that would.
///
/// ```
/// use cq_core::transport::{PollCq, Post};
/// use cq_core::wc::Wc;
/// use cq_core::wr::RecvWr;
/// use transport_rxe_loop::{Context, CqInit, QpAttr, QpInit, QpState};
///
/// let context = Context::open("loop0")?;
/// let mut cq = context.create_cq_with(&CqInit { ignore_overrun: true, ..CqInit::new(2) })?;
/// let mut qp = context.alloc_pd().create_qp(&QpInit::new(&cq))?;
/// qp.connect(qp.number())?;
/// qp.modify(&QpAttr::to(QpState::Err))?;
/// for wr_id in 0..10 {
///     qp.post_recv(&[RecvWr::new(wr_id, &[])])?; // flushed at once
/// }
/// let polled = cq.poll(&mut [Wc::default(); 10])?;
/// assert!(polled >= 2);
/// assert_eq!(polled as u32 + cq.dropped(), 10);
/// assert_eq!(cq.poll(&mut [Wc::default(); 10]), Ok(0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Destroying it twice does not compile:
/// ```compile_fail
/// # fn twice(cq: transport_rxe_loop::Cq) {
/// cq.destroy();
/// cq.destroy();
/// # }
/// ```
#[derive(Debug)]
pub struct Cq {
    consumer: Consumer<'static, OnChannel>,
    // Before the queue: it leaves its channels before its place is another's.
    attachments: (Attached, Option<Attached>),
    queue: Arc<Queue>,
    device: &'static Device,
    /// That of its place in the table.
    mode: &'static Mode,
}

impl Cq {
    pub(super) fn new(
        device: &'static Device,
        context: &Arc<EventChannel>,
        &CqInit { capacity, channel, ignore_overrun }: &CqInit<'_>,
    ) -> Result<Self, CreateError> {
        let completions = device.completions;
        let is_near =
            |channel: &CompletionChannel| std::ptr::eq(channel.events().completions(), completions);
        if !channel.is_none_or(is_near) {
            return Err(CreateError::OtherFabric);
        }
        let (queue, key) =
            deaths::take(device, || Queue::new(device.engine, capacity, ignore_overrun))?;
        let none = CreateError::NoMemory { bytes: Layout::SLOTS_AT };
        let slot = completions.cq(queue.index);
        let ring = ring(completions, slot.fanin.place()).ok_or(none)?;
        let consumer = ring.into_consumer(0, OnChannel::named(key));
        let attachments = (
            Attached::new(context, Source::Overrun(queue.index)),
            channel.map(|channel| Attached::new(channel.events(), Source::Completion(queue.index))),
        );
        Ok(Self { consumer, attachments, queue: Arc::new(queue), device, mode: &slot.mode })
    }

    /// How many completions it holds: as many as were asked for (O1), when it was made or last resized.
    #[must_use]
    pub const fn capacity(&self) -> u32 {
        self.consumer.capacity()
    }

    /// How many completions it had no room for: since it overran, or since it was made, if it ignores that.
    #[must_use]
    pub fn dropped(&self) -> u32 {
        match self.consumer.state() {
            State::Overrun { dropped } => dropped,
            _ => sync::load(&self.queue.engine.completions.cq(self.queue.index).dropped),
        }
    }

    /// A poll that found nothing, where there is more to know.
    #[cold]
    fn poll_again(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
        let engine = self.queue.engine;
        // In a forked child nothing ever comes.
        if !engine.shm.is_ours() {
            return Err(PollError::Device(Errno::NODEV.raw_os_error()));
        }
        // Its producers can't tell the ring.
        if self.mode.has(Trait::GivenUp) {
            self.consumer.fail();
        }
        // Written out once more, so that the code of the usual poll stays where it is called.
        self.consumer.poll_for(out, complete::retires, |wc, tag| {
            complete::retire(engine, wc, tag);
        })
    }

    /// Destroys it. Dropping does, too, once the last of its queue pairs is gone; its events end at once.
    ///
    /// # Errors
    /// A queue pair uses it; the handle comes back (EBUSY, Q11).
    #[expect(
        clippy::result_large_err,
        reason = "the handle comes back by value, once, when it can't go"
    )]
    pub fn destroy(mut self) -> Result<(), InUse<Self>> {
        if Arc::get_mut(&mut self.queue).is_none() {
            return Err(InUse::new(self, "completion queue", "its queue pairs"));
        }
        Ok(())
    }

    pub(crate) const fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }
}

impl PollCq for Cq {
    #[inline]
    fn poll(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
        let engine = self.queue.engine;
        let polled = self
            .consumer
            .poll_for(out, complete::retires, |wc, tag| complete::retire(engine, wc, tag));
        if polled == Ok(0) && !self.mode.is_all_in_ring() {
            return self.poll_again(out);
        }
        polled
    }
}

impl Arm for Cq {
    fn arm(&mut self, on: Notify) -> Result<Armed, ArmError> {
        if self.attachments.1.is_none() {
            return Err(ArmError::NoChannel);
        }
        self.consumer.arm(on)
    }

    fn key(&self) -> CqKey {
        self.consumer.key()
    }
}

#[cfg(test)]
mod tests;
