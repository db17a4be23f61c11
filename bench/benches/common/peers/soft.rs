//! The software completion queue of cq-core, without a channel.

use cq_core::ring::{Slot, Tail};
use cq_core::soft::{Consumer, Control, Parts, Producer};
use cq_core::transport::{CqKey, NoSignal, Poll};
use cq_core::wc::Wc;

use crate::common::peer::{CAPACITY, Peer, Receiver, Sender, send_each};

/// `cq_core::soft`; with more `STORAGE` than capacity it gives slots back late. Whoever sends has to keep
/// to the capacity, since an overrun is for ever.
pub struct Soft<const STORAGE: usize>;

/// What the two sides of a [`Soft`] share.
pub struct Memory<const STORAGE: usize> {
    control: Control,
    slots: Box<[Slot]>,
}

impl<const STORAGE: usize> Default for Memory<STORAGE> {
    fn default() -> Self {
        Self { control: Control::new(), slots: (0..STORAGE).map(|_| Slot::new()).collect() }
    }
}

impl<const STORAGE: usize> Peer for Soft<STORAGE> {
    const NAME: &'static str = if STORAGE == CAPACITY { "soft" } else { "soft, slack" };
    type Memory = Memory<STORAGE>;
    type Sender<'a> = Producer<'a>;
    type Receiver<'a> = Consumer<'a>;

    fn open(memory: &mut Self::Memory) -> (Self::Sender<'_>, Self::Receiver<'_>) {
        let parts = Parts::new(&memory.control, &memory.slots, &[], CAPACITY as u32)
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
