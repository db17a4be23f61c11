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
mod push;
mod resize;

#[cfg(test)]
pub use self::push::die_pushing;
pub use self::push::{
    expect_push, give_up, landing, lock, outwait_push, outwait_push_or_give_up, overrun, push,
    settle_all, tell,
};

use std::sync::{Arc, Mutex, PoisonError};

use cq_core::queue::raw::{Consumer, Layout, RawQueue};
use cq_core::queue::{OnChannel, State};
use cq_core::setup::InUse;
use cq_core::transport::{Arm, ArmError, Armed, CqKey, Notify, PollCq, PollError};
use cq_core::wc::Wc;

use rustix::io::Errno;

use crate::arena::Extent;
use crate::bell::{Bell, Source};
use crate::channel::CompletionChannel;
use crate::completion;
use crate::device::MAX_CQE;
use crate::error::{CreateError, Limit};
use crate::fabric::Fabric;
use crate::imitate;
use crate::layout::Entry as _;
use crate::lock::Stuck;
use crate::overrun;
use crate::protocol::fanin::Place;
use crate::protocol::mode::{Mode, Trait};
use crate::sweep;
use crate::sync;

/// The slots of a queue that is to hold so many completions: a quarter more lets the consumer give them back in
/// larger steps.
const fn slots(promised: u32) -> u32 {
    (promised + promised / 4).next_power_of_two()
}

// The largest queue wastes none.
const _: () = assert!(slots(MAX_CQE) < slots(MAX_CQE + 1));

/// Memory for a queue that is to hold so many completions, new: its zeros are an empty queue.
fn allocate(fabric: &'static Fabric, promised: u32) -> Result<(Place, Extent), CreateError> {
    let what = Limit::Cqe;
    if promised == 0 {
        return Err(CreateError::Zero(what));
    }
    if promised > MAX_CQE {
        return Err(CreateError::TooMany { what, asked: promised, max: MAX_CQE });
    }
    let promised = imitate::capacity(fabric, promised, MAX_CQE);
    let slots = slots(promised);
    let place = Place { offset: 0, log2: slots.trailing_zeros(), promised };
    let none = CreateError::TooMany { what, asked: promised, max: MAX_CQE };
    let bytes = layout(place).and_then(|layout| layout.bytes().ok()).ok_or(none)?;
    let extent = Extent::allocate(fabric, bytes)?;
    Ok((Place { offset: extent.offset(), ..place }, extent))
}

/// What lies at a place.
#[inline]
fn layout(place: Place) -> Option<Layout> {
    let slots = 1usize.checked_shl(place.log2)?;
    Some(Layout { slots, tags: true, promised: place.promised })
}

