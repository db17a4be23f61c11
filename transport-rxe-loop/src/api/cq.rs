//! Completion queues, from the consumer's side: polling, [arming], [resizing](resize), [moderation], and what their users
//! can have [outstanding](demand). Producers push to the same ring, in the fabric's memory; where they take turns,
//! under a lock that polling does not take: [`crate::completion::push`].

mod arming;
mod counting;
pub mod demand;
pub mod moderation;
pub mod resize;

use std::sync::{Arc, Mutex, PoisonError};

use cq_core::queue::raw::{Layout, RawConsumer};
use cq_core::queue::{End, OnChannel};
use cq_core::transport::{CqKey, PollCq, PollError};
use cq_core::wc::Wc;
use cq_verbs::device::CqBuilder;
use cq_verbs::setup::InUseError;
use rustix::io::Errno;

use self::counting::Counted;
use self::demand::Users;
use super::channel::CompletionChannel;
use crate::api::device::Context;
use crate::completion::channel::{Attached, EventChannel, Source};
use crate::completion::moderation as held_back;
use crate::completion::queue::{self, MAX_CQE, ring};
use crate::conditions::no_memory;
use crate::engine::{Engine, complete};
use crate::error::{CreateError, LimitKind, Stuck};
use crate::lifecycle::{Device, deaths};
use crate::protocol::fanin::Location;
use crate::protocol::mode::{CqFlag, Mode};
use crate::protocol::number::CqIndex;
use crate::protocol::send_slots::Polled;
use crate::shm::arena::Extent;
use crate::shm::table::Entry as _;
use crate::{sync, trace};

/// A completion queue's table entry and its memory. It is freed with its last user.
#[derive(Debug)]
pub struct Queue {
    pub engine: &'static Engine,
    pub index: CqIndex,
    /// Replaced by resizing, which alone locks it.
    extent: Mutex<Extent>,
    /// By which slots of send queues are freed.
    pub polled: Polled,
    /// The queues that complete here.
    pub users: Users,
}

impl Queue {
    /// Whether it belongs to this fabric. A process can have several.
    pub fn is_of(&self, engine: &'static Engine) -> bool {
        std::ptr::eq(self.engine, engine)
    }

    /// Calls `each` with every completion that was not polled, and its tag, oldest first.
    ///
    /// # Errors
    /// A process that pushes is suspended.
    pub fn look_through(&self, each: impl FnMut(&Wc, u32)) -> Result<(), Stuck> {
        let completions = self.engine.completions;
        let _no_producer = complete::lock(self.engine, self.index)?;
        if let Some(ring) = ring(completions, completions.cq(self.index).fanin.location()) {
            ring.look_through(self.polled.seen(), each);
        }
        Ok(())
    }

    fn new(
        engine: &'static Engine,
        promised: u32,
        ignore_overrun: bool,
    ) -> Result<(Self, CqKey), CreateError> {
        let (location, extent, is_like_rxe) = allocate(engine, promised)?;
        let cqs = &engine.completions.cqs;
        let full = CreateError::TableFull { what: LimitKind::CompletionQueues, max: cqs.len() };
        let (index, generation) = cqs.claim(engine.shm.attachment()).ok_or(full)?;
        let (polled, users) = (Polled::default(), Users::default());
        let queue = Self { engine, index, extent: Mutex::new(extent), polled, users };
        let guard = complete::lock(engine, index)?;
        queue::begin(
            engine.completions.cq(index),
            generation,
            location,
            ignore_overrun,
            is_like_rxe,
        );
        let key = CqKey { index: index.get(), generation };
        drop(guard);
        trace::event!(DEBUG, cq = %key, capacity = promised, "completion queue created");
        Ok((queue, key))
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        let slot = self.engine.completions.cq(self.index);
        if self.engine.shm.is_ours() {
            let key = queue::key(self.engine.completions, self.index);
            trace::event!(DEBUG, cq = %key, "completion queue destroyed");
        }
        held_back::forget(self.engine.completions, self.index);
        match complete::lock(self.engine, self.index) {
            Ok(_guard) => slot.fanin.end(),
            // A suspended producer holds the lock and may still use the entry and the memory: both are kept until this
            // process ends.
            Err(Stuck) => {
                let mine = self.extent.get_mut().unwrap_or_else(PoisonError::into_inner);
                return mine.leave();
            }
        }
        slot.life().end(self.engine.shm.attachment());
    }
}

/// Allocates memory for a queue that holds `promised` completions; whether it is to be like Soft-RoCE's.
fn allocate(
    engine: &'static Engine,
    promised: u32,
) -> Result<(Location, Extent, bool), CreateError> {
    let behavior = engine.policy.imitation.completion_queue(promised, MAX_CQE);
    let is_exact = engine.policy.strict.queues_are_exact();
    let (location, extent) = queue::allocate(engine.completions, behavior.capacity, is_exact)?;
    Ok((location, extent, behavior.is_like_rxe))
}

