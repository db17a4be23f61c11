//! What an observer sees of completion queues and channels.

use cq_core::queue::{Control, End};
use cq_core::transport::Notify;

use super::counters::{PollCounters, PollCounts};
use super::queue::{CqSlot, layout};
use super::{Tables, moderation};
use crate::protocol::channel::EventNode;
use crate::protocol::mode::CqFlag;
use crate::protocol::moderation::until;
use crate::protocol::number::Position;
use crate::shm::arena::InArena;
use crate::shm::reader::View;
use crate::shm::table::Entry;
use crate::shm::view::Holder;
use crate::sync;

/// A completion queue.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct CompletionQueue {
    /// The index of its table entry.
    pub index: u32,
    /// How often the entry was used before, wrapping. With the index, the queue's key in events.
    pub generation: u32,
    /// The attachment of its process.
    pub owner: u16,
    /// How many completions it holds; 0 while it is being created or destroyed.
    pub capacity: u32,
    /// How many completions were pushed so far, wrapping.
    pub pushed: u64,
    /// How many completions are in it that were not polled, at least.
    pub unpolled_min: u32,
    /// The same, at most. A consumer publishes its position now and then, so this is more than
    /// [`unpolled_min`](Self::unpolled_min) unless its polls are counted.
    pub unpolled_max: u32,
    /// What its process has counted, if it [was asked to](crate::OpenOptions::count_polls).
    pub counts: Option<PollCounts>,
    /// Whether it works.
    pub health: CqHealth,
    /// Completions that were dropped: since it overran, or since it was created if it ignores overruns.
    pub dropped: u32,
    /// What its consumer has armed it for.
    #[cfg_attr(feature = "serde", serde(serialize_with = "crate::by_name::name_of_some"))]
    pub armed: Option<Notify>,
    /// The index of its channel.
    pub channel: Option<u32>,
    /// Its events that nobody has taken from the channel.
    pub unread_events: u32,
    /// Whether completions that do not fit are dropped, without an overrun.
    pub ignores_overrun: bool,
    /// Its moderation, if it has any.
    pub moderation: Option<Moderated>,
    /// The number of the queue pair that alone pushes to it, without the lock.
    pub sole_producer: Option<u32>,
    /// The process that pushes to it, or resizes it.
    pub lock: Option<Holder>,
}

/// Whether a completion queue works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum CqHealth {
    /// It works.
    Running,
    /// It has overrun.
    Overrun,
    /// Producers could not take its lock, and have given it up; or its consumer has failed it.
    Failed,
    /// It can't be read: it is being created, destroyed or moved, or its entry is corrupted.
    Unknown,
}

/// The moderation of a completion queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Moderated {
    /// Completions for each event.
    pub count: u16,
    /// The longest delay, in microseconds; 0 is 10 ms.
    pub period_us: u16,
    /// How many completions a delayed event stands for.
    pub held: u32,
    /// In how many nanoseconds it has to be raised; `None` if no event is delayed.
    pub due_in_ns: Option<u64>,
}

/// A channel: of completion queues, or of a context's asynchronous events.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Channel {
    /// The index of its table entry.
    pub index: u32,
    /// The attachment of its process.
    pub owner: u16,
    /// Completion queues whose completion events go there.
    pub queues: u32,
    /// Sources of asynchronous events.
    pub other_sources: u32,
    /// Events that nobody has taken.
    pub unread_events: u64,
}

impl<'m> Tables<'m> {
    /// The completion queues.
    pub fn see_completion_queues(&self, view: &View<'m>) -> Vec<CompletionQueue> {
        let slots = self.cqs.all().zip(self.counters);
        slots
            .filter_map(|((index, slot), counters)| see_queue(view, index.get(), slot, counters))
            .collect()
    }

