//! Completion queues: the engine's ring in the device's memory, pushed to under a lock that no poller
//! takes. [`resize`] moves what waits in one to another ring.
//!
//! ```
//! use cq_core::transport::{Arm, ArmError, Notify, Poll};
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

mod resize;

use std::cell::Cell;
use std::sync::{Arc, Mutex};

use cq_core::ring::{Slot, Tail};
use cq_core::setup::InUse;
use cq_core::soft::{Consumer, Control, Overrun, Parts, Tag};
use cq_core::transport::{Arm, ArmError, Armed, CqKey, Notify, Poll, PollError, Signal};
use cq_core::wc::Wc;

use crate::arena::Extent;
use crate::bell::{self, Bell, Source};
use crate::channel::CompletionChannel;
use crate::completion;
use crate::device::MAX_CQE;
use crate::error::{CreateError, Limit};
use crate::fabric::Fabric;
use crate::layout::{CqSlot, Entry, MAX_CQ};
use crate::overrun;
use crate::sync;

/// Where a queue lies in the memory, and how large it is.
#[derive(Clone, Copy, Debug)]
struct Shape {
    offset: u32,
    log2: u32,
    promised: u32,
}

impl Shape {
    /// Memory for a queue that is to hold so many completions, new: its zeros are an empty queue.
    fn allocate(fabric: &'static Fabric, promised: u32) -> Result<(Self, Extent), CreateError> {
        let what = Limit::Cqe;
        if promised == 0 {
            return Err(CreateError::Zero(what));
        }
        if promised > MAX_CQE {
            return Err(CreateError::TooMany { what, asked: promised, max: MAX_CQE });
        }
        // A quarter more than was promised lets the consumer give slots back in larger steps.
        let storage = (promised + promised / 4).next_power_of_two();
        let bytes =
            size_of::<Control>() + storage as usize * (size_of::<Slot>() + size_of::<Tag>());
        let extent = Extent::allocate(fabric, bytes)?;
        let log2 = storage.trailing_zeros();
        Ok((Self { offset: extent.offset(), log2, promised }, extent))
    }

    /// What the table says. Under the queue's lock.
    #[inline]
    fn of(slot: &CqSlot) -> Self {
        Self {
            offset: sync::load_u32(&slot.offset),
            log2: sync::load_u32(&slot.log2),
            promised: sync::load_u32(&slot.promised),
        }
    }

    /// Says it in the table. Under the queue's lock.
    fn record(self, slot: &CqSlot, tail: Tail) {
        sync::store_u32(&slot.offset, self.offset);
        sync::store_u32(&slot.log2, self.log2);
        sync::store_u32(&slot.promised, self.promised);
        keep(slot, tail);
    }