/// A completion queue. One thread polls it at a time; it can be moved to another thread. Fields that a failure
/// leaves undefined hold a [pattern](Wc::poisoned), so that tests find a program that reads them.
///
/// ```
/// use cq_core::transport::{Arm, ArmError, Notify, PollCq};
/// use transport_rxe_loop::{Context, Wc};
///
/// let mut cq = Context::open("loop0")?.cq(16).create()?;
/// assert_eq!(cq.capacity(), 16);
/// assert_eq!(cq.pop()?, None);
/// assert_eq!(cq.arm(Notify::Next), Err(ArmError::NoChannel)); // N11
/// cq.destroy()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Overrun
/// A completion that finds the queue full is dropped, and the queue fails: polling returns what was stored, then fails
/// permanently with the number of dropped completions ([O3](cq_core::contract#o3)). CQ_ERR is reported to the context
/// ([O2](cq_core::contract#o2)), and the queue's queue pairs go to ERR, each with QP_FATAL
/// ([O4](cq_core::contract#o4)).
///
/// # Ignoring overruns
/// With [`ignore_overrun`](CqBuilder::ignore_overrun) (`IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN`), a completion that finds the
/// queue full is dropped and [counted](Self::dropped). Nothing fails and nothing is reported; later completions are
/// stored once there are free slots, so completions may be missing between any two that are polled. A dropped
/// completion raises the event of an armed queue as a failure does. A dropped completion of a send frees its send queue
/// slot, and all before it, at once ([Q5](cq_core::contract#q5)): no later completion need come that would.
///
/// ```
/// use transport_rxe_loop::{Context, QpAttr, QpState, RecvWr, Wc};
///
/// let context = Context::open("loop0")?;
/// let port = context.port(1)?;
/// let mut cq = context.cq(2).ignore_overrun().create()?;
/// let mut qp = context.alloc_pd()?.qp(&cq).create()?;
/// qp.connect(&port, &qp.endpoint(&port))?;
/// qp.modify(&QpAttr::new().state(QpState::ERR))?;
/// for wr_id in 0..10 {
///     qp.post_recv(&[RecvWr::new(wr_id, &[])])?; // flushed at once
/// }
/// let polled = cq.drain().count();
/// assert!(polled >= 2);
/// assert_eq!(polled as u32 + cq.dropped(), 10);
/// assert_eq!(cq.pop()?, None);
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
#[doc(alias("ibv_cq", "ibv_poll_cq", "ibv_req_notify_cq", "ibv_destroy_cq"))]
#[derive(Debug)]
pub struct Cq {
    /// Of its ring; if its polls are counted, of one that stays empty.
    consumer: RawConsumer<'static, OnChannel>,
    counted: Option<Box<Counted>>,
    /// Where its next completion was when the program last took an event of it.
    event_at: Option<u64>,
    // Declared before `handle`: dropped, and so detached from the channels, before the table entry is freed.
    attachments: (Attached, Option<Attached>),
    pub(crate) handle: CqHandle,
    device: &'static Device,
    /// The mode word of its table entry.
    mode: &'static Mode,
}

impl Cq {
    pub(super) fn new(
        device: &'static Device,
        context: &Arc<EventChannel>,
        init: &CqBuilder<'_, Context>,
    ) -> Result<Self, CreateError> {
        let CqBuilder { capacity, channel, comp_vector, ignore_overrun, .. } = *init;
        if comp_vector > 0 {
            let (what, asked) = (LimitKind::CompletionVectors, comp_vector.saturating_add(1));
            return Err(CreateError::TooMany { what, asked, max: 1 });
        }
        let completions = device.completions;
        let is_near =
            |channel: &CompletionChannel| std::ptr::eq(channel.events.completions, completions);
        if !channel.is_none_or(is_near) {
            return Err(CreateError::OtherContext);
        }
        let (queue, key) = deaths::retry_after_recovery(device, || {
            Queue::new(device.engine, capacity, ignore_overrun)
        })?;
        let none = no_memory(Layout::SLOTS_AT);
        let slot = completions.cq(queue.index);
        let ring = ring(completions, slot.fanin.location()).ok_or(none)?;
        let mut consumer = ring.into_consumer(0, OnChannel::named(key));
        let mut counted = None;
        if completions.counts_polls {
            let (front, behind) = Counted::begin(consumer, &queue, key)?;
            (consumer, counted) = (front, Some(behind));
        }
        let attachments = (
            Attached::new(context, Source::Overrun(queue.index)),
            channel.map(|channel| Attached::new(&channel.events, Source::Completion(queue.index))),
        );
        let handle = CqHandle { queue: Arc::new(queue) };
        let event_at = None;
        Ok(Self { consumer, counted, event_at, attachments, handle, device, mode: &slot.mode })
    }

