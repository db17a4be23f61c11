//! The software completion queue of cq-core, without a channel.

use cq_core::ring::{Slot, Tail};
use cq_core::soft::{Consumer, Control, Parts, Producer};
use cq_core::transport::{CqKey, NoSignal, Poll};
use cq_core::wc::Wc;

use super::ring::slots;
use crate::common::peer::{Peer, Receiver, Sender, send_each};

/// `cq_core::soft`; with `SLACK` it gives slots back late. Whoever sends has to keep to the capacity, since
/// an overrun is for ever.
pub struct Soft<const SLACK: bool>;

/// What the two sides of a [`Soft`] share.
pub struct Memory {
    control: Control,
    slots: Box<[Slot]>,
    capacity: u32,
}

impl<const SLACK: bool> Peer for Soft<SLACK> {
    const NAME: &'static str = if SLACK { "soft, slack" } else { "soft" };
    type Memory = Memory;
    type Sender<'a> = Producer<'a>;
    type Receiver<'a> = Consumer<'a>;

    fn memory(capacity: usize) -> Memory {
        let slots = slots::<SLACK>(capacity);
        Memory { control: Control::new(), slots, capacity: capacity as u32 }
    }

    fn open(memory: &mut Memory) -> (Self::Sender<'_>, Self::Receiver<'_>) {
        let parts = Parts::new(&memory.control, &memory.slots, &[], memory.capacity)
            .expect("a power of two that holds the capacity");
        let key = CqKey { index: 0, generation: 0 };
        (parts.producer::<NoSignal>(Tail::default(), key, None), parts.consumer(0, key, false))
    }
}

impl Sender for Producer<'_> {
    #[inline(always)]
    fn send(&mut self, batch: &[Wc]) -> usize {
        send_each(batch, |wc| {
            self.push(wc).expect("the capacity is kept to");
            true
        })
    }
}

impl Receiver for Consumer<'_> {
    #[inline(always)]
    fn receive(&mut self, room: &mut [Wc]) -> usize {
        self.poll(room).expect("nothing overran")
    }
}
