//! Queues of other crates.

use cq_core::wc::Wc;
use crossbeam_queue::ArrayQueue;
use heapless::spsc::{Queue, QueueView};
use ringbuf::traits::{Consumer, Producer, Split};
use ringbuf::{HeapCons, HeapProd, HeapRb};
use rtrb::RingBuffer;
use rtrb::chunks::ChunkError;

use crate::entries::Item;
use crate::peer::{Peer, Reader, receive_each, send_each, sides};

/// `crossbeam_queue::ArrayQueue`: one entry at a time, by any number of threads on either side.
pub struct Crossbeam;

impl Peer for Crossbeam {
    const NAME: &'static str = "crossbeam";
    type Memory = Option<ArrayQueue<Wc>>;
    type Sender<'a> = &'a ArrayQueue<Wc>;
    type Receiver<'a> = &'a ArrayQueue<Wc>;

    fn open(memory: &mut Self::Memory, capacity: usize) -> (Self::Sender<'_>, Self::Receiver<'_>) {
        let queue = memory.insert(ArrayQueue::new(capacity));
        (queue, queue)
    }
}

sides! { Wc:
    &ArrayQueue<Wc>: |queue, batch| send_each(batch, |wc| queue.push(*wc).is_ok()),
    &ArrayQueue<Wc>: |queue, buffer| receive_each(buffer, || queue.pop()),
}

/// `kanal::bounded`: one entry at a time, by any number of threads on either side.
pub struct Kanal;

impl Peer for Kanal {
    const NAME: &'static str = "kanal";
    type Memory = ();
    type Sender<'a> = kanal::Sender<Wc>;
    type Receiver<'a> = kanal::Receiver<Wc>;

    fn open((): &mut (), capacity: usize) -> (Self::Sender<'_>, Self::Receiver<'_>) {
        kanal::bounded(capacity)
    }
}

sides! { Wc:
    kanal::Sender<Wc>: |queue, batch| {
        send_each(batch, |wc| queue.try_send(*wc).expect("both sides are there"))
    },
    kanal::Receiver<Wc>: |queue, buffer| {
        receive_each(buffer, || queue.try_recv().expect("both sides are there"))
    },
}

/// `heapless::spsc`: one entry at a time. It holds one entry less than it has slots.
pub struct Heapless;

impl<E: Item> Peer<E> for Heapless {
    const NAME: &'static str = "heapless";
    type Memory = Option<Box<QueueView<E>>>;
    type Sender<'a> = heapless::spsc::Producer<'a, E>;
    type Receiver<'a> = heapless::spsc::Consumer<'a, E>;

    fn open(memory: &mut Self::Memory, capacity: usize) -> (Self::Sender<'_>, Self::Receiver<'_>) {
        let queue = memory.insert(match capacity {
            64 => Box::new(Queue::<E, 64>::new()) as _,
            1024 => Box::new(Queue::<E, 1024>::new()) as _,
            65536 => Box::new(Queue::<E, 65536>::new()) as _,
            other => panic!("heapless has its capacity in its type: name {other} here, too"),
        });
        queue.split()
    }
}

sides! { E:
    heapless::spsc::Producer<'_, E>: |queue, batch| {
        send_each(batch, |wc| queue.enqueue(*wc).is_ok())
    },
    heapless::spsc::Consumer<'_, E>: |queue, buffer| receive_each(buffer, || queue.dequeue()),
}

/// ringbuf's `push_slice` and `pop_slice`. Its sides own the queue.
pub struct Ringbuf;

impl Peer for Ringbuf {
    const NAME: &'static str = "ringbuf";
    type Memory = ();
    type Sender<'a> = HeapProd<Wc>;
    type Receiver<'a> = HeapCons<Wc>;

    fn open((): &mut (), capacity: usize) -> (Self::Sender<'_>, Self::Receiver<'_>) {
        HeapRb::new(capacity).split()
    }
}

sides! { Wc:
    HeapProd<Wc>: |queue, batch| queue.push_slice(batch),
    HeapCons<Wc>: |queue, buffer| queue.pop_slice(buffer),
}

/// rtrb's `push` and `pop`. Its sides own the queue.
pub struct RtrbSingle;

/// The slices of rtrb's chunks.
pub struct RtrbChunks;

/// A side of rtrb that is used an entry at a time.
pub struct Single<T>(T);

impl<E: Item> Peer<E> for RtrbSingle {
    const NAME: &'static str = "rtrb single";
    type Memory = ();
    type Sender<'a> = Single<rtrb::Producer<E>>;
    type Receiver<'a> = Single<rtrb::Consumer<E>>;

    fn open((): &mut (), capacity: usize) -> (Self::Sender<'_>, Self::Receiver<'_>) {
        let (producer, consumer) = RingBuffer::new(capacity);
        (Single(producer), Single(consumer))
    }
}

sides! { E:
    Single<rtrb::Producer<E>>: |queue, batch| send_each(batch, |wc| queue.0.push(*wc).is_ok()),
    Single<rtrb::Consumer<E>>: |queue, buffer| receive_each(buffer, || queue.0.pop().ok()),
}

impl<E: Item> Peer<E> for RtrbChunks {
    const NAME: &'static str = "rtrb chunks";
    type Memory = ();
    type Sender<'a> = rtrb::Producer<E>;
    type Receiver<'a> = rtrb::Consumer<E>;

    fn open((): &mut (), capacity: usize) -> (Self::Sender<'_>, Self::Receiver<'_>) {
        RingBuffer::new(capacity)
    }
}

sides! { E:
    rtrb::Producer<E>: |queue, batch| {
        at_most(batch.len(), |count| queue.push_entire_slice(&batch[..count]))
    },
    rtrb::Consumer<E>: |queue, buffer| {
        at_most(buffer.len(), |count| queue.pop_entire_slice(&mut buffer[..count]))
    },
}

impl<E: Item> Reader<E> for rtrb::Consumer<E> {
    #[inline(always)]
    fn read(&mut self, most: usize, mut see: impl FnMut(&[E])) -> usize {
        at_most(most, |count| {
            let chunk = self.read_chunk(count)?;
            let (first, second) = chunk.as_slices();
            see(first);
            if !second.is_empty() {
                see(second);
            }
            chunk.commit_all();
            Ok(())
        })
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
