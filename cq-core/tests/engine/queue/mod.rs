//! The software completion queue. What the tests share is here; `device` has a queue of every kind.
//!
//! | module | rules |
//! |---|---|
//! | `model` | a queue of each kind against a model of one (P1–P4, P6, O1, O3, O5, N1–N4, N6, S1–S4) |
//! | `raw_model` | the same of a raw queue, with sides that take turns (P1, P2, P4, O1, O3, S4–S6) |
//! | `order` | wrap-around, kept tails, harmlessness of foreign words (P1, P2, X4) |
//! | `positions` | wrap-around, limits, lag and generations, at every wrap and for every number of slots (P1, O1, S1, X4) |
//! | `overrun` | overrun, and queues that are split again (O2, O3) |
//! | `available` | what a producer finds unpolled, and how it waits (S1) |
//! | `batch` | several at once (N3, P2) |
//! | `events` | names of events, and notification through the control (N1, N8, N11, N12) |
//! | `end` | sides that come after the end (S5, O3) |
//! | `adopt` | queues that replace others (Q12) |
//! | `heap` | queues that own their storage (O1) |
//! | `entries` | entries of many sizes, spare bits (S8) |
//! | `in_place` | batches that are read where they lie (S7, O1, O3, N2, C1) |
//! | `one` | an entry by itself, among polls of several (P1, P2, O3, S2, S7) |
//! | `layout`, `tags`, `recover`, `scribble` | memory that others share (C3, C8, P4, X4) |
//! | `reunite` | queues that are had again from their sides (O3, S2) |
//! | `mpsc` | several producers |

mod adopt;
mod available;
mod batch;
mod device;
mod end;
mod entries;
mod events;
mod heap;
mod in_place;
mod layout;
mod model;
#[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
mod mpsc;
mod one;
mod order;
mod overrun;
mod positions;
mod raw_model;
mod recover;
mod reunite;
mod scribble;
mod tags;

use cq_core::queue::raw::RawQueue;

use super::*;

/// A receive with a tag.
fn entry(number: u32) -> Tagged {
    Tagged { wc: recv(number.into()), tag: number + 100, solicited: false }
}

/// Polls everything.
fn drain(consumer: &mut (impl PollCq<Entry = Wc> + ?Sized)) -> Result<Vec<u64>, PollError> {
    let mut out = [Wc::default(); 64];
    let count = consumer.poll_into(&mut out)?;
    Ok(out[..count].iter().map(Wc::wr_id).collect())
}

/// The parts of a raw queue.
struct Parts {
    control: Control,
    slots: Vec<raw::Slot>,
    tags: Vec<raw::Tag>,
    promised: u32,
    /// Whether it is full with exactly what it promises.
    is_exact: bool,
}

impl Parts {
    /// As many slots as it promises.
    fn new(storage: usize) -> Self {
        Self::promising(storage as u32, storage)
    }

    fn promising(promised: u32, storage: usize) -> Self {
        let slots = (0..storage).map(|_| raw::Slot::new()).collect();
        Self { control: Control::new(), slots, tags: Vec::new(), promised, is_exact: false }
    }

    fn tagged(storage: usize) -> Self {
        let tags = (0..storage).map(|_| raw::Tag::new()).collect();
        Self { tags, ..Self::new(storage) }
    }

    fn queue(&self) -> RawQueue<'_> {
        self.queue_of(&self.control)
    }

    /// The same slots, with another control.
    fn queue_of<'a>(&'a self, control: &'a Control) -> RawQueue<'a> {
        let queue = raw_queue(control, &self.slots, &self.tags, self.promised).unwrap();
        if self.is_exact { queue.exact() } else { queue }
    }

    fn producer(&self, tail: Tail) -> raw::RawProducer<'_> {
        self.queue().into_producer(tail, NoChannel)
    }

    fn consumer(&self, position: Position) -> raw::RawConsumer<'_> {
        self.queue().into_consumer(position, NoChannel)
    }

    fn sides(&self, position: Position) -> (raw::RawProducer<'_>, raw::RawConsumer<'_>) {
        self.queue().into_sides(position, NoChannel, NoChannel)
    }

    fn sides_with<'a>(&'a self, event_count: &'a EventCount) -> Armable<'a> {
        self.sides_from(0, event_count)
    }

    fn sides_from<'a>(&'a self, position: Position, event_count: &'a EventCount) -> Armable<'a> {
        self.queue().into_sides(position, event_count, OnChannel::new(event_count))
    }
}

/// The sides of a raw queue with events.
type Armable<'a> =
    (raw::RawProducer<'a, &'a EventCount>, raw::RawConsumer<'a, OnChannel<&'a EventCount>>);

/// Runs a test with the sides of a queue of four with events, once for each kind that has one producer: the types
/// differ.
macro_rules! each_lone {
    (|$producer:ident, $consumer:ident, $event_count:ident| $test:block) => {{
        let ($event_count, mut queue) = (&crate::EventCount::default(), cq_core::queue::SoftCq::<4>::new());
        let (mut $producer, mut $consumer) = queue.split_with($event_count);
        $test

        let ($event_count, queue) = (&crate::EventCount::default(), cq_core::queue::HeapCq::new(4).unwrap());
        let (mut $producer, mut $consumer) = queue.split_with($event_count);
        $test

        let ($event_count, parts) = (&crate::EventCount::default(), crate::queue::Parts::tagged(4));
        let (mut $producer, mut $consumer) = parts.sides_with($event_count);
        $test
    }};
}
use each_lone;
