//! rtrb, once an entry at a time and once by chunks. Its sides own the queue.

use cq_core::wc::Wc;
use rtrb::chunks::ChunkError;
use rtrb::{Consumer, Producer, RingBuffer};

use crate::common::peer::{Peer, Receiver, Sender, receive_each, send_each};

/// `push` and `pop`.
pub struct RtrbSingle;

/// The slices of its chunks.
pub struct RtrbChunks;

/// A side used an entry at a time.
pub struct Single<T>(T);

/// A side used by chunks.
pub struct Chunks<T>(T);

impl Peer for RtrbSingle {
    const NAME: &'static str = "rtrb single";
    type Memory = usize;
    type Sender<'a> = Single<Producer<Wc>>;
    type Receiver<'a> = Single<Consumer<Wc>>;

    fn memory(capacity: usize) -> usize {
        capacity
    }

    fn open(capacity: &mut usize) -> (Self::Sender<'_>, Self::Receiver<'_>) {
        let (producer, consumer) = RingBuffer::new(*capacity);
        (Single(producer), Single(consumer))
    }
}

impl Sender for Single<Producer<Wc>> {
    #[inline(always)]
    fn send(&mut self, batch: &[Wc]) -> usize {
        send_each(batch, |wc| self.0.push(*wc).is_ok())
    }
}

impl Receiver for Single<Consumer<Wc>> {
    #[inline(always)]
    fn receive(&mut self, room: &mut [Wc]) -> usize {
        receive_each(room, || self.0.pop().ok())
    }
}

impl Peer for RtrbChunks {
    const NAME: &'static str = "rtrb chunks";
    type Memory = usize;
    type Sender<'a> = Chunks<Producer<Wc>>;
    type Receiver<'a> = Chunks<Consumer<Wc>>;

    fn memory(capacity: usize) -> usize {
        capacity
    }

    fn open(capacity: &mut usize) -> (Self::Sender<'_>, Self::Receiver<'_>) {
        let (producer, consumer) = RingBuffer::new(*capacity);
        (Chunks(producer), Chunks(consumer))
    }
}

impl Sender for Chunks<Producer<Wc>> {
    #[inline(always)]
    fn send(&mut self, batch: &[Wc]) -> usize {
        at_most(batch.len(), |count| self.0.push_entire_slice(&batch[..count]))
    }
}

impl Receiver for Chunks<Consumer<Wc>> {
    #[inline(always)]
    fn receive(&mut self, room: &mut [Wc]) -> usize {
        at_most(room.len(), |count| self.0.pop_entire_slice(&mut room[..count]))
    }
}

/// Moves `count` entries, or as many as it can. Unlike rtrb's own `_partial_slice` it writes no index when
/// that is none, which is the kinder way to poll it.
#[inline(always)]
fn at_most(count: usize, mut entire: impl FnMut(usize) -> Result<(), ChunkError>) -> usize {
    match entire(count) {
        Ok(()) => count,
        Err(ChunkError::TooFewSlots(0)) => 0,
        Err(ChunkError::TooFewSlots(fewer)) => entire(fewer).map_or(0, |()| fewer),
    }
}