/// The ring that lies at a place; `None` if none can. For who holds the queue's lock, and pushes; or its owner, who polls.
#[inline]
pub fn ring(fabric: &'static Fabric, place: Place) -> Option<RawQueue<'static>> {
    fabric.queue_in_arena(place.offset as usize, layout(place)?)
}

/// A queue's place in the table and its memory; ends when its last user does.
#[derive(Debug)]
pub struct Queue {
    fabric: &'static Fabric,
    index: u32,
    /// Another one after resizing. Locked for that alone.
    extent: Mutex<Extent>,
}

impl Queue {
    /// Its place in the table.
    pub const fn index(&self) -> u32 {
        self.index
    }

    /// Whether it lies in this fabric, and not in another one of this process.
    pub fn is_of(&self, fabric: &'static Fabric) -> bool {
        std::ptr::eq(self.fabric, fabric)
    }

    fn new(
        fabric: &'static Fabric,
        promised: u32,
        ignore_overrun: bool,
    ) -> Result<(Self, CqKey), CreateError> {
        let (place, extent) = allocate(fabric, promised)?;
        let cqs = &fabric.tables().cqs;
        let full = CreateError::TableFull { what: Limit::CompletionQueues, max: cqs.len() };
        let (index, generation) = sweep::take(fabric, || cqs.claim(fabric.place())).ok_or(full)?;
        let queue = Self { fabric, index, extent: Mutex::new(extent) };
        let slot = fabric.cq(index);
        let _guard = lock(fabric, index).map_err(|_| CreateError::Stuck)?;
        sync::store(&slot.dropped, 0);
        slot.mode.begin(ignore_overrun);
        slot.mode.set(Trait::LikeRxe, fabric.imitates_rxe() && !ignore_overrun);
        sync::store(&slot.reported, overrun::unreported(generation));
        // Last: who finds this generation finds nothing of the queue before any more.
        sync::release(&slot.generation, generation);
        slot.moderation.begin();
        slot.fanin.begin(place);
        Ok((queue, CqKey { index, generation }))
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        let slot = self.fabric.cq(self.index);
        moderation::forget(self.fabric, self.index);
        match lock(self.fabric, self.index) {
            Ok(_guard) => slot.fanin.end(),
            // Who is suspended over it will go on with its entry and its memory: they stay until this process
            // ends.
            Err(Stuck) => {
                let mine = self.extent.get_mut().unwrap_or_else(PoisonError::into_inner);
                return mine.leave();
            }
        }
        slot.life().end(self.fabric.place());
    }
}

/// What the queue at `index` is called in events, while it can't go.
pub fn key(fabric: &'static Fabric, index: u32) -> CqKey {
    CqKey { index, generation: sync::load(&fabric.cq(index).generation) }
}

/// That events of a queue come to a channel.
#[derive(Debug)]
struct Attachment {
    bell: Arc<Bell>,
    source: Source,
}

impl Attachment {
    fn new(bell: &Arc<Bell>, source: Source) -> Self {
        bell.attach(source);
        Self { bell: Arc::clone(bell), source }
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        self.bell.detach(self.source);
    }
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
    attachments: (Attachment, Option<Attachment>),
    queue: Arc<Queue>,
    /// That of its place in the table.
    mode: &'static Mode,
}

impl Cq {
    pub(crate) fn new(
        context: &Arc<Bell>,
        &CqInit { capacity, channel, ignore_overrun }: &CqInit<'_>,
    ) -> Result<Self, CreateError> {
        let fabric = context.fabric();
        if channel.is_some_and(|channel| !std::ptr::eq(channel.bell().fabric(), fabric)) {
            return Err(CreateError::OtherFabric);
        }
        let (queue, key) = Queue::new(fabric, capacity, ignore_overrun)?;
        let none = CreateError::NoMemory { bytes: Layout::SLOTS_AT };
        let place = fabric.cq(queue.index).fanin.place();
        let consumer = ring(fabric, place).ok_or(none)?.into_consumer(0, OnChannel::named(key));
        let completions = Source::Completion(queue.index);
        let attachments = (
            Attachment::new(context, Source::Overrun(queue.index)),
            channel.map(|channel| Attachment::new(channel.bell(), completions)),
        );
        let mode = &fabric.cq(queue.index).mode;
        Ok(Self { consumer, attachments, queue: Arc::new(queue), mode })
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
            _ => sync::load(&self.queue.fabric.cq(self.queue.index).dropped),
        }
    }

    /// A poll that found nothing, where there is more to know.
    #[cold]
    fn poll_again(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
        let fabric = self.queue.fabric;
        // In a forked child nothing ever comes.
        if !fabric.is_ours() {
            return Err(PollError::Device(Errno::NODEV.raw_os_error()));
        }
        // Its producers can't tell the ring.
        if self.mode.has(Trait::GivenUp) {
            self.consumer.fail();
        }
        // Written out once more, so that the code of the usual poll stays where it is called.
        self.consumer.poll_for(out, completion::retires, |wc, tag| {
            completion::retire(fabric, wc, tag);
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
        let fabric = self.queue.fabric;
        let polled = self
            .consumer
            .poll_for(out, completion::retires, |wc, tag| completion::retire(fabric, wc, tag));
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
