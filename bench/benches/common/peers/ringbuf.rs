//! ringbuf, by slices. Its sides own the queue.

use cq_core::wc::Wc;
use ringbuf::traits::{Consumer, Producer, Split};
use ringbuf::{HeapCons, HeapProd, HeapRb};

use crate::common::peer::{Peer, Receiver, Sender};

/// `push_slice` and `pop_slice`.
pub struct Ringbuf;

impl Peer for Ringbuf {
    const NAME: &'static str = "ringbuf";
    type Memory = usize;
    type Sender<'a> = HeapProd<Wc>;
    type Receiver<'a> = HeapCons<Wc>;

    fn memory(capacity: usize) -> usize {
        capacity
    }

    fn open(capacity: &mut usize) -> (Self::Sender<'_>, Self::Receiver<'_>) {
        HeapRb::new(*capacity).split()
    }
}

impl Sender for HeapProd<Wc> {
    #[inline(always)]
    fn send(&mut self, batch: &[Wc]) -> usize {
        self.push_slice(batch)
    }
}

impl Receiver for HeapCons<Wc> {
    #[inline(always)]
    fn receive(&mut self, room: &mut [Wc]) -> usize {
        self.pop_slice(room)
    }
}