    #[inline]
    fn control(self, fabric: &'static Fabric) -> Option<&'static Control> {
        fabric.in_arena(self.offset as usize, 1)?.first()
    }

    /// The queue; `None` if this can't be one.
    #[inline]
    fn parts(self, fabric: &'static Fabric) -> Option<Parts<'static>> {
        let storage = 1usize.checked_shl(self.log2)?;
        let slots = self.offset as usize + size_of::<Control>();
        let tags = slots.checked_add(storage.checked_mul(size_of::<Slot>())?)?;
        let memory = fabric.memory();
        let (slots, tags) = (memory.slice(slots, storage)?, memory.slice(tags, storage)?);
        Parts::new(self.control(fabric)?, slots, tags, self.promised).ok()
    }
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

    fn new(fabric: &'static Fabric, promised: u32) -> Result<(Self, CqKey), CreateError> {
        let (shape, extent) = Shape::allocate(fabric, promised)?;
        let full = CreateError::TableFull { what: Limit::CompletionQueues, max: MAX_CQ as u32 };
        let (index, generation) = fabric.tables().cqs.claim().ok_or(full)?;
        let slot = fabric.cq(index);
        let _guard = slot.lock.lock();
        sync::store_u32(&slot.generation, generation);
        shape.record(slot, Tail::default());
        let extent = Mutex::new(extent);
        Ok((Self { fabric, index, extent }, CqKey { index, generation }))
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.fabric.cq(self.index).life().end();
    }
}

fn keep(slot: &CqSlot, tail: Tail) {
    for (word, value) in slot.tail.iter().zip(tail.to_words()) {
        sync::store(word, value);
    }
}

/// Remembers that an event is to be raised, so that it is raised without the queue's lock.
struct Asked(Cell<bool>);

impl Signal for Asked {
    fn raise(&self, _: CqKey) {
        self.0.set(true);
    }
}

/// Adds a completion to the queue at `index`, and raises the event that it was armed for. A completion
/// that finds no room overruns the queue: the poller is told (O3), and its queue pairs fail (O4).
#[inline]
pub fn push(fabric: &'static Fabric, index: u32, wc: &Wc, tag: u32, solicited: bool) {
    let slot = fabric.cq(index);
    let asked = Asked(Cell::new(false));
    let pushed = {
        let _guard = slot.lock.lock();
        let Some(parts) = Shape::of(slot).parts(fabric) else { return };
        let tail = Tail::from_words(slot.tail.each_ref().map(sync::load));
        let has_channel = bell::is_attached(fabric, Source::Completion(index));
        let mut producer = parts.producer(tail, key(fabric, index), has_channel.then_some(&asked));
        let pushed = producer.push_with(wc, tag, solicited);
        keep(slot, producer.tail());
        pushed
    };
    if asked.0.get() {
        bell::raise(fabric, Source::Completion(index), || true);
    }
    if let Err(Overrun { dropped }) = pushed {
        overrun::spread(fabric, index, wc.qp_num(), dropped);
    }
}

/// What the queue at `index` is called in events, while it can't go.
pub fn key(fabric: &'static Fabric, index: u32) -> CqKey {
    CqKey { index, generation: sync::load_u32(&fabric.cq(index).generation) }
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

/// A completion queue. One thread polls it at a time; it may move to another.
///
/// # Overrun
/// A completion that finds the queue full is dropped, and the queue with it: what was stored is handed out,
/// then polling fails for ever and says how many were dropped (O3). The context gets CQ_ERR (O2), and the
/// queue's queue pairs go to ERR, each with QP_FATAL (O4).
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
    consumer: Consumer<'static>,
    // Before the queue: it leaves its channels before its place is another's.
    attachments: (Attachment, Option<Attachment>),
    queue: Arc<Queue>,
}

impl Cq {
    pub(crate) fn new(
        context: &Arc<Bell>,
        capacity: u32,
        channel: Option<&CompletionChannel>,
    ) -> Result<Self, CreateError> {
        let fabric = context.fabric();
        let (queue, key) = Queue::new(fabric, capacity)?;
        let parts = Shape::of(fabric.cq(queue.index))
            .parts(fabric)
            .ok_or(CreateError::NoMemory { bytes: size_of::<Control>() })?;
        let consumer = parts.consumer(0, key, channel.is_some());
        let completions = Source::Completion(queue.index);
        let attachments = (
            Attachment::new(context, Source::Overrun(queue.index)),
            channel.map(|channel| Attachment::new(channel.bell(), completions)),
        );
        Ok(Self { consumer, attachments, queue: Arc::new(queue) })
    }

    /// How many completions it holds: as many as were asked for (O1), when it was made or last resized.
    #[must_use]
    pub const fn capacity(&self) -> u32 {
        self.consumer.capacity()
    }

    /// Destroys it. Dropping does, too, once the last of its queue pairs is gone; its events end at once.
    ///
    /// # Errors
    /// A queue pair uses it; the handle comes back (EBUSY, Q11).
    #[expect(
        clippy::result_large_err,
        reason = "the handle comes back by value, once, when it can't go"
    )]
    pub fn destroy(self) -> Result<(), InUse<Self>> {
        let Self { consumer, attachments, queue } = self;
        match Arc::try_unwrap(queue) {
            Ok(queue) => {
                drop(attachments);
                drop(queue);
                Ok(())
            }
            Err(queue) => Err(InUse::new(
                Self { consumer, attachments, queue },
                "completion queue",
                "its queue pairs",
            )),
        }
    }

    pub(crate) const fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }
}

impl Poll for Cq {
    #[inline]
    fn poll(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
        let fabric = self.queue.fabric;
        self.consumer.poll_with(out, |wc, tag| completion::retire(fabric, wc.qp_num(), tag))
    }
}

impl Arm for Cq {
    fn arm(&mut self, on: Notify) -> Result<Armed, ArmError> {
        self.consumer.arm(on)
    }

    fn key(&self) -> CqKey {
        self.consumer.key()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{ARENA, SIZE};

    #[test]
    fn no_queue_leads_out_of_the_arena() {
        let fabric = Fabric::open().unwrap();
        let is_one = |offset: usize, log2| {
            Shape { offset: offset as u32, log2, promised: 8 }.parts(fabric).is_some()
        };
        assert!(is_one(ARENA, 4));
        for (offset, log2) in [(0, 4), (ARENA - 128, 4), (SIZE - 128, 4), (ARENA, 20), (ARENA, 99)]
        {
            assert!(!is_one(offset, log2));
        }
    }
}
