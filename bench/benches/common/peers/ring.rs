//! The ring of cq-core.

use cq_core::ring::{self, Consumer, Head, Producer, Slot, Tail};
use cq_core::wc::Wc;

use crate::common::peer::{CAPACITY, Peer, Receiver, Sender, send_each};

/// `cq_core::ring`; with more `STORAGE` than capacity it gives slots back late.
pub struct Ring<const STORAGE: usize>;

/// What the two sides of a [`Ring`] share.
pub struct Memory<const STORAGE: usize> {
    slots: Box<[Slot]>,
    head: Head,
}

impl<const STORAGE: usize> Default for Memory<STORAGE> {
    fn default() -> Self {
        Self { slots: (0..STORAGE).map(|_| Slot::new()).collect(), head: Head::new() }
    }
}

impl<const STORAGE: usize> Peer for Ring<STORAGE> {
    const NAME: &'static str = if STORAGE == CAPACITY { "ring" } else { "ring, slack" };
    type Memory = Memory<STORAGE>;
    type Sender<'a> = Producer<'a>;
    type Receiver<'a> = Consumer<'a>;

    fn open(memory: &mut Self::Memory) -> (Self::Sender<'_>, Self::Receiver<'_>) {
        let ring = ring::Ring::new(&memory.slots, &memory.head).expect("a power of two");
        // As `cq_core::soft` does it.
        let lag = (STORAGE - CAPACITY).min(STORAGE / 4);
        (ring.producer(Tail::default()), ring.consumer(0, lag as u32))
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
