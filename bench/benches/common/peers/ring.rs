//! The ring of cq-core.

use cq_core::ring::{self, Consumer, Head, Producer, Slot, Tail};
use cq_core::wc::Wc;

use crate::common::peer::{Peer, Receiver, Sender, send_each};

/// `cq_core::ring`; with `SLACK` it gives slots back late.
pub struct Ring<const SLACK: bool>;

/// What the two sides of a [`Ring`] share.
pub struct Memory {
    slots: Box<[Slot]>,
    head: Head,
}

/// The storage of a queue: with slack, as much again as was promised.
pub fn slots<const SLACK: bool>(capacity: usize) -> Box<[Slot]> {
    let storage = if SLACK { 2 * capacity } else { capacity };
    (0..storage).map(|_| Slot::new()).collect()
}

impl<const SLACK: bool> Peer for Ring<SLACK> {
    const NAME: &'static str = if SLACK { "ring, slack" } else { "ring" };
    type Memory = Memory;
    type Sender<'a> = Producer<'a>;
    type Receiver<'a> = Consumer<'a>;

    fn memory(capacity: usize) -> Memory {
        Memory { slots: slots::<SLACK>(capacity), head: Head::new() }
    }

    fn open(memory: &mut Memory) -> (Self::Sender<'_>, Self::Receiver<'_>) {
        let ring = ring::Ring::new(&memory.slots, &memory.head).expect("a power of two");
        // As `cq_core::soft` does it.
        let lag = if SLACK { memory.slots.len() as u32 / 4 } else { 0 };
        (ring.producer(Tail::default()), ring.consumer(0, lag))
    }
}

impl Sender for Producer<'_> {
    #[inline(always)]
    fn send(&mut self, batch: &[Wc]) -> usize {
        send_each(batch, |wc| self.push(wc).is_ok())
    }
}

impl Receiver for Consumer<'_> {
    #[inline(always)]
    fn receive(&mut self, room: &mut [Wc]) -> usize {
        self.pop(room)
    }
}