    /// The channels.
    pub fn see_channels(&self) -> Vec<Channel> {
        let slots = self.channels.all();
        let mut all: Vec<_> = slots
            .map(|(index, slot)| {
                let owner = slot.life().attachment().map_or(u16::MAX, |owner| owner.get());
                let index = index.get();
                Channel { index, owner, queues: 0, other_sources: 0, unread_events: 0 }
            })
            .collect();
        let mut add = |node: &EventNode, is_of_queue| {
            let channel = node.channel().and_then(|index| all.get_mut(index.get() as usize));
            let Some(channel) = channel else { return };
            channel.unread_events += u64::from(node.unread());
            *if is_of_queue { &mut channel.queues } else { &mut channel.other_sources } += 1;
        };
        for (_, slot) in self.cqs.all().filter(|(_, slot)| slot.life().attachment().is_some()) {
            add(&slot.completion, true);
            add(&slot.overrun, false);
        }
        self.nodes.iter().for_each(|node| add(node, false));
        all.retain(|channel| channel.owner != u16::MAX);
        all
    }
}

/// What lies in the ring of a queue.
struct Ring {
    /// At least, and at most.
    unpolled: [u64; 2],
    end: Option<End>,
    armed: Option<Notify>,
}

impl Ring {
    /// What is seen of the ring of a queue. The slot is copied once more between two looks at the consumer's position: its
    /// own position is of an instant between them.
    fn see<'m>(
        view: &View<'m>,
        slot: &'m CqSlot,
        counters: Option<&'m PollCounters>,
    ) -> Option<Self> {
        let location = slot.fanin.location();
        let layout = layout(location)?;
        layout.bytes().ok()?;
        let control = || view.in_arena::<Control>(location.offset as usize, 1)?.first();
        let polled = |control: &Control| match counters {
            None => control.released(),
            Some(counters) => {
                view.again(counters);
                counters.read().polled
            }
        };
        let before = polled(control()?);
        view.again(slot);
        let control = control()?;
        let pushed = Position::new(slot.fanin.position());
        let [least, most] = [polled(control), before].map(|polled| {
            let polled = Position::new(polled);
            // More than the ring holds is corrupted.
            let unpolled = if pushed.is_after(polled) { pushed.since(polled) } else { 0 };
            unpolled.min(layout.slots as u64)
        });
        let lag = if counters.is_some() { 0 } else { layout.lag() };
        let unpolled = [least.saturating_sub(lag), most];
        Some(Self { unpolled, end: control.end(), armed: control.armed() })
    }
}

fn see_queue<'m>(
    view: &View<'m>,
    index: u32,
    slot: &'m CqSlot,
    counters: &'m PollCounters,
) -> Option<CompletionQueue> {
    let (owner, _) = slot.life().holder()?;
    let counters = slot.mode.has(CqFlag::Counted).then_some(counters);
    let ring = Ring::see(view, slot, counters);
    let (health, dropped) = match ring.as_ref().map(|ring| ring.end) {
        _ if slot.mode.has(CqFlag::GivenUp) => (CqHealth::Failed, 0),
        None => (CqHealth::Unknown, 0),
        Some(Some(End::Overrun { dropped })) => (CqHealth::Overrun, dropped),
        Some(None) => (CqHealth::Running, sync::load(&slot.dropped)),
        Some(_) => (CqHealth::Failed, 0),
    };
    let [unpolled_min, unpolled_max] =
        ring.as_ref().map_or([0; 2], |ring| ring.unpolled.map(|count| count as u32));
    Some(CompletionQueue {
        index,
        generation: sync::load(&slot.generation),
        owner: owner.get(),
        capacity: slot.fanin.location().promised,
        pushed: slot.fanin.position(),
        unpolled_min,
        unpolled_max,
        counts: counters.map(PollCounters::read),
        health,
        dropped,
        armed: ring.and_then(|ring| ring.armed),
        channel: slot.completion.channel().map(|channel| channel.get()),
        unread_events: slot.completion.channel().map_or(0, |_| slot.completion.unread()),
        ignores_overrun: slot.mode.has(CqFlag::IgnoresOverrun),
        moderation: see_moderation(slot),
        sole_producer: slot.sole.producer().map(|number| number.get()),
        lock: Holder::of(&slot.fanin.lock),
    })
}

fn see_moderation(slot: &CqSlot) -> Option<Moderated> {
    let setting = slot.moderation.setting();
    if !slot.mode.has(CqFlag::Moderated) || !setting.is_any() {
        return None;
    }
    let delayed = slot.moderation.delayed();
    Some(Moderated {
        count: setting.count,
        period_us: setting.period,
        held: delayed.map_or(0, |(held, _)| held),
        due_in_ns: delayed.map(|(_, deadline)| until(deadline, moderation::now())),
    })
}
