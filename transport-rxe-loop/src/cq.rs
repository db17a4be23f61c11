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
use std::sync::{Arc, Mutex, PoisonError};

use cq_core::health::State;
use cq_core::ring::Slot;
use cq_core::setup::InUse;
use cq_core::soft::{Consumer, Control, Entry, Overrun, Parts, Tag};
use cq_core::transport::{Arm, ArmError, Armed, CqKey, Notify, Poll, PollError, Signal};
use cq_core::wc::Wc;

use rustix::io::Errno;

use crate::arena::Extent;
use crate::bell::{self, Bell, Source};
use crate::channel::CompletionChannel;
use crate::completion;
use crate::device::MAX_CQE;
use crate::error::{CreateError, Limit};
use crate::fabric::Fabric;
use crate::layout::Entry as _;
use crate::lock::{Guard, Stuck};
use crate::overrun;
use crate::protocol::fanin::Place;
use crate::region;
use crate::sweep;
use crate::sync;

/// Memory for a queue that is to hold so many completions, new: its zeros are an empty queue.
fn allocate(fabric: &'static Fabric, promised: u32) -> Result<(Place, Extent), CreateError> {
    let what = Limit::Cqe;
    if promised == 0 {
        return Err(CreateError::Zero(what));
    }
    if promised > MAX_CQE {
        return Err(CreateError::TooMany { what, asked: promised, max: MAX_CQE });
    }
    // A quarter more than was promised lets the consumer give slots back in larger steps.
    let storage = (promised + promised / 4).next_power_of_two();
    let bytes = size_of::<Control>() + storage as usize * (size_of::<Slot>() + size_of::<Tag>());
    let extent = Extent::allocate(fabric, bytes)?;
    let log2 = storage.trailing_zeros();
    Ok((Place { offset: extent.offset(), log2, promised }, extent))
}

