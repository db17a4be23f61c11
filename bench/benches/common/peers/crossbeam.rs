//! crossbeam: one entry at a time, by any number of threads on either side.

use cq_core::wc::Wc;
use crossbeam_queue::ArrayQueue;

use crate::common::peer::{Peer, Receiver, Sender, receive_each, send_each};

/// `crossbeam_queue::ArrayQueue`.
pub struct Crossbeam;

impl Peer for Crossbeam {
    const NAME: &'static str = "crossbeam";
    type Memory = ArrayQueue<Wc>;
    type Sender<'a> = &'a ArrayQueue<Wc>;
    type Receiver<'a> = &'a ArrayQueue<Wc>;

    fn memory(capacity: usize) -> Self::Memory {
        ArrayQueue::new(capacity)
    }

    fn open(memory: &mut Self::Memory) -> (Self::Sender<'_>, Self::Receiver<'_>) {
        (memory, memory)
    }
}

impl Sender for &ArrayQueue<Wc> {
    #[inline(always)]
    fn send(&mut self, batch: &[Wc]) -> usize {
        send_each(batch, |wc| self.push(*wc).is_ok())
    }
}

impl Receiver for &ArrayQueue<Wc> {
    #[inline(always)]
    fn receive(&mut self, room: &mut [Wc]) -> usize {
        receive_each(room, || self.pop())
    }
}
