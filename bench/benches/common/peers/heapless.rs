//! heapless: one entry at a time. It holds one entry less than it has slots.

use cq_core::wc::Wc;
use heapless::spsc::{Consumer, Producer, Queue, QueueView};

use crate::common::peer::{Peer, Receiver, Sender, receive_each, send_each};

/// `heapless::spsc`.
pub struct Heapless;

impl Peer for Heapless {
    const NAME: &'static str = "heapless";
    type Memory = Box<QueueView<Wc>>;
    type Sender<'a> = Producer<'a, Wc>;
    type Receiver<'a> = Consumer<'a, Wc>;

    fn memory(capacity: usize) -> Self::Memory {
        match capacity {
            64 => boxed::<64>(),
            1024 => boxed::<1024>(),
            65536 => boxed::<65536>(),
            other => panic!("heapless has its capacity in its type: name {other} here, too"),
        }
    }

    fn open(memory: &mut Self::Memory) -> (Self::Sender<'_>, Self::Receiver<'_>) {
        memory.split()
    }
}

fn boxed<const N: usize>() -> Box<QueueView<Wc>> {
    Box::new(Queue::<Wc, N>::new()) as _
}

impl Sender for Producer<'_, Wc> {
    #[inline(always)]
    fn send(&mut self, batch: &[Wc]) -> usize {
        send_each(batch, |wc| self.enqueue(*wc).is_ok())
    }
}

impl Receiver for Consumer<'_, Wc> {
    #[inline(always)]
    fn receive(&mut self, room: &mut [Wc]) -> usize {
        receive_each(room, || self.dequeue())
    }
}
