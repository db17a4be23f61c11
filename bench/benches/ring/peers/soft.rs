//! The software completion queue of cq-core, without a channel, pushed to as by somebody who can wait.

use core::ptr::NonNull;

use cq_core::queue::raw::{self, Layout, RawQueue};
use cq_core::queue::{Consumer, HeapCq, NoChannel, Producer, mpsc};
use cq_core::transport::PollCq;
use cq_core::wc::Wc;

use crate::entries::Item;
use crate::peer::{Peer, Reader, sides};

/// `cq_core::queue`.
pub struct Soft;

/// The same in memory that others might write to.
pub struct Raw;

/// `cq_core::queue::mpsc`, with several producers.
pub struct Shared;

/// Memory of a [`Raw`].
#[derive(Clone, Copy)]
#[repr(align(128))]
pub struct Line(#[expect(dead_code, reason = "memory for a queue")] [u8; 128]);

impl<E: Item> Peer<E> for Soft {
    const NAME: &'static str = "queue";
    type Memory = ();
    type Sender<'a> = Producer<'static, E>;
    type Receiver<'a> = Consumer<'static, E>;

    fn open((): &mut (), capacity: usize) -> (Self::Sender<'_>, Self::Receiver<'_>) {
        HeapCq::with_slots(capacity, capacity).expect("a power of two").split()
    }
}

impl Peer for Raw {
    const NAME: &'static str = "queue, raw";
    type Memory = Vec<Line>;
    type Sender<'a> = raw::RawProducer<'a>;
    type Receiver<'a> = raw::RawConsumer<'a>;

    #[allow(unsafe_code)]
    fn open(memory: &mut Vec<Line>, capacity: usize) -> (Self::Sender<'_>, Self::Receiver<'_>) {
        let layout = Layout { slots: capacity, tags: false, promised: capacity as u32 };
        let lines = layout.bytes().expect("a power of two").div_ceil(size_of::<Line>());
        *memory = vec![Line([0; 128]); lines];
        let base = NonNull::from(&mut memory[0]).cast();
        // SAFETY: the sides borrow the memory mutably, so nobody else reaches it.
        let queue = unsafe { RawQueue::new(base, size_of_val(&memory[..]), layout) };
        queue.expect("all of it").into_sides(0, NoChannel, NoChannel)
    }
}

impl Peer for Shared {
    const NAME: &'static str = "queue, several producers";
    type Memory = ();
    type Sender<'a> = mpsc::SharedProducer<'static>;
    type Receiver<'a> = mpsc::SharedConsumer<'static>;

    fn open((): &mut (), capacity: usize) -> (Self::Sender<'_>, Self::Receiver<'_>) {
        mpsc::HeapCq::new(capacity).expect("a capacity that can be").split()
    }
}

macro_rules! ours {
    ($($entry:ident: $producer:ty, $consumer:ty;)*) => {
        $(sides! { $entry:
            $producer: |queue, batch| match batch {
                [wc] => queue.push(wc).is_ok().into(),
                batch => queue.push_batch(batch).map_or_else(|error| error.stored, |()| batch.len()),
            },
            $consumer: |queue, buffer| queue.poll_into(buffer).expect("nothing overran"),
        })*
    };
}

ours! {
    E: Producer<'_, E>, Consumer<'_, E>;
    Wc: raw::RawProducer<'_>, raw::RawConsumer<'_>;
    Wc: mpsc::SharedProducer<'_>, mpsc::SharedConsumer<'_>;
}

impl<E: Item> Reader<E> for Consumer<'_, E> {
    #[inline(always)]
    fn read(&mut self, most: usize, mut see: impl FnMut(&[E])) -> usize {
        let batch = self.poll_in_place(most).expect("nothing overran");
        let (first, second) = batch.as_slices();
        see(first);
        if !second.is_empty() {
            see(second);
        }
        batch.len()
    }
}
