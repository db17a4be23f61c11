//! Completion queues from the side of who pushes to them, and events: the channels by which programs learn of completions
//! and of what the device reports.
//!
//! [`Completions`] is what a process has for that. It owns the tables of [completion queues](queue), of
//! [channels](channel), and of what is unread of each queue pair and shared receive queue; the descriptors of channels that
//! this process has [open](fifo); and which of its queues [hold events back](moderation). Which requests completions are of,
//! it does not know: who pushes says what is to be done about [them](lock::Requests), and has queue
//! pairs fail whose queues have [overrun](overran).

pub mod async_event;
pub mod channel;
pub mod fifo;
pub mod lock;
pub mod moderation;
pub mod overran;
pub mod push;
pub mod queue;
pub mod soft_roce;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cq_core::queue::Control;
use cq_core::queue::raw::Slot;

use self::channel::{ChannelSlot, Source, nodes};
use self::fifo::Fifos;
use self::overran::Overran;
use self::queue::CqSlot;
use crate::memory::Memory;
use crate::protocol::channel::EventNode;
use crate::protocol::lock::Owner;
use crate::protocol::steps::{self, Step};
use crate::shm::Shm;
use crate::shm::owners::Owners;
use crate::shm::plan::Plan;
use crate::shm::table::{Entry, Table};

/// What a process has of completion queues and channels.
pub struct Completions {
    pub shm: &'static Shm,
    /// Who waits for a lock serves others who ask for this process' memory.
    pub memory: &'static Memory,
    cqs: Table<CqSlot>,
    channels: Table<ChannelSlot>,
    /// Unread events of shared receive queues and queue pairs, by their [sources](Source).
    nodes: &'static [EventNode],
    /// How many shared receive queues and queue pairs there can be: powers of two.
    srqs: u32,
    qps: u32,
    /// The descriptors of channels. Locked only to raise an event, and to make and end a channel.
    fifos: Fifos,
    /// Queues that were found to have overrun, and whose queue pairs are still to fail.
    pub overran: Overran,
    /// Queues of this process that may hold events back.
    moderated: Mutex<BTreeSet<u32>>,
}

/// Its tables.
#[derive(Debug)]
pub struct Tables {
    cqs: Table<CqSlot>,
    channels: Table<ChannelSlot>,
    nodes: &'static [EventNode],
    srqs: u32,
    qps: u32,
}

/// How many objects there can be, in powers of two.
#[derive(Clone, Copy, Debug)]
pub struct Counts {
    pub cqs: u32,
    pub channels: u32,
    pub srqs: u32,
    pub qps: u32,
}

impl Tables {
    /// Places those of so many objects; `None` if the memory is too small.
    pub fn place(plan: &mut Plan, Counts { cqs, channels, srqs, qps }: Counts) -> Option<Self> {
        plan.note(size_of::<Control>());
        plan.note(size_of::<Slot>());
        let cqs = Table::place(plan, cqs);
        let channels = Table::place(plan, channels);
        let nodes = plan.table(nodes(srqs, qps) as usize);
        Some(Self { cqs: cqs?, channels: channels?, nodes: nodes?, srqs, qps })
    }
}

impl Completions {
    /// What a process has that begins to use these tables.
    pub fn new(memory: &'static Memory, tables: Tables) -> Self {
        let Tables { cqs, channels, nodes, srqs, qps } = tables;
        let (fifos, moderated) = (Fifos::new(channels.len()), Mutex::default());
        Self {
            shm: memory.shm,
            memory,
            cqs,
            channels,
            nodes,
            srqs,
            qps,
            fifos,
            overran: Overran::default(),
            moderated,
        }
    }

    /// The completion queue at an index. Any is harmless.
    #[inline]
    pub fn cq(&self, index: u32) -> &'static CqSlot {
        self.cqs.at(index)
    }

    /// All completion queues.
    pub const fn cqs(&self) -> &Table<CqSlot> {
        &self.cqs
    }

    /// The channel at an index. Any is harmless.
    #[inline]
    pub fn channel(&self, index: u32) -> &'static ChannelSlot {
        self.channels.at(index)
    }

    /// All channels.
    #[cfg(test)]
    pub const fn channels(&self) -> &Table<ChannelSlot> {
        &self.channels
    }

    /// How many completion queues, shared receive queues and queue pairs have events.
    const fn sources(&self) -> [u32; 3] {
        [self.cqs.len(), self.srqs, self.qps]
    }

    /// Queues of this process that may hold events back: the service thread looks at them.
    pub fn moderated(&self) -> MutexGuard<'_, BTreeSet<u32>> {
        self.moderated.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nobody has read these events of an object whose process died, and nobody will.
    pub fn forget(&self, source: Source) {
        source.node(self).forget();
    }
}

/// Channels, and what others were to be told by the dead.
impl Owners for &'static Completions {
    fn expel(&self, _: Owner) -> bool {
        channel::remark(self);
        true
    }

    fn free(&self, place: u16) {
        for (index, slot) in self.channels.all_of(place) {
            channel::remove(self, index);
            steps::done(Step::Swept);
            slot.life().end(place);
        }
    }
}

impl fmt::Debug for Completions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Completions").finish_non_exhaustive()
    }
}
