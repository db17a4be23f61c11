//! Holds the sender of a queue back that has no way to say that it is full: what posting no more requests
//! than the queue can complete is to an application.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};

use cq_core::wc::Wc;

use crate::common::peer::{Peer, Receiver, Sender};

/// `P` with never more entries under way than it was made for.
pub struct Windowed<P>(PhantomData<P>);

/// The queue's memory, and how many entries were received, told now and then.
pub struct Memory<M> {
    queue: M,
    window: usize,
    received: Received,
}

/// Alone in its cache lines.
#[derive(Default)]
#[repr(align(128))]
struct Received(AtomicUsize);

/// Keeps count of what is under way.
pub struct WindowedSender<'a, S> {
    queue: S,
    window: usize,
    sent: usize,
    seen_received: usize,
    received: &'a Received,
}

/// Tells how much it has received, each time that it is a quarter of the window.
pub struct WindowedReceiver<'a, R> {
    queue: R,
    /// A quarter of the window.
    step: usize,
    taken: usize,
    told: usize,
    received: &'a Received,
}

impl<P: Peer> Peer for Windowed<P> {
    const NAME: &'static str = P::NAME;
    type Memory = Memory<P::Memory>;
    type Sender<'a> = WindowedSender<'a, P::Sender<'a>>;
    type Receiver<'a> = WindowedReceiver<'a, P::Receiver<'a>>;

    fn memory(capacity: usize) -> Self::Memory {
        Memory { queue: P::memory(capacity), window: capacity, received: Received::default() }
    }

    fn open(memory: &mut Self::Memory) -> (Self::Sender<'_>, Self::Receiver<'_>) {
        let (sender, receiver) = P::open(&mut memory.queue);
        let (window, received) = (memory.window, &memory.received);
        (
            WindowedSender { queue: sender, window, sent: 0, seen_received: 0, received },
            WindowedReceiver { queue: receiver, step: window / 4, taken: 0, told: 0, received },
        )
    }
}

impl<S: Sender> WindowedSender<'_, S> {
    #[inline(always)]
    fn room(&self) -> usize {
        self.window - (self.sent - self.seen_received)
    }
}

impl<S: Sender> Sender for WindowedSender<'_, S> {
    #[inline(always)]
    fn send(&mut self, batch: &[Wc]) -> usize {
        if self.room() < batch.len() {
            // Pairs with the store in `receive`: slots that were told of have been given back.
            self.seen_received = self.received.0.load(Ordering::Acquire);
        }
        let sent = self.queue.send(&batch[..self.room().min(batch.len())]);
        self.sent += sent;
        sent
    }
}

impl<R: Receiver> Receiver for WindowedReceiver<'_, R> {
    #[inline(always)]
    fn receive(&mut self, room: &mut [Wc]) -> usize {
        let received = self.queue.receive(room);
        self.taken += received;
        if self.taken - self.told >= self.step {
            self.received.0.store(self.taken, Ordering::Release);
            self.told = self.taken;
        }
        received
    }
}
