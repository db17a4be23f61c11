//! The software completion queue of cq-core with several producers, without a channel.

use cq_core::ring::{Gate, Slot};
use cq_core::soft::Alerts;
use cq_core::soft::shared::{Consumer, Parts, Producer};
use cq_core::transport::{CqKey, NoSignal, Poll};
use cq_core::wc::Wc;

use super::ring::slots;
use crate::common::peer::{Peer, Receiver, Sender};

/// `cq_core::soft::shared`. Whoever sends has to keep to the capacity, since an overrun is for ever.
pub struct Shared;

/// What the sides of a [`Shared`] share.
pub struct Memory {
    gate: Gate,
    alerts: Alerts,
    slots: Box<[Slot]>,
}

impl Peer for Shared {
    const NAME: &'static str = "soft, shared";
    type Memory = Memory;
    type Sender<'a> = Producer<'a>;
    type Receiver<'a> = Consumer<'a>;

    fn memory(capacity: usize) -> Memory {
        Memory { gate: Gate::new(), alerts: Alerts::new(), slots: slots::<false>(capacity) }
    }

    fn open(memory: &mut Memory) -> (Self::Sender<'_>, Self::Receiver<'_>) {
        let parts = Parts::new(&memory.gate, &memory.slots, &[], memory.slots.len() as u32)
            .expect("a power of two");
        let key = CqKey { index: 0, generation: 0 };
        let producer = parts.producer::<NoSignal>(&memory.alerts, key, None);
        (producer, parts.consumer(&memory.alerts, key, false))
    }
}

impl Sender for Producer<'_> {
    #[inline(always)]
    fn send(&mut self, batch: &[Wc]) -> usize {
        match batch {
            [wc] => self.push(wc).expect("the capacity is kept to"),
            batch => self.push_batch(batch).expect("the capacity is kept to"),
        }
        batch.len()
    }
}

impl Receiver for Consumer<'_> {
    #[inline(always)]
    fn receive(&mut self, room: &mut [Wc]) -> usize {
        self.poll(room).expect("nothing overran")
    }
}
