//! Completion queues from the producers' side, event channels and asynchronous events.
//!
//! [`Completions`] is a process' state of this layer: the tables of [completion queues](queue), of [channels](channel),
//! and of unread events; the channel descriptors that this process has [open](fifo); its [moderated](moderation) queues;
//! and the queues that were found to have [overrun](overran), whose queue pairs a producer has to fail. This layer does
//! not know requests: a producer passes [what to do about them](lock::RequestHooks), and gets the [wake-up](wakeup) that is
//! due as a value.

pub mod async_event;
pub mod channel;
pub mod counters;
pub mod fifo;
pub mod lock;
pub mod moderation;
pub mod overran;
pub mod push;
pub mod queue;
pub mod soft_roce;
pub mod view;
pub mod wakeup;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use cq_core::queue::Control;
use cq_core::queue::raw::Slot;

use self::channel::{ChannelSlot, Source, nodes};
use self::counters::PollCounters;
use self::fifo::Fifos;
use self::overran::Overran;
use self::queue::CqSlot;
use crate::memory::Memory;
use crate::protocol::channel::{EventNode, Owned};
use crate::protocol::lock::{AttachmentId, AttachmentKey};
use crate::protocol::number::{ChannelIndex, CqIndex};
use crate::protocol::steps::{self, Step};
use crate::shm::Shm;
use crate::shm::plan::Plan;
use crate::shm::recovery::DeathRecovery;
use crate::shm::table::{Entry, Table, opaque};

/// A process' completion queues and channels.
pub struct Completions {
    pub shm: &'static Shm,
    /// A thread that waits for a lock serves copy requests of other processes meanwhile.
    pub memory: &'static Memory,
    /// All completion queues.
    pub cqs: Table<'static, CqSlot>,
    /// All channels.
    pub channels: Table<'static, ChannelSlot>,
    /// Unread events of shared receive queues and queue pairs, by their [sources](Source).
    nodes: &'static [EventNode],
    counters: &'static [PollCounters],
    /// Whether the polls of this process are counted.
    pub counts_polls: bool,
    /// The table sizes of shared receive queues and queue pairs, powers of two.
    srqs: u32,
    qps: u32,
    /// The descriptors of channels. Each is locked for a moment to raise and take events, to wait for them, to detach a source,
    /// and to make and end the channel; and while it is opened.
    fifos: Fifos,
    /// What the channels of this process keep to themselves.
    registered: Mutex<BTreeMap<ChannelIndex, Arc<Mutex<Owned>>>>,
    /// Queues that have overrun, and whose queue pairs are still to be failed.
    pub overran: Overran,
    /// Moderated queues of this process.
    pub moderated: Mutex<BTreeSet<CqIndex>>,
}

/// The tables of [`Completions`].
#[derive(Debug)]
pub struct Tables<'m> {
    cqs: Table<'m, CqSlot>,
    channels: Table<'m, ChannelSlot>,
    nodes: &'m [EventNode],
    counters: &'m [PollCounters],
    srqs: u32,
    qps: u32,
}

/// The table sizes, powers of two.
#[derive(Clone, Copy, Debug)]
pub struct Counts {
    pub cqs: u32,
    pub channels: u32,
    pub srqs: u32,
    pub qps: u32,
}

impl<'m> Tables<'m> {
    /// Places the tables; `None` if the memory is too small.
    pub fn place(plan: &mut Plan<'m>, Counts { cqs, channels, srqs, qps }: Counts) -> Option<Self> {
        plan.note(size_of::<Control>());
        plan.note(size_of::<Slot>());
        let counters = plan.table(cqs as usize);
        let cqs = Table::place(plan, cqs);
        let channels = Table::place(plan, channels);
        let nodes = plan.table(nodes(srqs, qps) as usize);
        let (nodes, counters) = (nodes?, counters?);
        Some(Self { cqs: cqs?, channels: channels?, nodes, counters, srqs, qps })
    }
}

impl Completions {
    /// The state of a process that begins to use these tables, and counts its polls or does not.
    pub fn new(memory: &'static Memory, tables: Tables<'static>, counts_polls: bool) -> Self {
        let Tables { cqs, channels, nodes, counters, srqs, qps } = tables;
        let (fifos, moderated) = (Fifos::new(channels.len()), Mutex::default());
        Self {
            shm: memory.shm,
            memory,
            cqs,
            channels,
            nodes,
            counters,
            counts_polls,
            srqs,
            qps,
            fifos,
            registered: Mutex::default(),
            overran: Overran::default(),
            moderated,
        }
    }

    /// The completion queue at an index. Any index is valid: it is taken modulo the table's size.
    #[inline]
    pub fn cq(&self, index: CqIndex) -> &'static CqSlot {
        self.cqs.at(index)
    }

    /// The counters of the completion queue at an index. Any index is valid.
    pub fn counters(&self, index: CqIndex) -> &'static PollCounters {
        &self.counters[self.cqs.index(index).get() as usize]
    }

    /// The numbers of completion queues, shared receive queues and queue pairs.
    const fn sources(&self) -> [u32; 3] {
        [self.cqs.len(), self.srqs, self.qps]
    }

    /// Discards the unread events of an object whose process died.
    pub fn forget(&self, source: Source) {
        source.node(self).forget();
    }
}

/// Channels of a dead process, and events that it counted without writing their tokens.
impl DeathRecovery for &'static Completions {
    fn revoke(&self, _: AttachmentKey) -> bool {
        channel::recover(self);
        true
    }

    fn free(&self, attachment: AttachmentId) {
        for (index, slot) in self.channels.all_of(attachment) {
            channel::remove(self, index);
            steps::done(Step::Recovered);
            slot.life().end(attachment);
        }
    }
}

opaque!(Completions);