/// The queue that lies at a place; `None` if none can.
#[inline]
fn parts(fabric: &'static Fabric, place: Place) -> Option<Parts<'static>> {
    let storage = 1usize.checked_shl(place.log2)?;
    let slots = place.offset as usize + size_of::<Control>();
    let tags = slots.checked_add(storage.checked_mul(size_of::<Slot>())?)?;
    let memory = fabric.memory();
    let (slots, tags) = (memory.slice(slots, storage)?, memory.slice(tags, storage)?);
    let control = fabric.in_arena(place.offset as usize, 1)?.first()?;
    Parts::new(control, slots, tags, place.promised).ok()
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

    fn new(fabric: &'static Fabric, promised: u32) -> Result<(Self, CqKey), CreateError> {
        let (place, extent) = allocate(fabric, promised)?;
        let cqs = &fabric.tables().cqs;
        let full = CreateError::TableFull { what: Limit::CompletionQueues, max: cqs.len() };
        let (index, generation) = sweep::take(fabric, || cqs.claim(fabric.place())).ok_or(full)?;
        let queue = Self { fabric, index, extent: Mutex::new(extent) };
        let slot = fabric.cq(index);
        let _guard = lock(fabric, index).map_err(|_| CreateError::Stuck)?;
        sync::store_u32(&slot.generation, generation);
        sync::store_u32(&slot.reported, 0);
        sync::store_u32(&slot.given_up, 0);
        slot.fanin.begin(place);
        Ok((queue, CqKey { index, generation }))
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        let slot = self.fabric.cq(self.index);
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

/// Remembers that an event is to be raised, so that it is raised without the queue's lock.
struct Asked(Cell<bool>);

impl Signal for Asked {
    fn raise(&self, _: CqKey) {
        self.0.set(true);
    }
}

/// Takes the lock of the queue at `index`. From a producer that died it is inherited: what that one had
/// published counts, and everybody whom it concerns is told.
#[inline]
fn lock(fabric: &'static Fabric, index: u32) -> Result<Guard<'static>, Stuck> {
    let fanin = &fabric.cq(index).fanin;
    fabric.lock(&fanin.lock, || {
        if let Some(parts) = parts(fabric, fanin.place()) {
            let _ = fanin.repair(parts, |wc, tag| completion::settle(fabric, wc.qp_num(), tag));
            tell(fabric, index);
        }
    })
}

/// Tells everybody whom the queue at `index` may concern that something may have come, or that it has
/// overrun: a producer that died may not have got to that. Who finds nothing sleeps again (N5).
#[cold]
pub fn tell(fabric: &'static Fabric, index: u32) {
    bell::raise(fabric, Source::Completion(index), || true);
    let queue = parts(fabric, fabric.cq(index).fanin.place());
    if queue.is_some_and(|queue| queue.control().state() != State::Running) {
        overrun::spread_again(fabric, index);
    }
}

/// Adds completions to the queue at `index`, settles what their tags cover, and raises the event that the
/// queue was armed for. One that finds no room overruns the queue: the poller is told (O3), and its queue
/// pairs fail (O4).
#[inline]
pub fn push(fabric: &'static Fabric, index: u32, entries: &[Entry]) {
    let Some(last) = entries.last() else { return };
    let slot = fabric.cq(index);
    if sync::load_u32(&slot.given_up) != 0 {
        // Who waited once need not wait again.
        return give_up(fabric, index, entries);
    }
    let fanin = &slot.fanin;
    let settle = |wc: &Wc, tag| completion::settle(fabric, wc.qp_num(), tag);
    let asked = Asked(Cell::new(false));
    let pushed = {
        let Ok(_guard) = lock(fabric, index) else { return give_up(fabric, index, entries) };
        // Where a stranger wrote, there is no queue: completions are lost, but not the place of their requests.
        let Some(parts) = parts(fabric, fanin.place()) else { return settle_all(fabric, entries) };
        let has_channel = bell::is_attached(fabric, Source::Completion(index));
        let mut producer = fanin.producer(parts, key(fabric, index), has_channel.then_some(&asked));
        match entries {
            [entry] => fanin.push(&mut producer, entry, settle),
            entries => fanin.push_all(&mut producer, entries, settle),
        }
    };
    if asked.0.get() {
        bell::raise(fabric, Source::Completion(index), || true);
    }
    if let Err(Overrun { .. }) = pushed {
        overrun::spread(fabric, index, last.wc.qp_num());
    }
}

#[cold]
fn settle_all(fabric: &'static Fabric, entries: &[Entry]) {
    for Entry { wc, tag, .. } in entries {
        completion::settle(fabric, wc.qp_num(), *tag);
    }
}

/// Somebody who lives holds the queue's lock for ever: the queue is given up, as if it had overrun.
#[cold]
fn give_up(fabric: &'static Fabric, index: u32, entries: &[Entry]) {
    settle_all(fabric, entries);
    let slot = fabric.cq(index);
    sync::store_u32(&slot.given_up, 1);
    let queue = parts(fabric, slot.fanin.place());
    if let Some(queue) = queue.filter(|queue| queue.control().state() == State::Running) {
        queue.control().fail();
        tell(fabric, index);
    }
}

/// Has what pushing to the queue at `index` will write brought here meanwhile: `landing` is where that was
/// [expected](landing).
#[inline]
pub fn expect_push(fabric: &'static Fabric, index: u32, landing: u32) {
    region::expect_write(&fabric.cq(index).fanin);
    if let Some([slot]) = fabric.memory().slice::<Slot>(landing as usize, 1) {
        region::expect_write(slot);
    }
}

/// Where the next completion of the queue at `index` will lie, unless somebody else pushes one before.
#[inline]
pub fn landing(fabric: &'static Fabric, index: u32) -> u32 {
    let fanin = &fabric.cq(index).fanin;
    let place = fanin.place();
    let slot = fanin.position() as u32 & 1u32.wrapping_shl(place.log2).wrapping_sub(1);
    let slots = place.offset.wrapping_add(size_of::<Control>() as u32);
    slots.wrapping_add(slot.wrapping_mul(size_of::<Slot>() as u32))
}

/// Waits until whoever is pushing to the queue at `index` is through.
#[cold]
pub fn outwait_push(fabric: &'static Fabric, index: u32) {
    // Where the lock can't be had, nothing more is known than before.
    drop(lock(fabric, index));
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
        if channel.is_some_and(|channel| !std::ptr::eq(channel.bell().fabric(), fabric)) {
            return Err(CreateError::OtherFabric);
        }
        let (queue, key) = Queue::new(fabric, capacity)?;
        let none = CreateError::NoMemory { bytes: size_of::<Control>() };
        let place = fabric.cq(queue.index).fanin.place();
        let consumer = parts(fabric, place).ok_or(none)?.consumer(0, key, channel.is_some());
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
        let polled = self
            .consumer
            .poll_for(out, completion::retires, |wc, tag| completion::retire(fabric, wc, tag));
        // In a forked child nothing ever comes.
        if polled == Ok(0) && !fabric.is_ours() {
            return Err(PollError::Device(Errno::NODEV.raw_os_error()));
        }
        polled
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

    #[test]
    fn no_queue_leads_out_of_the_arena() {
        let fabric = Fabric::of_tests();
        let (arena, size) = (fabric.tables().arena.offset(), fabric.memory().len());
        let is_one = |offset: usize, log2| {
            parts(fabric, Place { offset: offset as u32, log2, promised: 8 }).is_some()
        };
        assert!(is_one(arena, 4));
        for (offset, log2) in [(0, 4), (arena - 128, 4), (size - 128, 4), (arena, 20), (arena, 99)]
        {
            assert!(!is_one(offset, log2));
        }
    }
}