    /// The number of completions that it holds: as many as were requested when it was made or last resized
    /// ([O1](cq_core::contract#o1)).
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.consumer().capacity()
    }

    /// The consumer of its ring.
    const fn consumer(&self) -> &RawConsumer<'static, OnChannel> {
        match &self.counted {
            Some(counted) => &counted.consumer,
            None => &self.consumer,
        }
    }

    const fn consumer_mut(&mut self) -> &mut RawConsumer<'static, OnChannel> {
        match &mut self.counted {
            Some(counted) => &mut counted.consumer,
            None => &mut self.consumer,
        }
    }

    /// The number of dropped completions: since it overran, or since it was made if it ignores overruns.
    #[must_use]
    pub fn dropped(&self) -> u32 {
        match self.consumer().end() {
            Some(End::Overrun { dropped }) => dropped,
            _ => sync::load(
                &self.handle.queue.engine.completions.cq(self.handle.queue.index).dropped,
            ),
        }
    }

    /// Polls again after a poll that found nothing: the ring alone does not tell the queue's state, or its polls are
    /// counted.
    #[cold]
    fn poll_again(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
        let engine = self.handle.queue.engine;
        // A forked child gets no completions.
        if !engine.shm.is_ours() {
            return Err(PollError::Device(Errno::NODEV.raw_os_error()));
        }
        self.fail_if_given_up();
        match &mut self.counted {
            Some(counted) => counted.poll(&self.handle.queue, out),
            None => self.poll_ring(out),
        }
    }

    /// Producers that gave the queue up could not write that to the ring. They have raised its event.
    fn fail_if_given_up(&mut self) {
        if self.mode.has(CqFlag::GivenUp) {
            self.consumer_mut().fail();
        }
    }

    #[inline(always)]
    fn poll_ring(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
        let polled = self.consumer.poll_into(out);
        if polled.is_ok_and(|count| count > 0) {
            self.handle.queue.polled.count(self.consumer.position());
        }
        polled
    }

    /// Completions that fail from now on, from every producer, hold an [opcode](cq_core::wc::WcOpcode) that the header
    /// knows in place of the pattern, as Soft-RoCE does: SEND, whatever failed. For a caller that converts the opcode to an
    /// enumeration before it looks at the status ([C4](cq_core::contract#c4)).
    pub fn store_known_opcodes(&mut self) {
        self.mode.set(CqFlag::KnownOpcodes, true);
    }

    /// A handle of the queue, to create queue pairs for it while another thread polls it.
    #[must_use]
    pub fn handle(&self) -> CqHandle {
        self.handle.clone()
    }

    /// Destroys the queue. Dropping ends its events at once, and destroys it once its last queue pair is destroyed and its
    /// last [handle](CqHandle) dropped.
    ///
    /// # Errors
    /// A queue pair uses it, or there is a handle of it; the queue is returned (EBUSY, [Q11](cq_core::contract#q11)).
    #[expect(
        clippy::result_large_err,
        reason = "the handle comes back by value, once, when it can't go"
    )]
    pub fn destroy(mut self) -> Result<(), InUseError<Self>> {
        if Arc::get_mut(&mut self.handle.queue).is_none() {
            return Err(InUseError::new(self, "completion queue", "its queue pairs and handles"));
        }
        Ok(())
    }
}

impl AsRef<CqHandle> for Cq {
    fn as_ref(&self) -> &CqHandle {
        &self.handle
    }
}

/// A handle of a completion queue, to create queue pairs for it while another thread polls it.
///
/// ```
/// use transport_rxe_loop::{Context, CqHandle, RemoteAddr, SendWr, Wc};
///
/// let context = Context::open("loop0")?;
/// let (port, pd) = (context.port(1)?, context.alloc_pd()?);
/// let mut cq = context.cq(16).create()?;
/// let handle: CqHandle = cq.handle();
/// let poller = std::thread::spawn(move || {
///     let mut wcs = [Wc::default()];
///     while cq.poll(&mut wcs)?.is_empty() {}
///     Ok::<_, cq_core::transport::PollError>(wcs[0].wr_id())
/// });
/// let mut qp = pd.qp(&handle).create()?;
/// qp.connect(&port, &qp.endpoint(&port))?;
/// qp.post_send(&[SendWr::write_inline(7, &[], RemoteAddr { addr: 0, rkey: 0 })])?;
/// assert_eq!(poller.join().unwrap()?, 7);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct CqHandle {
    pub(crate) queue: Arc<Queue>,
}

impl PollCq for Cq {
    type Entry = Wc;

    #[inline]
    fn poll_into(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
        let polled = self.poll_ring(out);
        if polled == Ok(0) && !self.mode.is_all_in_ring() {
            return self.poll_again(out);
        }
        polled
    }

    #[inline]
    fn holds_more_than(&self, count: usize) -> bool {
        self.consumer.holds_more_than(count)
    }
}

#[cfg(test)]
mod tests;
