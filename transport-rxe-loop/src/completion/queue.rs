//! A completion queue's entry in the table and its ring, as producers of every process find it.

use std::sync::{Arc, Mutex, PoisonError};

use cq_core::queue::raw::{Layout, RawQueue};
use cq_core::transport::CqKey;

use crate::api::device::MAX_CQE;
use crate::completion::channel::{Bell, Source};
use crate::completion::moderation;
use crate::completion::push::lock;
use crate::engine::overrun;
use crate::error::{CreateError, Limit};
use crate::fabric::Fabric;
use crate::layout::Entry as _;
use crate::lifecycle::deaths;
use crate::policy::imitation;
use crate::protocol::fanin::Place;
use crate::protocol::mode::Trait;
use crate::shm::arena::Extent;
use crate::shm::lock::Stuck;
use crate::sync;

/// The slots of a queue that is to hold so many completions: a quarter more lets the consumer give them back in
/// larger steps.
const fn slots(promised: u32) -> u32 {
    (promised + promised / 4).next_power_of_two()
}

// The largest queue wastes none.
const _: () = assert!(slots(MAX_CQE) < slots(MAX_CQE + 1));

/// Memory for a queue that is to hold so many completions, new: its zeros are an empty queue.
pub fn allocate(fabric: &'static Fabric, promised: u32) -> Result<(Place, Extent), CreateError> {
    let what = Limit::Cqe;
    if promised == 0 {
        return Err(CreateError::Zero(what));
    }
    if promised > MAX_CQE {
        return Err(CreateError::TooMany { what, asked: promised, max: MAX_CQE });
    }
    let promised = imitation::capacity(fabric, promised, MAX_CQE);
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
    pub fabric: &'static Fabric,
    pub index: u32,
    /// Another one after resizing. Locked for that alone.
    pub extent: Mutex<Extent>,
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

    pub fn new(
        fabric: &'static Fabric,
        promised: u32,
        ignore_overrun: bool,
    ) -> Result<(Self, CqKey), CreateError> {
        let (place, extent) = allocate(fabric, promised)?;
        let cqs = &fabric.tables().cqs;
        let full = CreateError::TableFull { what: Limit::CompletionQueues, max: cqs.len() };
        let (index, generation) = deaths::take(fabric, || cqs.claim(fabric.place())).ok_or(full)?;
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
pub struct Attachment {
    bell: Arc<Bell>,
    source: Source,
}

impl Attachment {
    pub fn new(bell: &Arc<Bell>, source: Source) -> Self {
        bell.attach(source);
        Self { bell: Arc::clone(bell), source }
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        self.bell.detach(self.source);
    }
}
